"""Long inputs are decoded a little ahead of need, and read as if they were there from the start."""

import io
import threading
import wave
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
import torch

from oasr.audio import Audio, read_audio
from oasr.engine import ASREngine, DecodingOptions
from oasr.engine.supply import Supply
from oasr.engine.window import Window
from oasr.errors import AudioError, AudioLimitError, ModelError, RequestAbortedError
from oasr.interfaces.detector import DetectorStream
from oasr.plugin import Kind
from oasr.testing.toys.audio import toy_audio
from oasr.testing.toys.model import ToyArchitecture
from oasr.types import Transcript

from .conftest import GERMAN, MakeEngine, speech
from .test_reading import Timed

RATE = 16_000
SHORT = replace(GERMAN, max_new_tokens=3)


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    """Words of noise with pauses, which the energy detector tells apart; int16."""
    samples = toy_audio(seed, seconds).numpy()
    rhythm = np.random.default_rng(seed)
    words = np.repeat(rhythm.integers(0, 4, len(samples) // 8000 + 1) > 0, 8000)[: len(samples)]
    return (samples * np.where(words, 1.0, 1e-3) * 20_000).astype("<i2")


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """A recording: `file("a.flac", seconds=60)`."""

    def write(name: str = "a.wav", seconds: float = 60.0, seed: int = 0) -> Path:
        path = tmp_path / name
        samples = sound(seconds, seed)
        if path.suffix == ".wav":
            with wave.open(str(path), "wb") as out:
                out.setparams((1, 2, RATE, 0, "NONE", ""))
                out.writeframes(samples.tobytes())
            return path
        with av.open(str(path), "w") as out:
            track = out.add_stream({".flac": "flac", ".mp3": "libmp3lame"}[path.suffix], rate=RATE)
            track.layout = "mono"
            frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
            frame.sample_rate, frame.pts = RATE, 0
            resampler = av.AudioResampler(track.format, "mono", RATE, track.codec_context.frame_size or 1024)
            for piece in [*resampler.resample(frame), *resampler.resample(None), None]:
                out.mux(track.encode(piece))
        return path

    return write


File = Callable[..., Path]


def said(transcript: Transcript | None) -> Transcript:
    """All but the scores, in whose last digits the batches show that windows were read in."""
    assert transcript is not None
    return replace(transcript, segments=tuple(replace(each, avg_logprob=0.0) for each in transcript.segments))


def windows_of(engine: ASREngine, monkeypatch: pytest.MonkeyPatch) -> set[tuple[int, bytes]]:
    """Fills with where each window starts, and its samples."""
    start, windows = engine._runner.start, set()

    def noted(given: Sequence[Window]) -> object:
        windows.update((window.start_samples, window.samples.numpy().tobytes()) for window in given)
        return start(given)

    monkeypatch.setattr(engine._runner, "start", noted)
    return windows


MODES = [
    pytest.param(False, "none", id="windows that follow each other"),
    pytest.param(True, "none", id="windows that go on from each other"),
    pytest.param(True, "energy", id="speech that is found"),
]


def make(make_engine: MakeEngine, timed: bool, detector: str, **settings: object) -> ASREngine:
    components = {(Kind.ARCHITECTURE, "toy"): Timed if timed else ToyArchitecture}
    return make_engine(components=components, detector=detector, **settings)


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.mp3"])
@pytest.mark.parametrize(("timed", "detector"), MODES)
def test_a_file_reads_as_if_it_was_there_from_the_start(
    make_engine: MakeEngine, file: File, monkeypatch: pytest.MonkeyPatch, timed: bool, detector: str, name: str
) -> None:
    path = file(name, seconds=61.03)
    engine = make(make_engine, timed, detector, rows=2)
    windows = windows_of(engine, monkeypatch)
    expected = said(engine.transcribe(read_audio(path, target_rate=RATE), SHORT))
    whole = windows.copy()
    windows.clear()
    assert said(engine.transcribe(str(path), SHORT)) == expected
    assert windows == whole
    assert len(whole) > 20


@pytest.mark.parametrize(("timed", "detector"), MODES)
def test_many_files_are_read_at_once(make_engine: MakeEngine, file: File, timed: bool, detector: str) -> None:
    engine = make(make_engine, timed, detector, rows=3)
    paths = [file(f"{seed}.wav", seconds=3.0 + 7 * seed, seed=seed) for seed in range(6)]
    expected = [said(engine.transcribe(read_audio(path, target_rate=RATE), SHORT)) for path in paths]
    assert [said(each) for each in engine.transcribe([str(path) for path in paths], SHORT)] == expected
    ids = [engine.add_request(path, SHORT) for path in paths]
    outcomes = engine.run()
    assert [said(outcomes[each].transcript) for each in ids] == expected


@pytest.mark.parametrize(("timed", "detector"), MODES)
def test_little_is_decoded_ahead(
    make_engine: MakeEngine, file: File, monkeypatch: pytest.MonkeyPatch, timed: bool, detector: str
) -> None:
    engine = make(make_engine, timed, detector, rows=2)
    decoded, held = [], []
    read_on = Supply.read_on

    def counting(supply: Supply) -> list:
        pieces = read_on(supply)
        decoded.append(supply._heard / RATE)
        return pieces

    monkeypatch.setattr(Supply, "read_on", counting)
    engine.add_request(file(seconds=300.0), SHORT)
    reached = 0.0
    while engine.busy:
        for request in engine._requests.values():
            windows = [*request.waiting, *request.open]
            reached = max([reached, *(window.start_samples / RATE for window in windows)])
            held.append(sum(len(window.samples) for window in windows) / RATE)
            if request.ahead is not None:
                held[-1] += (request.ahead.end - request.ahead.start) / RATE
            assert decoded[-1] - reached < 60
        engine.step()
    assert decoded[-1] == 300
    assert max(held) < 60  # WAV is decoded 16 s at a time


@pytest.mark.parametrize(("timed", "detector"), MODES)
def test_what_is_wrong_further_on_ends_the_request(
    make_engine: MakeEngine, file: File, timed: bool, detector: str
) -> None:
    engine = make(make_engine, timed, detector, audio={"max_seconds": 70.0})
    request = engine.add_request(file("long.wav", seconds=90.0), SHORT)
    other = engine.add_request(file("other.wav", seconds=4.0), SHORT)
    outcomes = engine.run()
    assert isinstance(outcomes[request].error, AudioLimitError)
    assert outcomes[request].source.endswith("long.wav")
    assert outcomes[other].transcript.text
    with pytest.raises(AudioLimitError, match="limit is 70 s"):
        engine.transcribe(str(file("long.wav", seconds=90.0)), SHORT)


def test_what_is_wrong_with_the_start_is_raised_at_once(make_engine: MakeEngine, file: File) -> None:
    engine = make_engine(audio={"max_seconds": 10.0})
    with pytest.raises(AudioLimitError):
        engine.add_request(file(seconds=90.0))
    assert not engine.busy


def test_a_file_that_was_cut_off_reads_to_where_it_ends(make_engine: MakeEngine, file: File) -> None:
    path = file("a.flac", seconds=60.0)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 7 // 10])
    engine = make_engine()
    result = engine.transcribe(str(path), SHORT)
    assert result.truncated
    assert 35 < result.duration < 50
    assert said(result) == said(engine.transcribe(read_audio(path, target_rate=RATE), SHORT))
    assert "could be decoded" in result.notes[0] or "damaged" in result.notes[0]


def test_what_the_caller_does_to_an_input_that_was_handed_in_changes_nothing(
    make_engine: MakeEngine, file: File
) -> None:
    engine = make_engine()
    path = file(seconds=60.0)
    expected = said(engine.transcribe(str(path), SHORT))
    with path.open("rb") as handle:
        first = engine.add_request(handle, SHORT)
        handle.seek(0)
        second = engine.add_request(handle, SHORT)
    array = sound(60.0)
    third = engine.add_request((array, RATE), SHORT)
    array.fill(0)
    content = bytearray(path.read_bytes())
    fourth = engine.add_request(content, SHORT)
    content[44:] = bytes(len(content) - 44)
    path.unlink()
    outcomes = engine.run()
    assert all(said(outcomes[each].transcript) == expected for each in (first, second, third, fourth))


class Faulty(io.BytesIO):
    """A file that cannot be read past a place."""

    place = 1_500_000
    fault: type[Exception] = OSError

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() + (size or 0) > self.place:
            raise self.fault("the disk is gone")
        return super().read(size)


@pytest.mark.parametrize("fault", [OSError, ZeroDivisionError])
def test_a_file_that_fails_further_on_fails_alone(make_engine: MakeEngine, file: File, fault: type[Exception]) -> None:
    engine = make_engine()
    bad = Faulty(file(seconds=60.0).read_bytes())
    bad.fault = fault
    outcomes = dict(engine.transcribe_each([bad, speech(1)], SHORT))
    assert isinstance(outcomes[0].error, AudioError)
    assert "the disk is gone" in str(outcomes[0].error)
    assert outcomes[1].transcript


@pytest.mark.parametrize("end", ["abort", "close"])
def test_an_input_that_is_being_decoded_can_be_left(
    make_engine: MakeEngine, file: File, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    engine = make(make_engine, timed=True, detector="none")
    decoding, go_on, closed = threading.Event(), threading.Event(), threading.Event()
    read_on, close = Supply.read_on, Supply.close

    def slow(supply: Supply) -> list:
        decoding.set()
        assert go_on.wait(10)
        return read_on(supply)

    def noted(supply: Supply) -> None:
        close(supply)
        closed.set()

    request = engine.add_request(file(seconds=60.0), SHORT)
    monkeypatch.setattr(Supply, "read_on", slow)
    monkeypatch.setattr(Supply, "close", noted)
    while not decoding.is_set():
        engine.step()
    if end == "abort":
        engine.abort(request)
        outcomes = engine.step()
    else:
        engine.close()
        outcomes = engine.step()
    assert isinstance(outcomes[request].error, RequestAbortedError)
    assert not closed.is_set()
    go_on.set()
    assert closed.wait(10)


def test_an_engine_that_waits_for_a_file_goes_on_with_others(
    make_engine: MakeEngine, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(make_engine, timed=True, detector="none")
    go_on, read_on = threading.Event(), Supply.read_on

    def slow(supply: Supply) -> list:
        assert go_on.wait(10)
        return read_on(supply)

    long = engine.add_request(file(seconds=60.0), SHORT)
    monkeypatch.setattr(Supply, "read_on", lambda supply: slow(supply) if "a.wav" in supply.source else read_on(supply))
    short = engine.add_request(speech(1), SHORT)
    outcomes: dict = {}
    while short not in outcomes:
        outcomes |= engine.step()
    assert long not in outcomes
    go_on.set()
    assert (outcomes | engine.run())[long].transcript


class Tardy(DetectorStream):
    """Tells of the first second when a minute is over."""

    def __init__(self, stream: DetectorStream):
        self._stream, self._events, self._heard = stream, [], 0

    def push(self, samples: torch.Tensor) -> list:
        self._events += self._stream.push(samples)
        self._heard += len(samples)
        return [] if self._heard < 60 * RATE else self.finish()

    def finish(self) -> list:
        told, self._events = self._events, []
        return told


def test_a_detector_that_tells_too_late_fails_the_input_by_name(
    make_engine: MakeEngine, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(make_engine, timed=True, detector="energy")
    listen = engine._parts.detector.stream
    monkeypatch.setattr(engine._parts.detector, "stream", lambda rate: Tardy(listen(rate)))
    outcomes = dict(engine.transcribe_each([str(file(seconds=90.0)), speech(1)], SHORT))
    assert isinstance(outcomes[0].error, ModelError)
    assert "latency" in str(outcomes[0].error)
    assert outcomes[1].transcript is not None


def test_the_language_is_found_in_what_is_read_first(make_engine: MakeEngine, file: File) -> None:
    engine = make_engine(audio={"max_seconds": 70.0})
    path = file(seconds=90.0)
    start = Audio(read_audio(path, target_rate=RATE).samples[:RATE].clone(), RATE, "start")
    assert engine.detect_language(path) == engine.detect_language(start)


def test_notes_come_in_the_order_of_what_they_are_about(make_engine: MakeEngine) -> None:
    audio = Audio(torch.zeros(RATE + 100), RATE, "a", notes=("odd",))
    notes = make_engine().transcribe(audio, DecodingOptions(language="de")).notes
    assert notes[0] == "odd"
    assert "too short" in notes[1]
