"""One door for every kind of input: `open_audio`, and `read_audio` for the whole of it."""

import os
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, SupportsIndex

import numpy as np
import numpy.typing as npt
import torch

from oasr.audio.arrays import read_array
from oasr.audio.bytestream import ByteStream, copied, open_stream
from oasr.audio.container import read_container
from oasr.audio.pcm import ENCODINGS
from oasr.audio.stream import AudioStream, Blocks, Findings, resampled
from oasr.audio.wav import OtherCodecError, is_wav, read_wav
from oasr.audio.waveform import Audio, checked_rate
from oasr.config import AudioConfig
from oasr.errors import AudioLimitError, EmptyAudioError, RequestError, UnsupportedAudioError

RAW_ENCODINGS = ("alaw", "mulaw", "s16le")
"""What telephone systems record without a header."""

_RAW_BLOCK_SAMPLES = 1 << 18
_DEFAULTS = AudioConfig()

Samples = npt.NDArray[Any] | torch.Tensor
Encoded = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO


@dataclass(frozen=True)
class RawAudio:
    """Mono samples without a header: a path, bytes or binary file, one of `RAW_ENCODINGS` and the rate in Hz.

    Raises `RequestError` when encoding or rate is none that is known.
    """

    content: Encoded
    encoding: str
    rate: int

    def __post_init__(self) -> None:
        if self.encoding not in RAW_ENCODINGS:
            raise RequestError(f"unknown encoding {self.encoding!r}; known are {', '.join(RAW_ENCODINGS)}")
        checked_rate("rate", self.rate)


Source = Encoded | RawAudio | tuple[Samples, int]


def read_audio(source: Source, *, target_rate: SupportsIndex, limits: AudioConfig = _DEFAULTS) -> Audio:
    """Decode `source`, average its channels and resample to `target_rate` Hz.

    `source` is a path, the bytes of a file, a binary file object (read from its position, left open), `RawAudio`, or
    `(samples, sample_rate)` with a numpy array or torch tensor. Files are recognised by their bytes, never by name.

    Raises an `AudioError` that names the input when the input is at fault, `RequestError` when the call is.
    Safe to call from several threads.
    """
    return open_audio(source, target_rate=target_rate, limits=limits).read_all()


def open_audio(source: Source, *, target_rate: SupportsIndex, limits: AudioConfig = _DEFAULTS) -> AudioStream:
    """As `read_audio`, decoded no further than it is read.

    What is wrong with the start is raised here, what is wrong later when that is read. A file object must be left
    alone until the stream has ended or is closed; `detached` makes a source of which this need not be asked.
    """
    target = checked_rate("target_rate", target_rate)
    if isinstance(source, (np.ndarray, torch.Tensor)):
        raise RequestError("an array does not say its sample rate: pass (array, sample_rate)")
    if isinstance(source, tuple):
        return _open_samples(source, target, limits)
    raw = source if isinstance(source, RawAudio) else None
    content = raw.content if raw else source
    if not isinstance(content, (str, os.PathLike, bytes, bytearray, memoryview)) and not hasattr(content, "read"):
        raise RequestError(
            f"cannot read audio from {type(content).__name__}; pass a path, bytes, a binary file object, "
            "(array, sample_rate) with a numpy array or torch tensor, or RawAudio"
        )
    file = open_stream(content, limits)
    findings = Findings(file.name)
    return AudioStream(findings, resampled(_decoded(file, findings, raw), target, limits, findings), target)


def detached(source: Source, limits: AudioConfig = _DEFAULTS) -> Source:
    """`source`, or a copy of it when it is a file object, which its owner may close, move or read from."""
    content = source.content if isinstance(source, RawAudio) else source
    if not hasattr(content, "read"):
        return source
    copy = copied(content, limits)
    return replace(source, content=copy) if isinstance(source, RawAudio) else copy


def _open_samples(source: tuple[Samples, int], target: int, limits: AudioConfig) -> AudioStream:
    if len(source) != 2 or not isinstance(source[0], (np.ndarray, torch.Tensor)):
        raise RequestError("a tuple must be (samples, sample_rate), samples first")
    samples, rate = source[0], checked_rate("sample_rate", source[1])
    # A sparse tensor has no `nbytes`.
    size = samples.nbytes if isinstance(samples, np.ndarray) else samples.numel() * samples.element_size()
    if size > limits.max_bytes:
        raise AudioLimitError("<array>", f"has {size} bytes; the limit is {limits.max_bytes} (audio.max_bytes)")
    findings = Findings("<array>")
    return AudioStream(findings, resampled(read_array("<array>", samples, rate), target, limits, findings), target)


def _decoded(stream: ByteStream, findings: Findings, raw: RawAudio | None) -> Blocks:
    with closing(stream):
        if not stream.size:
            raise EmptyAudioError(stream.name, "is empty (0 bytes)")
        head = stream.read(12)
        stream.seek(0)
        if is_wav(head):
            if raw is not None:
                findings.note(
                    f"declared as headerless {raw.encoding}, but it starts with a WAV header; read as that WAV"
                )
            yield from _read_wav(stream, findings)
        elif raw is not None:
            yield from _read_raw(stream, findings, raw)
        else:
            yield from read_container(stream, findings)


def _read_wav(stream: ByteStream, findings: Findings) -> Blocks:
    try:
        yield from read_wav(stream, findings)
    except OtherCodecError as other:
        try:
            yield from read_container(stream, findings)
        except UnsupportedAudioError as error:
            raise UnsupportedAudioError(stream.name, f"{other}, which cannot be decoded") from error


def _read_raw(stream: ByteStream, findings: Findings, raw: RawAudio) -> Blocks:
    width, decode = ENCODINGS[raw.encoding]
    while data := stream.read(_RAW_BLOCK_SAMPLES * width):
        extra = len(data) % width
        if extra:
            findings.note(f"the last {extra} bytes are less than a sample of {width} and were dropped")
        yield decode(data[: len(data) - extra]), raw.rate
