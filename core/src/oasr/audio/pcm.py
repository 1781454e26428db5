"""Uncompressed and G.711 samples: bytes and arrays to float32, full scale ±1, one channel."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

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


def _integers(dtype: str) -> Decode:
    scale = np.float32(2.0 ** (1 - 8 * np.dtype(dtype).itemsize))
    return lambda data: np.frombuffer(data, dtype).astype(np.float32) * scale


def _floats(dtype: str) -> Decode:
    def decode(data: bytes) -> Float32Array:
        with np.errstate(over="ignore", invalid="ignore"):  # past float32 becomes infinity, refused by name later
            return np.frombuffer(data, dtype).astype(np.float32)

    return decode


def _table(table: Float32Array) -> Decode:
    return lambda data: table[np.frombuffer(data, np.uint8)]


def _u8(data: bytes) -> Float32Array:
    return (np.frombuffer(data, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(128)


def _s24le(data: bytes) -> Float32Array:
    wide = np.zeros((len(data) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return wide.view("<i4")[:, 0].astype(np.float32) * np.float32(2.0**-31)


ENCODINGS: dict[str, tuple[int, Decode]] = {
    "u8": (1, _u8),
    "s8": (1, _integers("i1")),
    "s16le": (2, _integers("<i2")),
    "s16be": (2, _integers(">i2")),
    "s24le": (3, _s24le),
    "s32le": (4, _integers("<i4")),
    "s32be": (4, _integers(">i4")),
    "s64le": (8, _integers("<i8")),
    "f32le": (4, _floats("<f4")),
    "f32be": (4, _floats(">f4")),
    "f64le": (8, _floats("<f8")),
    "f64be": (8, _floats(">f8")),
    "alaw": (1, _table(_alaw_table())),
    "mulaw": (1, _table(_mulaw_table())),
}
"""Encoding name → (bytes per sample, decoder of a whole number of samples)."""


def scaled(frames: npt.NDArray[Any]) -> Float32Array:
    """(time, channel) of any float or integer dtype as a float32 copy; integers by their full scale."""
    if frames.dtype.kind == "f":
        with np.errstate(over="ignore"):  # past float32 becomes infinity, refused by the builder
            return frames.astype(np.float32, order="C")
    half_range = 2.0 ** (8 * frames.dtype.itemsize - 1)
    offset = half_range if frames.dtype.kind == "u" else 0.0
    scaled: Float32Array = ((frames.astype(np.float64) - offset) / half_range).astype(np.float32, order="C")
    return scaled


def downmix(frames: Float32Array) -> Float32Array:
    """The mean over the channels of (time, channel)."""
    channels = frames.shape[1]
    if channels == 1:
        return frames[:, 0]
    # A matrix product is several times faster than `mean` over so short an axis.
    with np.errstate(over="ignore", invalid="ignore"):  # the builder refuses what is not finite
        mono: Float32Array = frames @ np.full(channels, 1 / channels, np.float32)
    return mono
