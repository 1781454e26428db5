"""Limits stop the reading, they do not follow it."""

import io
import time

import av
import numpy as np
import pytest

from oasr.audio import RawAudio, read_audio
from oasr.config import AudioConfig
from oasr.errors import AudioLimitError

TEN_SECONDS = AudioConfig(max_seconds=10)
SMALL = AudioConfig(max_bytes=1000)


@pytest.mark.parametrize(
    ("codec", "container"), [("flac", "flac"), ("libopus", "webm"), ("libmp3lame", "mp3"), ("aac", "ipod")]
)
def test_compressed_audio_past_the_limit_is_refused_with_size_and_limit(encode, codec, container):
    data = encode(codec, container, 48000, seconds=12.0)
    with pytest.raises(AudioLimitError, match=r"10\.\d s of audio; the limit is 10 s \(audio\.max_seconds\)"):
        read_audio(data, target_rate=16000, limits=TEN_SECONDS)


def test_a_small_file_of_endless_silence_stops_at_the_limit(tmp_path):
    path = tmp_path / "bomb.flac"
    with av.open(str(path), "w") as out:
        track = out.add_stream("flac", rate=8000)
        track.layout = "mono"
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000 * 600), np.int16), layout="mono")
        frame.sample_rate = 8000
        for _ in range(6):
            frame.pts = None
            out.mux(track.encode(frame))
        out.mux(track.encode(None))
    assert path.stat().st_size < 1_000_000
    start = time.perf_counter()
    read_audio(path, target_rate=8000)
    whole = time.perf_counter() - start
    start = time.perf_counter()
    with pytest.raises(AudioLimitError):
        read_audio(path, target_rate=8000, limits=TEN_SECONDS)
    assert time.perf_counter() - start < whole / 4


def test_every_source_of_samples_is_held_to_the_seconds(wav):
    samples = np.zeros(8000 * 11, np.int16)
    data = samples.tobytes()
    for source in (wav(data, rate=8000), (samples, 8000), RawAudio(data, "s16le", 8000)):
        with pytest.raises(AudioLimitError, match="10 s"):
            read_audio(source, target_rate=16000, limits=TEN_SECONDS)


def test_audio_exactly_at_the_limit_is_read(wav):
    assert read_audio(wav(bytes(320_000)), target_rate=16000, limits=TEN_SECONDS).duration == 10


class Endless(io.RawIOBase):
    """A stream that never ends, and counts what was taken."""

    taken = 0

    def readable(self):
        return True

    def read(self, count=-1):
        self.taken += count
        return bytes(count)


def test_bytes_past_the_limit_are_refused_with_size_and_limit(tmp_path, wav):
    data = wav(bytes(2000))
    path = tmp_path / "large.wav"
    path.write_bytes(data)
    for source in (data, path, io.BytesIO(data)):
        with pytest.raises(AudioLimitError, match=r"2044 bytes; the limit is 1000 \(audio\.max_bytes\)"):
            read_audio(source, target_rate=16000, limits=SMALL)
    with pytest.raises(AudioLimitError, match="4000 bytes; the limit is 1000"):
        read_audio((np.zeros(1000, np.float32), 16000), target_rate=16000, limits=SMALL)


def test_an_endless_stream_is_read_to_the_limit_and_no_further():
    stream = Endless()
    with pytest.raises(AudioLimitError, match="more than 1000 bytes"):
        read_audio(stream, target_rate=16000, limits=SMALL)
    assert stream.taken == 1001


def test_the_defaults_admit_a_day_and_four_gibibytes():
    assert (AudioConfig().max_seconds, AudioConfig().max_bytes) == (86400, 4 * 2**30)
