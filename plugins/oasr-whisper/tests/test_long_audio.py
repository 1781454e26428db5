"""The packaged tiny.en reads audio of any length: speech to its end, silence as nothing, words where they are said."""

import json
import wave
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from oasr.audio import Audio, read_audio
from oasr.cli.main import main
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.engine.window import Decoded, Hypothesis, Window
from oasr.output.formats import WRITERS
from oasr.plugin import Kind
from oasr.registry import default_registry
from oasr.types import Transcript

RATE = 16_000
MODEL = "tiny-en"
CLIPS = [
    "misc/jfk.flac",
    "ljspeech/LJ001-0001.flac",
    "librispeech/librispeech-1995-1837-0001.wav",
    "ljspeech/LJ001-0005.flac",
    "librispeech/2412-153948-0000.flac",
]
LAST_WORDS = ["painful", "to", "myself"]

pytestmark = pytest.mark.skipif(
    MODEL not in default_registry().names(Kind.MODEL), reason=f"the packaged model {MODEL} is not installed"
)


@pytest.fixture(scope="module")
def engine(device: str) -> ASREngine:
    return ASREngine(EngineConfig(model=MODEL, device=device, dtype="float32"))


@pytest.fixture(scope="module")
def kennedy(shared: Callable[[str], Path]) -> Audio:
    """Eleven seconds."""
    return read_audio(shared("audio/misc/jfk.flac"), target_rate=RATE)


@pytest.fixture(scope="module")
def talk(shared: Callable[[str], Path]) -> torch.Tensor:
    """Nearly a minute of several speakers, a second of silence after each."""
    pause = torch.zeros(RATE)
    clips = [read_audio(shared(f"audio/{name}"), target_rate=RATE).samples for name in CLIPS]
    return torch.cat([part for clip in clips for part in (clip, pause)])


def words(text: str) -> list[str]:
    return [word.strip(",.;:").lower() for word in text.split()]


def assert_in_order(result: Transcript) -> None:
    """Segments and the words in them lie one after another within the audio."""
    times = [time for segment in result.segments for time in (segment.start, segment.end)]
    assert times == sorted(times)
    assert all(0 <= time <= result.duration for time in times)
    said = [time for segment in result.segments for word in segment.words for time in (word.start, word.end)]
    assert said == sorted(said)
    assert all(0 <= time <= result.duration for time in said)


def test_a_speech_is_two_segments(engine: ASREngine, kennedy: Audio) -> None:
    """With the times that openai/whisper gives it."""
    result = engine.transcribe(kennedy)
    assert [(segment.start, segment.end) for segment in result.segments] == [
        (0.0, pytest.approx(7.74, abs=0.021)),
        (pytest.approx(7.74, abs=0.021), pytest.approx(10.74, abs=0.021)),
    ]
    assert " ".join(segment.text for segment in result.segments) == result.text
    assert_in_order(result)


