"""Inputs that are decoded as they are read."""

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oasr.audio import Audio, AudioStream, RawAudio, detached, open_audio, read_audio
from oasr.config import AudioConfig
from oasr.errors import AudioError, AudioLimitError, EmptyAudioError, InvalidSamplesError

RATE = 16_000


def parts(stream: AudioStream, sizes: Iterator[int]) -> list[torch.Tensor]:
    read = []
    while not stream.ended:
        read.append(stream.read(next(sizes)))
    return read


def sizes_from(seed: int) -> Iterator[int]:
    generator = np.random.default_rng(seed)
    return iter(lambda: int(generator.integers(1, 3 * RATE)), None)


def opened(path: Path) -> int:
    """How often this process has a file open."""
    links = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]  # noqa: PTH208
    return sum(os.path.lexists(link) and os.path.realpath(link) == str(path) for link in links)


@pytest.mark.parametrize(
    ("codec", "container", "rate"),
    [("pcm_s16le", "wav", 16_000), ("pcm_s16le", "wav", 44_100), ("libmp3lame", "mp3", 48_000), ("flac", "flac", 8000)],
)
def test_parts_are_the_whole_to_the_bit(encode: Callable[..., bytes], codec: str, container: str, rate: int) -> None:
    data = encode(codec, container, rate, seconds=40.0)
    whole = read_audio(data, target_rate=RATE)
    for seed in range(5):
        stream = open_audio(data, target_rate=RATE)
        assert torch.equal(torch.cat(parts(stream, sizes_from(seed))), whole.samples)
        assert (stream.findings.source, tuple(stream.findings.notes)) == (whole.source, whole.notes)


def test_no_more_is_decoded_than_is_read(wav: Callable[..., bytes]) -> None:
    stream = open_audio(wav(bytes(2 * RATE * 600)), target_rate=RATE)
    assert stream.findings.seconds < 20
    assert RATE <= len(stream.read(RATE)) < 20 * RATE
    assert stream.findings.seconds < 40


@given(count=st.integers(1, 50_000), least=st.integers(1, 60_000))
def test_a_stream_knows_when_it_has_ended(count: int, least: int) -> None:
    stream = open_audio(RawAudio(bytes(2 * count), "s16le", RATE), target_rate=RATE)
    total = 0
    while not stream.ended:
        samples = stream.read(least)
        assert len(samples) >= least or stream.ended
        total += len(samples)
    assert total == count
    assert len(stream.read(least)) == 0


def test_an_audio_is_read_in_one_piece_and_not_copied() -> None:
    audio = Audio(torch.zeros(100_000), RATE, "a", truncated=True, notes=("odd",))
    stream = AudioStream.of(audio)
    assert stream.read(1).data_ptr() == audio.samples.data_ptr()
    assert stream.ended
    assert (stream.findings.source, stream.findings.notes, stream.findings.truncated) == ("a", ["odd"], True)


@pytest.mark.parametrize("content", [b"", b"words"])
def test_what_is_wrong_with_the_start_is_raised_on_opening(content: bytes) -> None:
    with pytest.raises(AudioError) as expected:
        read_audio(content, target_rate=RATE)
    with pytest.raises(AudioError) as found:
        open_audio(content, target_rate=RATE)
    assert (type(found.value), str(found.value)) == (type(expected.value), str(expected.value))


def test_an_input_without_a_sample_is_refused_on_opening(wav: Callable[..., bytes]) -> None:
    with pytest.raises(EmptyAudioError):
        open_audio(wav(b""), target_rate=RATE)


def test_what_is_wrong_later_is_raised_where_it_is_read(wav: Callable[..., bytes], tmp_path: Path) -> None:
    samples = np.zeros(60 * RATE, np.float32)
    samples[50 * RATE] = np.nan
    path = tmp_path / "a.wav"
    path.write_bytes(wav(samples.tobytes(), tag=3, bits=32))
    stream = open_audio(path, target_rate=RATE)
    assert len(stream.read(10 * RATE)) >= 10 * RATE
    with pytest.raises(InvalidSamplesError, match=r"sample at 50\.000 s is nan"):
        stream.read(60 * RATE)
    assert opened(path) == 0


def test_the_limit_is_found_where_it_is_passed(wav: Callable[..., bytes]) -> None:
    stream = open_audio(wav(bytes(2 * RATE * 60)), target_rate=RATE, limits=AudioConfig(max_seconds=40))
    stream.read(1)
    with pytest.raises(AudioLimitError, match="limit is 40 s"):
        stream.read(60 * RATE)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.parametrize("way", ["to its end", "closed", "dropped"])
def test_a_file_is_let_go(encode: Callable[..., bytes], tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.mp3"
    path.write_bytes(encode("libmp3lame", "mp3", 16_000, seconds=60.0))
    stream = open_audio(path, target_rate=RATE)
    assert opened(path) == 1
    if way == "to its end":
        stream.read_all()
    elif way == "closed":
        stream.close()
        assert stream.ended
    else:
        del stream
    assert opened(path) == 0


def test_a_detached_file_can_be_closed_and_moved(wav: Callable[..., bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"preface" + wav(bytes(2 * RATE)))
    with path.open("rb") as file:
        file.seek(7)
        source = detached(file)
        file.seek(0)
    audio = read_audio(source, target_rate=RATE)
    assert (audio.duration, audio.source) == (1.0, str(path))


def test_a_detached_raw_file_keeps_what_it_declares() -> None:
    source = detached(RawAudio(io.BytesIO(bytes(16_000)), "mulaw", 8000))
    assert isinstance(source, RawAudio)
    assert read_audio(source, target_rate=RATE).duration == 2.0


@pytest.mark.parametrize("source", ["a.wav", b"bytes", (np.zeros(9), RATE)])
def test_what_nobody_closes_is_left_as_it_is(source: object) -> None:
    assert detached(source) is source  # type: ignore[arg-type]


def test_a_copy_stops_at_the_limit() -> None:
    for seekable in (True, False):
        file = io.BytesIO(bytes(2000))
        file.seekable = lambda seekable=seekable: seekable  # type: ignore[method-assign]
        with pytest.raises(AudioLimitError, match="the limit"):
            detached(file, AudioConfig(max_bytes=1000))
