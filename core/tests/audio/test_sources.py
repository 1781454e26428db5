"""Where audio can come from, and that every refusal names it."""

import io
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from oasr.audio import read_audio
from oasr.errors import AudioError, UnsupportedAudioError


@pytest.fixture
def clip(wav, tone):
    return wav((tone(16000, 0.5) * 32767).astype("<i2").tobytes())


class Pipe(io.RawIOBase):
    """Bytes that can only be read forward, a few at a time."""

    def __init__(self, data):
        self._left = io.BytesIO(data)

    def readable(self):
        return True

    def read(self, count=-1):
        return self._left.read(min(count, 777))


@pytest.mark.parametrize(
    "name", ["plain.wav", "with space (1).wav", "模型 dir/ü.wav", "שלום/запись.wav", "a'b\"c#d?e%f.wav", "-"]
)
def test_any_path_is_read(tmp_path, clip, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(clip)
    for given in (path, str(path)):
        audio = read_audio(given, target_rate=16000)
        assert audio.duration == 0.5
        assert audio.source == str(path)


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_bytes_in_any_form_are_read(clip, form):
    audio = read_audio(form(clip), target_rate=16000)
    assert (audio.duration, audio.source) == (0.5, "<bytes>")


def test_an_open_file_is_read_from_its_position_and_left_open(tmp_path, clip):
    path = tmp_path / "clip.bin"
    path.write_bytes(b"preface" + clip)
    with path.open("rb") as file:
        file.seek(7)
        audio = read_audio(file, target_rate=16000)
        assert not file.closed
    assert (audio.duration, audio.source) == (0.5, str(path))


@pytest.mark.parametrize(
    ("codec", "container"), [("libmp3lame", "mp3"), ("aac", "ipod"), ("flac", "flac"), ("libopus", "webm")]
)
@pytest.mark.parametrize("wrap", [Pipe, io.BytesIO, lambda data: io.BufferedReader(io.BytesIO(data))])
def test_streams_give_what_bytes_give(encode, codec, container, wrap):
    data = encode(codec, container, 48000)
    audio = read_audio(wrap(data), target_rate=16000)
    assert np.array_equal(audio.samples, read_audio(data, target_rate=16000).samples)
    assert audio.source == "<stream>"


def test_a_preface_before_a_compressed_stream_is_not_heard(encode):
    data = encode("flac", "flac", 48000)
    stream = io.BytesIO(b"x" * 999 + data)
    stream.seek(999)
    assert np.array_equal(read_audio(stream, target_rate=16000).samples, read_audio(data, target_rate=16000).samples)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_named_pipe_is_read(tmp_path, clip):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(clip,))
    writer.start()
    assert read_audio(path, target_rate=16000).duration == 0.5
    writer.join()


def test_a_path_that_cannot_be_opened_says_why(tmp_path):
    for path, words in [(tmp_path / "absent.wav", "no such file"), (tmp_path, "directory"), ("a\0b.wav", "null")]:
        with pytest.raises(AudioError, match=words) as caught:
            read_audio(path, target_rate=16000)
        assert caught.value.source == str(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_says_so(tmp_path):
    path = tmp_path / "secret.wav"
    path.touch(mode=0)
    with pytest.raises(AudioError, match="Permission denied"):
        read_audio(path, target_rate=16000)


class Odd(io.BytesIO):
    """A file object whose read gives `answer`."""

    def __init__(self, answer, seekable):
        super().__init__(b"RIFF" * 10)
        self._answer, self._seekable = answer, seekable

    def seekable(self):
        return self._seekable

    def read(self, count=-1):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize("seekable", [True, False])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("RIFF", "text mode"),
        (None, "non-blocking"),
        (42, "int"),
        (b"x" * (1 << 21), "returned 2097152 bytes"),
        (OSError("gone"), "gone"),
    ],
)
def test_a_file_object_that_misbehaves_is_refused(answer, words, seekable):
    with pytest.raises(AudioError, match=words):
        read_audio(Odd(answer, seekable), target_rate=16000)


def test_text_and_closed_files_are_refused(tmp_path, clip):
    path = tmp_path / "clip.wav"
    path.write_text("words")
    with path.open() as text, pytest.raises(AudioError, match="binary mode"):
        read_audio(text, target_rate=16000)
    with pytest.raises(AudioError, match="closed") as caught:
        read_audio(text, target_rate=16000)
    assert caught.value.source == str(path)


def test_a_refused_file_among_good_ones_is_the_one_named(tmp_path, wav, clip, tone):
    stereo = wav((tone(44100, 0.5, channels=2) * 32767).astype("<i2").tobytes(), channels=2, rate=44100)
    files = {"a.wav": clip, "b.wav": stereo, "c.wav": clip, "d.wav": b"not audio at all", "e.wav": clip}
    durations, refused = [], []
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        try:
            durations.append(read_audio(tmp_path / name, target_rate=16000).duration)
        except AudioError as error:
            refused.append(error.source)
    assert durations == [0.5] * 4
    assert refused == [str(tmp_path / "d.wav")]


def test_errors_survive_a_process_boundary(tmp_path):
    with pytest.raises(UnsupportedAudioError) as caught:
        read_audio(b"words", target_rate=16000)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.source) == (UnsupportedAudioError, str(caught.value), "<bytes>")


def test_many_threads_read_at_once(encode, clip):
    inputs = [encode("libmp3lame", "mp3", 44100), encode("flac", "flac", 22050), encode("libopus", "webm", 48000), clip]
    alone = [read_audio(data, target_rate=16000).samples for data in inputs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda data: read_audio(data, target_rate=16000).samples, inputs * 8))
    assert all(np.array_equal(one, alone[i % 4]) for i, one in enumerate(together))
