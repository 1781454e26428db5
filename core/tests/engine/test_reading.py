"""Audio is read on from where the last segment ended, and again where the text is bad."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from oasr.audio import Audio
from oasr.engine import ASREngine, DecodingOptions
from oasr.engine.request import _heard_to
from oasr.engine.window import Decoded, Window
from oasr.errors import RequestAbortedError, RequestError
from oasr.interfaces.heads import SpokenSegment, WindowReading
from oasr.plugin import Kind
from oasr.testing.toys.config import ToyConfig
from oasr.testing.toys.decoder import ToyDecoder
from oasr.testing.toys.model import ToyArchitecture, ToyHead
from oasr.types import StepStats

from .conftest import GERMAN, MakeEngine, speech

WINDOW_SECONDS = 1.0
LADDER = DecodingOptions(language="de", fallback=(0.2, 0.4, 0.6))


class SixTenths(ToyHead):
    """Says that each window holds a segment of 0.6 s, and then the beginning of another."""

    def read(self, tokens: Sequence[int], seconds: float) -> WindowReading:
        end = min(0.6, seconds)
        return WindowReading((SpokenSegment(0.0, end, tuple(tokens)),), end)


class Stuck(ToyHead):
    """Says that each window holds the beginning of a segment only."""

    def read(self, tokens: Sequence[int], seconds: float) -> WindowReading:
        return WindowReading((SpokenSegment(0.0, seconds, tuple(tokens)),), 0.0)


class Timed(ToyArchitecture):
    """A toy that tells times."""

    reader: type[ToyHead] = SixTenths

    def __init__(self, config: ToyConfig):
        super().__init__(config)
        self.facts = replace(self.facts, timestamps=True)

    def head(self, name: str) -> ToyHead:
        return self.reader(self)


class NeverGoingOn(Timed):
    reader = Stuck


class Sampling(ToyDecoder):
    """Takes any temperature."""

    def check(self, options: DecodingOptions) -> None:
        return


Verdict = Callable[[Window], dict[str, Any]]
Attempts = list[tuple[str, float, float]]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Callable[[ASREngine, Verdict], Attempts]:
    """Let a verdict say how sure an engine is of each window; the list fills with their source, start and temperature.

    `judge(engine, lambda window: {"avg_logprob": -2.0})`
    """

    def install(engine: ASREngine, verdict: Verdict) -> Attempts:
        advance, attempts = engine._runner.advance, []

        def judged() -> list[tuple[Window, Any]]:
            results = advance()
            for window, _ in results:
                source = engine._owners[window.key][0].source
                attempts.append((source, window.start_samples / 16_000, window.options.temperature))
            return [(window, judged_as(decoded, **verdict(window))) for window, decoded in results]

        monkeypatch.setattr(engine._runner, "advance", judged)
        return attempts

    return install


Judge = Callable[[ASREngine, Verdict], Attempts]


def judged_as(decoded: Decoded, **verdict: Any) -> Decoded:
    """What was decoded, but for what a verdict says of its best hypothesis and of silence."""
    of_window = {name: verdict.pop(name) for name in ("silence",) if name in verdict}
    return replace(decoded, hypotheses=(replace(decoded.hypotheses[0], **verdict),), **of_window)


def sure(window: Window) -> dict[str, Any]:
    return {"avg_logprob": -0.1}


def unsure(window: Window) -> dict[str, Any]:
    return {"avg_logprob": -2.0}


def unsure_below(temperature: float) -> Verdict:
    return lambda window: sure(window) if window.options.temperature >= temperature else unsure(window)


def temperatures(attempts: Attempts) -> list[float]:
    return [temperature for _, _, temperature in attempts]


def starts(attempts: Attempts) -> list[float]:
    return [start for _, start, _ in attempts]


def test_a_text_that_is_probable_is_taken(engine: ASREngine, judge: Judge) -> None:
    attempts = judge(engine, sure)
    assert engine.transcribe(speech(1), LADDER).segments[0].temperature == 0
    assert temperatures(attempts) == [0]


def test_the_first_temperature_with_a_probable_text_is_taken(engine: ASREngine, judge: Judge) -> None:
    attempts = judge(engine, unsure_below(0.4))
    [segment] = engine.transcribe(speech(1), replace(LADDER, temperature=0.0)).segments
    assert temperatures(attempts) == [0, 0.2, 0.4]
    assert (segment.temperature, segment.avg_logprob) == (0.4, -0.1)


def test_fallback_begins_above_the_temperature_asked_for(make_engine: MakeEngine, judge: Judge) -> None:
    engine = make_engine(components={(Kind.DECODER, "toy-greedy"): Sampling})
    attempts = judge(engine, unsure)
    engine.transcribe(speech(1), replace(LADDER, temperature=0.4))
    assert temperatures(attempts) == [0.4, 0.6]


def test_repetition_is_read_again(engine: ASREngine, judge: Judge) -> None:
    def stammer(window: Window) -> dict[str, Any]:
        return sure(window) | ({} if window.options.temperature else {"tokens": tuple(b" ha" * 30)})

    attempts = judge(engine, stammer)
    [segment] = engine.transcribe(speech(1), LADDER).segments
    assert temperatures(attempts) == [0, 0.2]
    assert "ha ha ha" not in segment.text
    assert segment.compression_ratio < LADDER.most_compression


@pytest.mark.parametrize("fallback", [(), (0.2, 0.4)])
def test_a_loop_that_no_temperature_helps_is_cut_and_said_once(
    engine: ASREngine, judge: Judge, fallback: tuple[float, ...]
) -> None:
    attempts = judge(engine, lambda window: sure(window) | {"tokens": tuple(b"well " + b"ha ha hey " * 20)})
    result = engine.transcribe(speech(1), replace(LADDER, fallback=fallback))
    assert result.text == "well ha ha hey"
    assert temperatures(attempts) == [0, *fallback]
    [note] = result.notes
    assert note.startswith("the text repeated itself")


def test_a_loop_is_no_context_for_what_follows(
    make_engine: MakeEngine, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(components={(Kind.ARCHITECTURE, "toy"): Timed})
    contexts: list[tuple[int, ...]] = []
    write = ToyHead.prompt

    def observed(self: ToyHead, options: DecodingOptions, language: str, context: tuple[int, ...], *rest: Any) -> Any:
        contexts.append(tuple(context))
        return write(self, options, language, context, *rest)

    monkeypatch.setattr(ToyHead, "prompt", observed)
    loop = tuple(b"ha " * 40)
    judge(engine, lambda window: sure(window) | ({} if window.start_samples else {"tokens": loop}))
    engine.transcribe(speech(1, seconds=2.0), replace(GERMAN, condition_on_previous=True))
    assert contexts[:2] == [(), ()]
    assert contexts[2]


def test_after_the_last_temperature_the_text_is_taken_as_it_is(engine: ASREngine, judge: Judge) -> None:
    attempts = judge(engine, unsure)
    [segment] = engine.transcribe(speech(1), LADDER).segments
    assert temperatures(attempts) == [0, *LADDER.fallback]
    assert segment.text
    assert segment.temperature == LADDER.fallback[-1]


def test_without_fallback_nothing_is_read_again(engine: ASREngine, judge: Judge) -> None:
    attempts = judge(engine, unsure)
    assert engine.transcribe(speech(1), replace(LADDER, fallback=())).text
    assert temperatures(attempts) == [0]


def test_silence_is_no_text_and_is_not_read_again(engine: ASREngine, judge: Judge) -> None:
    attempts = judge(engine, lambda window: {"avg_logprob": -2.0, "silence": 0.9})
    result = engine.transcribe(speech(1), LADDER)
    assert (result.text, result.segments) == ("", ())
    assert temperatures(attempts) == [0]


@pytest.mark.parametrize(("avg_logprob", "silence"), [(-0.1, 0.9), (-2.0, 0.5), (-2.0, None)])
def test_probable_text_and_likely_speech_are_no_silence(
    engine: ASREngine, judge: Judge, avg_logprob: float, silence: float | None
) -> None:
    judge(engine, lambda window: {"avg_logprob": avg_logprob, "silence": silence})
    [segment] = engine.transcribe(speech(1), LADDER).segments
    assert segment.no_speech_prob == silence


def test_thresholds_are_those_of_the_request(engine: ASREngine, judge: Judge) -> None:
    attempts = judge(engine, lambda window: {"avg_logprob": -2.0, "silence": 0.9})
    assert engine.transcribe(speech(1), replace(LADDER, least_logprob=-3.0)).text
    assert engine.transcribe(speech(1), replace(LADDER, most_silence=0.95)).text
    assert temperatures(attempts) == [0, 0, *LADDER.fallback]


def test_one_bad_window_is_read_again_alone(engine: ASREngine, judge: Judge) -> None:
    def second_is_bad(window: Window) -> dict[str, Any]:
        return unsure_below(0.2)(window) if window.start_samples == 16_000 else sure(window)

    attempts = judge(engine, second_is_bad)
    result = engine.transcribe(speech(1, seconds=3.0), LADDER)
    assert [segment.temperature for segment in result.segments] == [0, 0.2, 0]
    assert [segment.start for segment in result.segments] == [0, 1, 2]
    assert len(attempts) == 4


def test_the_next_window_begins_where_the_last_segment_ended(make_engine: MakeEngine, judge: Judge) -> None:
    engine = make_engine(components={(Kind.ARCHITECTURE, "toy"): Timed})
    attempts = judge(engine, sure)
    result = engine.transcribe(speech(1, seconds=2.0), GERMAN)
    assert starts(attempts) == pytest.approx([0, 0.6, 1.2, 1.8])
    edges = [(segment.start, segment.end) for segment in result.segments]
    assert edges == [pytest.approx(edge) for edge in [(0, 0.6), (0.6, 1.2), (1.2, 1.8), (1.8, 2.0)]]


def test_a_window_that_would_go_on_where_it_began_is_left_behind(make_engine: MakeEngine, judge: Judge) -> None:
    engine = make_engine(components={(Kind.ARCHITECTURE, "toy"): NeverGoingOn})
    attempts = judge(engine, sure)
    result = engine.transcribe(speech(1, seconds=2.5), GERMAN)
    assert starts(attempts) == [0, WINDOW_SECONDS, 2 * WINDOW_SECONDS]
    assert result.segments[-1].end == 2.5


def test_windows_are_whole_where_no_times_are_wanted(make_engine: MakeEngine, judge: Judge) -> None:
    engine = make_engine(components={(Kind.ARCHITECTURE, "toy"): Timed})
    judge(engine, sure)
    windows = [window.samples.shape for window in _windows(engine, replace(GERMAN, timestamps=False))]
    assert windows == [(16_000,), (16_000,), (8_000,)]


def _windows(engine: ASREngine, options: DecodingOptions) -> list[Window]:
    """The windows of 2.5 s that are there before any is read."""
    return engine._request(speech(1, seconds=2.5), options).waiting


def test_long_inputs_take_turns(make_engine: MakeEngine, judge: Judge) -> None:
    sources = [speech(1, seconds=2.0), speech(2, seconds=2.0)]
    lonely = make_engine(rows=1, components={(Kind.ARCHITECTURE, "toy"): Timed})
    expected = [lonely.transcribe(source, GERMAN) for source in sources]
    engine = make_engine(rows=1, components={(Kind.ARCHITECTURE, "toy"): Timed})
    attempts = judge(engine, lambda window: {})
    ids = [engine.add_request(source, GERMAN) for source in sources]
    outcomes = engine.run()
    assert [source for source, _, _ in attempts] == [source.source for source in sources] * 4
    assert [outcomes[each].transcript for each in ids] == expected


@pytest.mark.parametrize("option", ["timestamps", "word_timestamps"])
def test_times_are_refused_by_name_where_the_model_has_none(engine: ASREngine, option: str) -> None:
    options = DecodingOptions(**{option: True})
    for attempt in (engine.transcribe, engine.add_request):
        with pytest.raises(RequestError, match=f"cannot honour {option}"):
            attempt(speech(1), options)
    assert engine.run() == {}


def test_aborting_ends_what_is_being_read_again(
    engine: ASREngine, judge: Judge, steps: list[StepStats], alone: Callable[..., str]
) -> None:
    def first_is_bad(window: Window) -> dict[str, Any]:
        return unsure(window) if engine._owners[window.key][0].source == "speech-1" else sure(window)

    attempts = judge(engine, first_is_bad)
    bad = engine.add_request(speech(1), LADDER)
    while len(attempts) < 2:
        assert engine.step() == {}
    engine.abort(bad)
    good = engine.add_request(speech(2), GERMAN)
    outcomes = engine.run()
    assert isinstance(outcomes[bad].error, RequestAbortedError)
    assert outcomes[good].transcript.text == alone(speech(2), GERMAN)
    assert steps[-1] == StepStats(waiting=0, running=0)
    assert len(attempts) == 3


LOUD, QUIET = torch.rand(160_000) - 0.5, torch.zeros(160_000)


@pytest.mark.parametrize(
    ("end", "samples", "resume"),
    [
        pytest.param(4.0, LOUD, 4.0, id="speech after the last segment is read again"),
        pytest.param(4.0, torch.cat([LOUD[:64_000], QUIET[:96_000]]), 10.0, id="silence after it is not"),
        pytest.param(8.0, LOUD, 10.0, id="a breath after it is not"),
        pytest.param(10.0, LOUD, 10.0, id="a window read to its end is done"),
    ],
)
def test_a_window_counts_as_read_up_to_its_last_segment(end: float, samples: torch.Tensor, resume: float) -> None:
    reading = WindowReading((SpokenSegment(0.0, end, (1, 2)),), 10.0)
    assert _heard_to(reading, samples, 16_000) == resume


def test_a_window_without_text_counts_as_read() -> None:
    assert _heard_to(WindowReading((), 10.0), LOUD, 16_000) == 10.0


def test_an_input_in_which_nobody_speaks_ends_without_text(make_engine: MakeEngine) -> None:
    engine = make_engine(detector="energy")
    results = engine.transcribe([Audio(QUIET, 16_000, "silence"), Audio(QUIET[:8000], 16_000, "short silence")])
    assert [(result.text, result.segments) for result in results] == [("", ()), ("", ())]
    with pytest.raises(RequestError, match="nobody speaks"):
        engine.detect_language(Audio(QUIET, 16_000, "silence"))
