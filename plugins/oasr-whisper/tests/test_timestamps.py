"""Timestamps are what openai/whisper allows, and windows are read to the last time that can be relied on."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oasr.audio import Audio, read_audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.engine.window import Decoded
from oasr.interfaces.heads import SpokenSegment, WindowReading
from oasr_whisper.config import ControlTokens
from oasr_whisper.timestamps import TimestampRule, read_window

TEXT, TIMES = 10, 40
CONTROL = ControlTokens(
    end=TEXT,
    start=TEXT + 1,
    translate=TEXT + 2,
    transcribe=TEXT + 3,
    previous=TEXT + 4,
    no_speech=TEXT + 5,
    no_timestamps=TEXT + 6,
    timestamp_begin=TEXT + 7,
    languages={},
)
BEGIN = CONTROL.timestamp_begin
RULE = TimestampRule(begin=BEGIN, end=TEXT, no_timestamps=CONTROL.no_timestamps, latest_first=5)


def random_logits(generator: torch.Generator, rows: int) -> torch.Tensor:
    """Sometimes one token stands out, so that now text and now times are likeliest."""
    logits = torch.randn(rows, BEGIN + TIMES, generator=generator) * 3
    logits[:, BEGIN:] -= 4 * torch.rand(rows, 1, generator=generator)
    return logits


def histories(generator: torch.Generator, rows: int, length: int) -> list[list[int]]:
    """What a decoder could have chosen under the rule, each of some length up to the longest."""
    said: list[list[int]] = [[] for _ in range(rows)]
    for _ in range(length):
        for history in said:
            if history and history[-1] == CONTROL.end:
                continue
            tokens = torch.tensor([[*history, 0]])
            allowed = RULE.apply(random_logits(generator, 1), tokens, torch.tensor([len(history)]))[0]
            allowed[TEXT + 1 : BEGIN] = -torch.inf  # control tokens are suppressed by another rule
            history.append(int(allowed.softmax(dim=0).multinomial(1, generator=generator)))
    lengths = torch.randint(0, length + 1, (rows,), generator=generator).tolist()
    return [history[:kept] for history, kept in zip(said, lengths, strict=True)]


@pytest.mark.oracle
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_the_rule_allows_what_openai_whisper_allows(seed: int, length: int) -> None:
    """Rows of a batch have histories of different lengths; what lies behind them is arbitrary."""
    decoding = pytest.importorskip("whisper.decoding", reason="the oracle: pip install openai-whisper")
    names = SimpleNamespace(no_timestamps=CONTROL.no_timestamps, timestamp_begin=BEGIN, eot=TEXT)
    generator = torch.Generator().manual_seed(seed)
    said = histories(generator, rows=4, length=length)
    logits = random_logits(generator, 4)
    rubbish = torch.randint(0, BEGIN + TIMES, (4, length + 1), generator=generator)
    for row, history in zip(rubbish, said, strict=True):
        row[: len(history)] = torch.tensor(history, dtype=torch.int64)
    masked = RULE.apply(logits.clone(), rubbish, torch.tensor([len(history) for history in said]))
    for row, history in enumerate(said):
        expected = logits[row : row + 1].clone()
        prompt = [CONTROL.start]
        oracle = decoding.ApplyTimestampRules(names, len(prompt), RULE.latest_first)
        oracle.apply(expected, torch.tensor([[*prompt, *history]]))
        assert torch.equal(masked[row], expected[0])


@pytest.mark.parametrize("clip", [0, 1, 2])
@pytest.mark.parametrize(("search", "beam"), [("greedy", 1), ("beam5", 5)])
def test_recorded_ids_with_timestamps(
    shared: Callable[[str], Path], clip: int, search: str, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What transformers reads in one window, times included."""
    folder = shared("goldens/whisper-multilingual")
    values = json.loads((folder / "expected.json").read_text())
    audio = read_audio(shared(values["clips"][clip].removeprefix("shared/")), target_rate=16_000)
    with ASREngine(EngineConfig(model=folder / "checkpoint", device="cpu")) as engine:
        windows = observe(engine, monkeypatch)
        plain = {"fallback": (), "most_silence": 1.0}
        engine.transcribe(audio, DecodingOptions(language="en", max_new_tokens=40, beam=beam, **plain))
    prompt, end = 3, values["token_ids"]["<|endoftext|>"]
    recorded = values["per_clip"][clip][f"single_window_{search}_timestamps"]["ids"][prompt:]
    assert windows[0] == [token for token in recorded if token != end]