@pytest.mark.parametrize("seconds", [29.9, 30.0, 30.1, 62.0])
def test_nothing_is_lost_where_windows_meet(engine: ASREngine, kennedy: Audio, seconds: float) -> None:
    """The last words are in the text wherever the audio ends beside the end of a window."""
    total = round(seconds * RATE)
    speeches = kennedy.samples.repeat(total // len(kennedy.samples))
    silence = torch.zeros(total - len(speeches))
    result = engine.transcribe(Audio(torch.cat([silence, speeches]), RATE, "speeches"))
    assert words(result.text)[-3:] == ["for", "your", "country"]
    assert result.duration == seconds
    assert_in_order(result)


def test_a_talk_is_read_to_its_end(engine: ASREngine, talk: torch.Tensor) -> None:
    result = engine.transcribe(Audio(talk, RATE, "talk"))
    assert words(result.text)[-3:] == LAST_WORDS
    assert_in_order(result)


def chord(samples: int) -> torch.Tensor:
    at = torch.arange(samples) / RATE
    return sum((0.1 * torch.sin(2 * torch.pi * pitch * at) for pitch in (261.6, 329.6, 392.0)), torch.zeros(samples))


def noise(samples: int) -> torch.Tensor:
    return 10 ** (-55 / 20) * torch.randn(samples, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("form", ["json", "txt"])
def test_without_speech_there_is_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_sounds(tmp_path)
    assert main(["transcribe", str(tmp_path), "--model", MODEL, "--quiet", "--format", form]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    for line in lines:
        if form == "txt":
            assert line.endswith(".wav:")
        else:
            assert (json.loads(line)["text"], json.loads(line)["segments"]) == ("", [])


EMPTY = {"txt": "\n", "srt": "", "vtt": "WEBVTT\n\n", "tsv": "start\tend\ttext\n", "lrc": ""}


@pytest.mark.parametrize("options", [[], ["--detector", "energy"], ["--word-timestamps"]])
def test_without_speech_every_format_is_valid_and_empty(tmp_path: Path, options: list[str]) -> None:
    write_sounds(tmp_path / "in")
    forms = ["--format", ",".join(WRITERS), "-o", str(tmp_path / "out")]
    assert main(["transcribe", str(tmp_path / "in"), "--model", MODEL, "--quiet", *forms, *options]) == 0
    written = sorted((tmp_path / "out").iterdir())
    assert len(written) == 9 * len(WRITERS)
    for path in written:
        content, form = path.read_text(), path.suffix.removeprefix(".")
        if form in EMPTY:
            assert content == EMPTY[form]
        else:
            found = json.loads(content)
            assert (found["text"], found["segments"]) == ("", [])
            assert found["language"] in ("en", "english")


def write_sounds(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    sounds = {"silence": torch.zeros, "noise": noise, "chord": chord}
    for name, sound in sounds.items():
        for seconds in (1, 5, 30):
            write(folder / f"{name}-{seconds}.wav", sound(seconds * RATE))


def write(path: Path, samples: torch.Tensor) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((samples * 32767).round().to(torch.int16).numpy().tobytes())


def test_what_a_detector_finds_reads_the_same_and_at_once(
    engine: ASREngine, talk: torch.Tensor, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jiwer = pytest.importorskip("jiwer", reason="scores words: pip install jiwer")
    audio = Audio(talk, RATE, "talk")
    sequential = engine.transcribe(audio)
    config = EngineConfig(model=MODEL, device=device, dtype="float32", detector="energy")
    with ASREngine(config) as batched:
        batches: list[int] = []
        start = batched._runner.start

        def counting(windows: Sequence[Window]) -> Any:
            batches.append(len(windows))
            return start(windows)

        monkeypatch.setattr(batched._runner, "start", counting)
        result = batched.transcribe(audio)
    assert batches[0] >= 2
    assert_in_order(result)
    assert words(result.text)[-3:] == LAST_WORDS
    assert jiwer.wer(" ".join(words(sequential.text)), " ".join(words(result.text))) <= 0.05


def test_words_join_to_the_text_and_are_timed_within_the_audio(engine: ASREngine, talk: torch.Tensor) -> None:
    result = engine.transcribe(Audio(talk, RATE, "talk"), DecodingOptions(word_timestamps=True))
    assert_in_order(result)
    for segment in result.segments:
        assert segment.words
        assert " ".join(word.text for word in segment.words) == segment.text
        for word in segment.words:
            assert word.confidence is not None
            assert 0 <= word.confidence <= 1


def test_words_do_not_change_the_text(engine: ASREngine, kennedy: Audio) -> None:
    plain = engine.transcribe(kennedy)
    timed = engine.transcribe(kennedy, DecodingOptions(word_timestamps=True))
    assert (timed.text, [segment.tokens for segment in timed.segments]) == (
        plain.text,
        [segment.tokens for segment in plain.segments],
    )
    assert [segment.words for segment in plain.segments] == [(), ()]


@pytest.fixture
def contexts(engine: ASREngine, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """What stands before the control tokens in the prompt of each window."""
    head, seen = engine._runner._head, []
    write_prompt, control = head.prompt, engine._runner.model.config.tokens

    def observed(*given: Any) -> Any:
        prompt = write_prompt(*given)
        seen.append(prompt.tokens[: prompt.tokens.index(control.start)])
        return prompt

    monkeypatch.setattr(head, "prompt", observed)
    return seen


@pytest.mark.parametrize("conditioned", [True, False])
def test_the_text_before_is_passed_on_when_asked_for(
    engine: ASREngine, talk: torch.Tensor, contexts: list[tuple[int, ...]], conditioned: bool
) -> None:
    options = DecodingOptions(condition_on_previous=conditioned, fallback=())
    result = engine.transcribe(Audio(talk, RATE, "talk"), options)
    assert len(contexts) > 1
    previous = engine._runner.model.config.tokens.previous
    assert contexts[0] == ()
    begin = engine._runner.model.config.tokens.timestamp_begin
    said = [token for segment in result.segments for token in segment.tokens]
    for context in contexts[1:]:
        assert bool(context) == conditioned
        if conditioned:
            text = [token for token in context[1:] if token < begin]
            assert (context[0], text) == (previous, said[: len(text)])
            # Without the times, the model would tell none either.
            assert len(context) - len(text) > 2


def test_text_drawn_at_a_high_temperature_is_not_passed_on(
    engine: ASREngine, talk: torch.Tensor, contexts: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    advance, hottest = engine._runner.advance, 0.6

    def doubtful() -> list[tuple[Window, Any]]:
        """The first window is improbable below 0.6."""
        return [(window, worse(window, decoded)) for window, decoded in advance()]

    def worse(window: Window, decoded: Decoded) -> Decoded:
        if window.start_samples or window.options.temperature >= hottest:
            return decoded
        return replace(decoded, hypotheses=(Hypothesis(decoded.tokens, -9.0),), silence=0.0)

    monkeypatch.setattr(engine._runner, "advance", doubtful)
    options = DecodingOptions(condition_on_previous=True, fallback=(0.3, hottest), least_logprob=-5, most_compression=9)
    result = engine.transcribe(Audio(talk, RATE, "talk"), options)
    assert result.segments[0].temperature == hottest
    assert result.segments[-1].temperature == 0
    assert contexts[:4] == [(), (), (), ()]  # three attempts at the first window, and the second
    assert all(contexts[4:])
