"""`oasr stream` as a user types it: what it prints of a file and of a microphone, and how it refuses."""

import itertools
import os
import signal
import sys
import time
import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import numpy as np
import pytest
import torch

from oasr.audio import read_audio
from oasr.cli.main import main
from oasr.engine import ASREngine
from oasr.plugin import Kind
from oasr.registry import default_registry
from oasr.types import StreamEvent

RATE = 16_000
HELLO = Path(__file__).parents[1] / "examples" / "hello.wav"
CLIPS = {"2_lucas_2947.flac": "two nine four seven", "1_nicolas_723.flac": "seven two three"}
Stream = Callable[..., tuple[int, list[str], str]]


@pytest.fixture(params=["icefall-zipformer-streaming-digits", "wenet-u2pp-digits"])
def model(request: pytest.FixtureRequest, shared: Callable[[str], Path]) -> str:
    return str(shared(f"models/{request.param}/checkpoint"))


@pytest.fixture
def one_model(shared: Callable[[str], Path]) -> str:
    """For what no model differs in."""
    return str(shared("models/wenet-u2pp-digits/checkpoint"))


@pytest.fixture
def offline_model() -> str:
    if "tiny-en" not in default_registry().names(Kind.MODEL):
        pytest.skip("the packaged model tiny-en is not installed")
    return "tiny-en"


