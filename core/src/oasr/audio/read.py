"""`read_audio`: one door for every kind of input."""

import os
from typing import Any, BinaryIO, SupportsIndex

import numpy as np
import numpy.typing as npt
import torch

from oasr.audio.arrays import read_array
from oasr.audio.builder import AudioBuilder
from oasr.audio.bytestream import ByteStream, open_stream
from oasr.audio.container import read_container
from oasr.audio.pcm import ENCODINGS, downmix
from oasr.audio.wav import OtherCodecError, is_wav, read_wav
from oasr.audio.waveform import DEFAULT_LIMITS, Audio, AudioLimits, checked_rate
from oasr.errors import AudioLimitError, EmptyAudioError, RequestError, UnsupportedAudioError

Samples = npt.NDArray[Any] | torch.Tensor
Encoded = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
Source = Encoded | Samples | tuple[Samples, int]

_RAW_BLOCK_SAMPLES = 1 << 18


def read_audio(
    source: Source,
    *,
    target_rate: SupportsIndex,
    sample_rate: SupportsIndex | None = None,
    encoding: str | None = None,
    limits: AudioLimits = DEFAULT_LIMITS,
) -> Audio:
    """Decode `source`, average its channels and resample to `target_rate` Hz.

    `source` is a path, the bytes of a file, a binary file object (read from its position, left open), a numpy array
    or torch tensor with `sample_rate`, or `(array, sample_rate)`. Files are recognised by their bytes, never by name.
    Headerless mono samples are read when `encoding` (a key of `oasr.audio.pcm.ENCODINGS`) and `sample_rate` say what
    they are. For a file that states its own rate, `sample_rate` changes nothing.

    Raises an `AudioError` that names the input when the input is at fault, `RequestError` when the call is.
    Safe to call from several threads.
    """
    target = checked_rate("target_rate", target_rate)
    rate = None if sample_rate is None else checked_rate("sample_rate", sample_rate)
    if encoding is not None and encoding not in ENCODINGS:
        raise RequestError(f"unknown encoding {encoding!r}; known are {', '.join(ENCODINGS)}")
    if encoding is not None and rate is None:
        raise RequestError(f"encoding={encoding!r} declares headerless samples: pass their sample_rate= too")
    if isinstance(source, (np.ndarray, torch.Tensor, tuple)):
        if encoding is not None:
            raise RequestError("encoding= describes bytes; an array has its dtype instead")
        return _read_samples(source, rate, target, limits)
    if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)) and not hasattr(source, "read"):
        raise RequestError(
            f"cannot read audio from {type(source).__name__}; pass a path, bytes, a binary file object, "
            "a numpy array, a torch tensor or (array, sample_rate)"
        )
    with open_stream(source, limits) as stream:
        builder = AudioBuilder(stream.name, target, limits)
        _read_stream(stream, builder, rate, encoding)
    return builder.build()


def _read_samples(source: Samples | tuple[Samples, int], rate: int | None, target: int, limits: AudioLimits) -> Audio:
    if isinstance(source, tuple):
        if len(source) != 2 or not isinstance(source[0], (np.ndarray, torch.Tensor)):
            raise RequestError("a tuple must be (samples, sample_rate), samples first")
        samples, own_rate = source[0], checked_rate("the tuple's sample_rate", source[1])
        if rate not in (None, own_rate):
            raise RequestError(f"the tuple says {own_rate} Hz and sample_rate= says {rate}; pass one")
        rate = own_rate
    else:
        samples = source
    if rate is None:
        raise RequestError("an array does not say its sample rate: pass sample_rate= in Hz, or (array, sample_rate)")
    builder = AudioBuilder("<array>", target, limits)
    # A sparse tensor has no `nbytes`.
    size = samples.nbytes if isinstance(samples, np.ndarray) else samples.numel() * samples.element_size()
    if size > limits.max_bytes:
        raise AudioLimitError("<array>", f"has {size} bytes; the limit is {limits.max_bytes} (max_bytes)")
    read_array(samples, rate, builder)
    return builder.build()


def _read_stream(stream: ByteStream, builder: AudioBuilder, rate: int | None, encoding: str | None) -> None:
    if not stream.size:
        raise EmptyAudioError(stream.name, "is empty (0 bytes)")
    head = stream.read(12)
    stream.seek(0)
    if encoding is not None and rate is not None and not is_wav(head):
        _read_raw(stream, builder, rate, encoding)
        return
    if encoding is not None:
        builder.note(f"declared as headerless {encoding}, but the bytes start with a WAV header; read as that WAV")
    own_rate = _read_wav_or_container(stream, builder) if is_wav(head) else read_container(stream, builder)
    if rate not in (None, own_rate):
        builder.note(f"declared as {rate} Hz, but the file says {own_rate} Hz; the file's rate was used")


def _read_wav_or_container(stream: ByteStream, builder: AudioBuilder) -> int:
    try:
        return read_wav(stream, builder)
    except OtherCodecError as other:
        try:
            return read_container(stream, builder)
        except UnsupportedAudioError as error:
            raise UnsupportedAudioError(stream.name, f"{other}, which cannot be decoded") from error


def _read_raw(stream: ByteStream, builder: AudioBuilder, rate: int, encoding: str) -> None:
    width, decode = ENCODINGS[encoding]
    while data := stream.read(_RAW_BLOCK_SAMPLES * width):
        extra = len(data) % width
        if extra:
            builder.note(f"the last {extra} bytes are less than a sample of {width} and were dropped")
        builder.add(downmix(decode(data[: len(data) - extra]).reshape(-1, 1)), rate)
