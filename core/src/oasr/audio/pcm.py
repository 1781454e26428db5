"""Uncompressed and G.711 samples: bytes and arrays to float32, full scale ±1, one channel."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from oasr.audio.waveform import LOUDEST

Float32Array = npt.NDArray[np.float32]
Decode = Callable[[bytes], Float32Array]


def _alaw_table() -> Float32Array:
    """ITU-T G.711: even bits inverted, sign set for positive, 3 bits of exponent, 4 of mantissa; 13-bit values."""
    code = np.arange(256) ^ 0x55
    exponent, mantissa = (code >> 4) & 7, code & 15
    linear = (2 * mantissa + 1) << 3
    linear = np.where(exponent == 0, linear, (linear + 256) << np.maximum(exponent - 1, 0))
    return (np.where(code & 0x80, linear, -linear) / 32768).astype(np.float32)


def _mulaw_table() -> Float32Array:
    """ITU-T G.711: all bits inverted, bias 33 (132 at 16 bits), sign set for negative; 14-bit values."""
    code = ~np.arange(256)
    exponent, mantissa = (code >> 4) & 7, code & 15
    linear = (((mantissa << 3) + 132) << exponent) - 132
    return (np.where(code & 0x80, -linear, linear) / 32768).astype(np.float32)


def _plain(dtype: str) -> Decode:
    return lambda data: scaled(np.frombuffer(data, dtype))


def _table(table: Float32Array) -> Decode:
    return lambda data: table[np.frombuffer(data, np.uint8)]


def _s24le(data: bytes) -> Float32Array:
    wide = np.zeros((len(data) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return scaled(wide.view("<i4")[:, 0])


ENCODINGS: dict[str, tuple[int, Decode]] = {
    "u8": (1, _plain("u1")),
    "s16le": (2, _plain("<i2")),
    "s24le": (3, _s24le),
    "s32le": (4, _plain("<i4")),
    "s64le": (8, _plain("<i8")),
    "f32le": (4, _plain("<f4")),
    "f64le": (8, _plain("<f8")),
    "alaw": (1, _table(_alaw_table())),
    "mulaw": (1, _table(_mulaw_table())),
}
"""Encoding name → (bytes per sample, decoder of a whole number of samples)."""


def scaled(samples: npt.NDArray[Any]) -> Float32Array:
    """Samples of any float or integer dtype as a float32 copy; integers by their full scale."""
    if samples.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):  # past float32 becomes infinity, refused by the stream
            return samples.astype(np.float32, order="C")
    half_range = 2.0 ** (8 * samples.dtype.itemsize - 1)
    if samples.dtype.kind == "u":  # in float32 large ones would lose their last bits before the middle is taken off
        samples = samples.astype(np.float64) - half_range
    scaled: Float32Array = samples.astype(np.float32, order="C") * np.float32(1 / half_range)
    return scaled


def downmix(frames: Float32Array) -> Float32Array:
    """The mean over the channels of (time, channel)."""
    channels = frames.shape[1]
    if channels == 1:
        return frames[:, 0]
    # A matrix product is several times faster than `mean` over so short an axis.
    with np.errstate(over="ignore", invalid="ignore"):  # the stream refuses what is not finite
        mono: Float32Array = frames @ np.full(channels, 1 / channels, np.float32)
    return mono


def is_sound(mono: Float32Array) -> bool:
    """Whether all numbers can be samples: finite, and not absurdly loud."""
    return not mono.size or bool(-LOUDEST <= mono.min() <= mono.max() <= LOUDEST)