@pytest.fixture
def stream(capfd: pytest.CaptureFixture[str]) -> Stream:
    """`oasr stream` with more arguments, on the CPU: the exit code, the lines it printed and what it said of errors."""

    def stream(*arguments: str | Path) -> tuple[int, list[str], str]:
        code = main(["stream", "--device", "cpu", *map(str, arguments)])
        out, err = capfd.readouterr()
        return code, out.lower().splitlines(), err

    return stream


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a model fails the test: what is refused is refused before."""

    def refuse(config: Any) -> None:
        pytest.fail("a model was loaded")

    monkeypatch.setattr("oasr.cli.stream.open_engine", refuse)


@pytest.fixture
def samples(shared: Callable[[str], Path]) -> torch.Tensor:
    """Both clips, and 1.5 s of faint noise after each."""
    noise = 1e-3 * torch.randn(RATE * 3 // 2, generator=torch.Generator().manual_seed(0))
    folder = shared("models/digits-clips")
    return torch.cat([part for name in CLIPS for part in (read_audio(folder / name, target_rate=RATE).samples, noise)])


@pytest.fixture
def recording(samples: torch.Tensor, tmp_path: Path) -> Path:
    path = tmp_path / "two sentences.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((samples * 32767).short().numpy().tobytes())
    return path


def test_each_segment_is_a_line(stream: Stream, model: str, recording: Path) -> None:
    code, lines, errors = stream(recording, "--fast", "--model", model)
    assert (code, lines, errors) == (0, list(CLIPS.values()), "")


def test_options_of_endpoints_reach_the_stream(stream: Stream, one_model: str, recording: Path) -> None:
    endless = "--endpoint-silence", "inf", "--longest-segment", "inf"
    assert stream(recording, "--fast", "--model", one_model, *endless)[1] == [" ".join(CLIPS.values())]
    assert len(stream(recording, "--fast", "--model", one_model, "--longest-segment", "1")[1]) > 2


@pytest.mark.parametrize(("name", "text"), CLIPS.items())
def test_a_file_is_played_as_long_as_it_takes(
    stream: Stream, one_model: str, shared: Callable[[str], Path], name: str, text: str
) -> None:
    path = shared(f"models/digits-clips/{name}")
    started = time.monotonic()
    code, lines, _ = stream(path, "--model", one_model)
    assert (code, lines) == (0, [text])
    assert time.monotonic() - started > read_audio(path, target_rate=RATE).duration


def test_a_file_that_was_cut_short_is_read_and_told(stream: Stream, one_model: str, recording: Path) -> None:
    recording.write_bytes(recording.read_bytes()[: 44 + 3 * RATE * 2])
    code, lines, errors = stream(recording, "--fast", "--model", one_model)
    assert (code, lines) == (0, ["two nine four seven"])
    assert errors.startswith(f"oasr: {recording}: ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe with a name needs a POSIX system")
def test_a_pipe_is_read_once(stream: Stream, one_model: str, recording: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = os.posix_spawnp("cp", ["cp", str(recording), str(pipe)], os.environ)
    code, lines, errors = stream(pipe, "--fast", "--model", one_model)
    assert (code, lines, errors) == (0, list(CLIPS.values()), "")
    assert os.waitpid(child, 0)[1] == 0


def test_a_model_that_cannot_stream_is_refused(stream: Stream, offline_model: str) -> None:
    code, lines, errors = stream(HELLO, "--fast", "--model", offline_model)
    assert (code, lines) == (2, [])
    assert "cannot read live audio" in errors


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(
    ("content", "said"), [(None, "no such file"), (b"", "empty"), (b"this is no audio at all", "audio")]
)
def test_a_file_that_is_no_audio_is_named_before_the_model_is_loaded(
    stream: Stream, tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "bad.wav"
    if content is not None:
        path.write_bytes(content)
    code, lines, errors = stream(path, "--fast", "--model", "any")
    assert (code, lines) == (1, [])
    assert errors.startswith("oasr: ")
    assert str(path) in errors
    assert said in errors.lower()
    assert len(errors.splitlines()) == 1


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("sources", [(), ("a.wav", "--mic")])
def test_one_source_is_needed(stream: Stream, sources: tuple[str, ...]) -> None:
    code, lines, errors = stream(*sources, "--model", "any")
    assert (code, lines) == (2, [])
    assert "FILE, or --mic" in errors


@pytest.mark.usefixtures("no_model")
def test_a_microphone_is_not_fast(stream: Stream) -> None:
    code, _, errors = stream("--mic", "--fast", "--model", "any")
    assert code == 2
    assert "--fast" in errors


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("option", ["--chunk", "--left-context", "--endpoint-silence", "--longest-segment"])
@pytest.mark.parametrize("value", ["0", "nan"])
def test_times_that_are_none_are_refused(stream: Stream, option: str, value: str) -> None:
    code, _, errors = stream(HELLO, option, value, "--model", "any")
    assert code == 2
    assert option.removeprefix("--") in errors.replace("_", "-")


@pytest.mark.usefixtures("no_model")
def test_a_missing_sounddevice_is_told_with_its_remedy(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    code, _, errors = stream("--mic", "--model", "any")
    assert code == 2
    assert "pip install 'oasr-core[mic]'" in errors


class Microphone:
    """Stands for `sounddevice.InputStream`: samples, and then somebody presses Ctrl-C while silence goes on."""

    def __init__(self, samples: np.ndarray):
        self._left = samples
        self.closed = False

    def open(self, samplerate: int, channels: int, dtype: str) -> Self:
        assert (samplerate, channels, dtype) == (RATE, 1, "float32")
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def read(self, frames: int) -> tuple[np.ndarray, bool]:
        block, self._left = self._left[:frames], self._left[frames:]
        if not len(self._left):
            signal.raise_signal(signal.SIGINT)
        return np.pad(block, (0, frames - len(block)))[:, None], False


@pytest.fixture
def microphone(samples: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> Microphone:
    microphone, sounddevice = Microphone(samples.numpy()), ModuleType("sounddevice")
    sounddevice.InputStream = microphone.open  # type: ignore[attr-defined]
    sounddevice.PortAudioError = type("PortAudioError", (Exception,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sounddevice", sounddevice)
    return microphone


def test_a_microphone_is_heard_until_an_interrupt(stream: Stream, one_model: str, microphone: Microphone) -> None:
    code, lines, errors = stream("--mic", "--model", one_model, "--endpoint-silence", "inf")
    assert (code, lines, errors) == (0, [" ".join(CLIPS.values())], "")
    assert microphone.closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_the_model_computes_loses_nothing(
    stream: Stream, one_model: str, microphone: Microphone, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, settled = ASREngine.settle, itertools.count()

    def settle_interrupted(engine: ASREngine, stream_id: int) -> list[StreamEvent]:
        if next(settled) == 0:
            signal.raise_signal(signal.SIGINT)
        return settle(engine, stream_id)

    monkeypatch.setattr(ASREngine, "settle", settle_interrupted)
    monkeypatch.setattr("oasr.cli.stream._PUSH_SECONDS", 3.0)
    code, lines, errors = stream("--mic", "--model", one_model)
    assert (code, lines, errors) == (0, ["two nine four seven"], "")


def test_a_microphone_that_fails_is_told(
    stream: Stream, one_model: str, microphone: Microphone, monkeypatch: pytest.MonkeyPatch
) -> None:
    sounddevice = sys.modules["sounddevice"]

    def fail(frames: int) -> None:
        raise sounddevice.PortAudioError("Device unavailable")

    monkeypatch.setattr(microphone, "read", fail)
    code, _, errors = stream("--mic", "--model", one_model)
    assert code == 2
    assert "the microphone cannot be used: Device unavailable" in errors