@pytest.mark.parametrize("clip", [0, 1, 2])
@pytest.mark.parametrize(("search", "beam"), [("greedy", 1), ("beam5", 5)])
def test_recorded_ids_of_a_window_that_is_read_on(
    shared: Callable[[str], Path], clip: int, search: str, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers fills a clip with silence to 30 s, and goes on from the last time within them."""
    folder = shared("goldens/whisper-multilingual")
    values = json.loads((folder / "expected.json").read_text())
    audio = read_audio(shared(values["clips"][clip].removeprefix("shared/")), target_rate=16_000)
    filled = Audio(torch.nn.functional.pad(audio.samples, (0, 480_000 - len(audio.samples))), 16_000, "filled")
    with ASREngine(EngineConfig(model=folder / "checkpoint", device="cpu")) as engine:
        windows = observe(engine, monkeypatch)
        plain = {"fallback": (), "most_silence": 1.0}
        engine.transcribe(filled, DecodingOptions(language="en", max_new_tokens=40, beam=beam, **plain))
    begin = values["token_ids"]["<|0.00|>"]
    kept = [token for window in windows for token in window[: complete(window, begin)]]
    assert kept == values["per_clip"][clip][f"{search}_timestamps"]["ids"]


def complete(tokens: Sequence[int], begin: int) -> int:
    """How many tokens there are up to the last pair of times; all when a single time ends them."""
    is_time = [token >= begin for token in tokens]
    pairs = [n for n in range(1, len(tokens)) if is_time[n - 1] and is_time[n]]
    return pairs[-1] + 1 if pairs and is_time[-2:] != [False, True] else len(tokens)


def observe(engine: ASREngine, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The tokens of each window, as they will have been read."""
    read, windows = engine._runner.read, []

    def observed(decoded: Decoded, seconds: float) -> WindowReading:
        windows.append(list(decoded.tokens))
        return read(decoded, seconds)

    monkeypatch.setattr(engine._runner, "read", observed)
    return windows


def at(seconds: float) -> int:
    """The token of a time."""
    return BEGIN + round(seconds / 0.02)


def reading(*tokens: int, seconds: float = 30.0) -> WindowReading:
    """What tokens say, without the tokens that the next window is read after."""
    result = read_window(tokens, CONTROL, seconds)
    return replace(result, segments=tuple(replace(segment, context=()) for segment in result.segments))


def segment(start: float, end: float, *tokens: int) -> Any:
    return SpokenSegment(pytest.approx(start), pytest.approx(end), tokens)


def test_a_pair_of_times_marks_a_segment_and_where_to_go_on() -> None:
    result = reading(at(0), 1, 2, at(1.5), at(1.5), 3, at(4), at(4), 4, 5)
    assert result.segments == (segment(0, 1.5, 1, 2), segment(1.5, 4, 3))
    assert result.resume == pytest.approx(4)


def test_a_pause_between_segments_is_left_out() -> None:
    result = reading(at(0.5), 1, at(2), at(5), 2, at(7), at(7))
    assert result.segments == (segment(0.5, 2, 1), segment(5, 7, 2))
    assert result.resume == pytest.approx(7)


def test_a_single_time_at_the_end_says_that_nothing_follows() -> None:
    result = reading(at(0), 1, at(2), at(2), 2, at(3))
    assert result.segments == (segment(0, 2, 1), segment(2, 3, 2))
    assert result.resume == 30


def test_one_segment_ends_at_its_time_and_all_is_read() -> None:
    assert reading(at(0), 1, 2, at(8)) == WindowReading((segment(0, 8, 1, 2),), 30)


def test_without_an_end_a_segment_lasts_as_long_as_the_window() -> None:
    assert reading(at(0), 1, 2) == WindowReading((segment(0, 30, 1, 2),), 30)
    assert reading(1, 2) == WindowReading((segment(0, 30, 1, 2),), 30)


def test_an_end_at_zero_is_none() -> None:
    assert reading(at(0), 1, at(0)) == WindowReading((segment(0, 30, 1),), 30)


def test_the_next_window_is_read_after_the_times_too() -> None:
    tokens = (at(0), 1, 2, at(1.5), at(1.5), 3, at(4), at(4), 4)
    first, second = read_window(tokens, CONTROL, 30.0).segments
    assert (first.context, second.context) == (tokens[:4], tokens[4:7])


def test_no_tokens_are_no_text() -> None:
    assert reading() == WindowReading((segment(0, 30),), 30)


def test_times_beyond_a_short_window_are_its_end() -> None:
    result = reading(at(0), 1, at(0.4), at(0.6), 2, at(0.7), at(0.7), seconds=0.5)
    assert result.segments == (segment(0, 0.4, 1), segment(0.5, 0.5, 2))
    assert result.resume == 0.5
    assert reading(at(0), 1, at(0.7), seconds=0.5) == WindowReading((segment(0, 0.5, 1),), 0.5)


@given(
    st.lists(st.one_of(st.integers(0, TEXT - 1), st.integers(BEGIN, BEGIN + TIMES - 1)), max_size=15),
    st.floats(0.1, 0.8),
)
def test_whatever_was_chosen_lies_within_the_window_and_no_text_is_skipped(tokens: list[int], seconds: float) -> None:
    result = reading(*tokens, seconds=seconds)
    assert 0 <= result.resume <= seconds
    for each in result.segments:
        assert 0 <= each.start <= each.end <= seconds
    kept = [token for each in result.segments for token in each.tokens]
    text = [token for token in tokens if token < TEXT]
    assert kept == text[: len(kept)]
