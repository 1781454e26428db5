"""Media made on the spot: a WAV writer that can lie in every field, and PyAV's encoders."""

import struct
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

FULL_TONE = 440.0


def make_tone(rate: int, seconds: float = 1.0, hertz: float = FULL_TONE, channels: int = 1) -> np.ndarray:
    """(time, channel) float64 at half of full scale."""
    time = np.arange(int(rate * seconds)) / rate
    return np.repeat(0.5 * np.sin(2 * np.pi * hertz * time)[:, None], channels, axis=1)


def measure_snr(samples: np.ndarray, rate: int, hertz: float = FULL_TONE) -> float:
    """dB of a tone of any phase and level over all that is not that tone; the edges (50 ms) are left out."""
    edge = rate // 20
    samples = np.asarray(samples, np.float64)[edge:-edge]
    angle = 2 * np.pi * hertz * np.arange(len(samples)) / rate
    basis = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    fit, *_ = np.linalg.lstsq(basis, samples, rcond=None)
    rest = samples - basis @ fit
    return float(10 * np.log10(np.mean((basis @ fit) ** 2) / (np.mean(rest**2) + 1e-20)))


def chunk(name: bytes, body: bytes, padded: bool = True) -> bytes:
    return name + struct.pack("<I", len(body)) + body + (b"\0" if padded and len(body) % 2 else b"")


def write_wav(
    data: bytes,
    *,
    tag: int = 1,
    channels: int = 1,
    rate: int = 16000,
    bits: int = 16,
    block_align: int | None = None,
    extension: bytes = b"",
    fmt_size: int = 16,
    declared: int | None = None,
    before: bytes = b"",
    after: bytes = b"",
    riff: bytes = b"RIFF",
    riff_size: int | None = None,
) -> bytes:
    """A WAV with any field as asked: `declared` is the size in the `data` chunk, `before` stands ahead of `fmt `."""
    block_align = channels * bits // 8 if block_align is None else block_align
    fields = struct.pack("<HHIIHH", tag, channels, rate, rate * block_align & 0xFFFFFFFF, block_align, bits)
    fmt = (fields + extension).ljust(fmt_size, b"\0")[: max(fmt_size, len(extension) + 16) if extension else fmt_size]
    size = len(data) if declared is None else declared
    body = before + chunk(b"fmt ", fmt) + b"data" + struct.pack("<I", size) + data
    body += (b"\0" if after and len(data) % 2 else b"") + after
    return riff + struct.pack("<I", 4 + len(body) if riff_size is None else riff_size) + b"WAVE" + body


def encode_media(
    path: Path,
    codec: str,
    container: str,
    rate: int,
    *,
    seconds: float = 2.0,
    layout: str = "mono",
    options: dict[str, str] | None = None,
    video: bool = False,
) -> bytes:
    """The tone, encoded by PyAV; skips where this build of libav lacks the encoder."""
    if codec not in av.codecs_available or not av.Codec(codec, "w").is_encoder:
        pytest.skip(f"this libav has no {codec} encoder")
    with av.open(str(path), "w", format=container, options=options or {}) as out:
        picture = out.add_stream("mpeg4", rate=10) if video else None
        track = out.add_stream(codec, rate=rate)
        track.layout = layout
        track.codec_context.options = {"strict": "experimental"}  # libav's own Vorbis encoder
        channels = track.layout.nb_channels
        samples = make_tone(rate, seconds, channels=channels).astype(np.float32).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(samples, format="flt", layout=layout)
        frame.sample_rate, frame.pts = rate, 0
        resampler = av.AudioResampler(
            format=track.format, layout=layout, rate=rate, frame_size=track.codec_context.frame_size or 1024
        )
        if picture is not None:
            picture.width, picture.height, picture.pix_fmt = 64, 64, "yuv420p"
            for packet in picture.encode(av.VideoFrame(64, 64, "yuv420p")) + picture.encode(None):
                out.mux(packet)
        for piece in [*resampler.resample(frame), *resampler.resample(None), None]:
            out.mux(track.encode(piece))
    return path.read_bytes()


@pytest.fixture
def tone() -> Callable[..., np.ndarray]:
    return make_tone


@pytest.fixture
def snr() -> Callable[..., float]:
    return measure_snr


@pytest.fixture
def wav() -> Callable[..., bytes]:
    return write_wav


@pytest.fixture
def riff_chunk() -> Callable[..., bytes]:
    return chunk


@pytest.fixture
def encode(tmp_path: Path) -> Callable[..., bytes]:
    def run(codec: str, container: str, rate: int, **how: object) -> bytes:
        return encode_media(tmp_path / "encoded.bin", codec, container, rate, **how)  # type: ignore[arg-type]

    return run
