"""Speech as pieces that are short enough, with nothing lost, while it is being heard."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.detectors.loudness import loudness
from oasr.detectors.pieces import PieceStream
from oasr.errors import ModelError
from oasr.interfaces.detector import Span, SpeechEnded, SpeechEvent, SpeechStarted
from oasr.testing.detector_suite import toy_recording

SLACK = 2e-6
HOP = 0.1
FLAT = np.ones(1000)
# Speech of a detector: in order, and apart or touching.
_SPANS = st.lists(st.floats(0, 100), max_size=24).map(
    lambda times: [Span(*pair) for pair in list(pairwise(sorted(times)))[::2] if pair[0] < pair[1]]
)
# Few values, so that some are equal, and exact in binary, so that their means are.
_POWERS = st.integers(0, 10**6).map(lambda seed: np.random.default_rng(seed).integers(0, 10, 1000) / 16)
_LONGEST = st.floats(2, 120)


def spans(*pairs: tuple[float, float]) -> list[Span]:
    return [Span(*pair) for pair in pairs]


def quiet_at(*times: float) -> np.ndarray:
    powers = np.ones(1000)
    for depth, time in enumerate(times, start=1):
        powers[round(time / HOP) - 2 : round(time / HOP) + 2] = 0.1**depth
    return powers


def streamed(
    speech: Sequence[Span],
    duration: float,
    longest: float,
    powers: np.ndarray = FLAT,
    *,
    latency: float = 0.0,
    told: Sequence[float] = (),
    pushes: Sequence[float] = (),
) -> list[Span]:
    """Pieces of speech, heard up to each time of `pushes` and then to the end.

    `told` are the seconds that each start and end is told late, 0 when there are none.
    """
    stream = PieceStream(longest, HOP, latency)
    events: list[SpeechEvent] = []
    for span in speech:
        events += [SpeechStarted(span.start), SpeechEnded(span.end)]
    late = [*told, *[0.0] * len(events)]
    # One that is told late holds up those behind it.
    due = np.maximum.accumulate([event.at + seconds for event, seconds in zip(events, late, strict=False)] or [0.0])
    found, sent, frames = [], 0, 0
    for heard in [*sorted(time for time in pushes if time < duration), duration]:
        ready = int(np.searchsorted(due, heard, side="right")) if events else 0
        measured = int(heard / HOP)
        found += stream.push(heard, events[sent:ready], powers[frames:measured])
        before, sent, frames = stream.position, ready, measured
        assert all(piece.end <= heard for piece in found)
        assert all(piece.start < before for piece in found)
    rest = stream.finish(duration, events[sent:])
    assert all(piece.start >= before for piece in rest)
    return found + rest


def offline(speech: Sequence[Span], longest: float, powers: np.ndarray) -> list[Span]:
    """What the pieces are of speech that is known from its start to its end."""
    united: list[Span] = []
    for span in speech:
        if united and span.start <= united[-1].end:
            united[-1] = Span(united[-1].start, span.end)
        else:
            united.append(span)
    parts = []
    for span in united:
        start = span.start
        while span.end - start > longest + 1e-6:
            earliest = start + longest * 2 / 3
            latest = min(start + longest, max(earliest, span.end - 0.1 * longest))
            middles = range(
                max(math.ceil(earliest / HOP - 1), 0) + 1, min(math.floor(latest / HOP - 1) + 2, len(powers))
            )
            middle = min(middles, key=lambda n: (powers[n - 1] + powers[n], -n), default=None)
            cut = latest if middle is None else middle * HOP
            parts.append(Span(start, cut))
            start = cut
        parts.append(Span(start, span.end))
    pieces: list[Span] = []
    for part in parts:
        if pieces and part.end - pieces[-1].start <= longest + 1e-6:
            pieces[-1] = Span(pieces[-1].start, part.end)
        else:
            pieces.append(part)
    return pieces


def test_no_speech_makes_no_piece() -> None:
    assert streamed([], 10.0, 30.0) == []


def test_neighbours_share_a_piece_while_they_fit() -> None:
    speech = spans((1, 9), (10, 19), (21, 31), (32, 40))
    assert streamed(speech, 50, 30) == spans((1, 31), (32, 40))


def test_what_fits_exactly_is_whole() -> None:
    assert streamed(spans((0.1, 0.1 + 0.3 * 3)), 10, 0.9) == spans((0.1, 0.1 + 0.3 * 3))
    assert streamed(spans((0, 30)), 30, 30) == spans((0, 30))


def test_long_speech_is_cut_at_the_limit_where_loudness_tells_nothing() -> None:
    assert streamed(spans((0, 70)), 70, 30) == spans((0, 30), (30, 60), (60, 70))


def test_long_speech_is_cut_at_its_quietest_pause_near_the_limit() -> None:
    cut = streamed(spans((0, 50)), 50, 30, quiet_at(28.5, 22, 26))
    assert cut == [Span(0, pytest.approx(26, abs=0.15)), Span(cut[0].end, 50)]


def test_hardly_a_word_is_left_alone() -> None:
    assert streamed(spans((0, 30.2)), 31, 30)[-1].duration == pytest.approx(3, abs=0.1)


def test_a_sound_next_to_deep_silence_is_no_pause() -> None:
    powers = np.ones(1000)
    powers[245:255] = 1e-4  # a real pause in a noisy room
    powers[281] = 0.0  # one dead frame
    first, *_ = streamed(spans((0, 60)), 60, 30, powers)
    assert first.end == pytest.approx(25, abs=0.5)


def test_toy_speech_is_cut_between_words() -> None:
    speech = [Span(start + 0.1, start + 2.0) for start in np.arange(0.0, 40.0, 2.2).tolist()]
    measured = loudness(toy_recording(16_000, speech, 42.0).samples, 16_000)
    stream = PieceStream(10.0, measured.hop, 0.0)
    cut = [*stream.push(42.0, [SpeechStarted(0.0)], measured.powers), *stream.finish(42.0, [SpeechEnded(42.0)])]
    assert len(cut) > 4
    assert all(not (word.start < piece.end < word.end) for piece in cut[:-1] for word in speech)


@pytest.mark.parametrize("longest", [0, -1, math.nan])
def test_a_limit_must_be_above_zero(longest: float) -> None:
    with pytest.raises(ValueError, match="longest"):
        PieceStream(longest, HOP, 0.0)


def test_speech_that_does_not_end_is_cut_all_the_same() -> None:
    stream = PieceStream(30.0, HOP, 5.0)
    cut = stream.push(100.0, [SpeechStarted(0.0)], FLAT)
    assert [piece.end for piece in cut] == [30, 60]  # the third may yet be shorter, to leave a rest
    assert stream.position == 60


def test_what_is_held_does_not_grow() -> None:
    stream = PieceStream(30.0, 0.02, 5.0)
    for second in range(1, 4000):
        starts = second % 50 == 1
        stream.push(
            second, [SpeechStarted(second - 1) if starts else SpeechEnded(second)][: second % 50 < 2], FLAT[:50]
        )
        assert second - stream.position < 100
        assert len(stream._powers) < 50 * 100


def test_what_is_told_too_late_is_refused() -> None:
    stream = PieceStream(30.0, HOP, 5.0)
    stream.push(60.0, [], FLAT[:600])
    with pytest.raises(ModelError, match=r"10\.00 s .* latency must be more than 5 s"):
        stream.push(61.0, [SpeechStarted(10.0)], FLAT[:10])


@given(speech=_SPANS, longest=_LONGEST, powers=_POWERS)
def test_pieces_are_short_and_apart_and_hold_all_speech(speech: list[Span], longest: float, powers: np.ndarray) -> None:
    found = streamed(speech, 100.0, longest, powers)
    assert all(0 <= piece.start < piece.end <= 100 for piece in found)
    assert all(piece.duration <= longest + SLACK for piece in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    for span in speech:
        kept = sum(max(0.0, min(piece.end, span.end) - max(piece.start, span.start)) for piece in found)
        assert kept >= span.duration - SLACK


@given(speech=_SPANS, longest=_LONGEST)
def test_every_piece_holds_speech_at_both_ends(speech: list[Span], longest: float) -> None:
    for piece in streamed(speech, 100.0, longest):
        assert any(span.start <= piece.start < span.end for span in speech)
        assert any(span.start < piece.end <= span.end for span in speech)


@given(
    speech=_SPANS,
    longest=_LONGEST,
    powers=_POWERS,
    latency=st.floats(0, 40),
    late=st.lists(st.floats(0, 1), max_size=24),
    pushes=st.lists(st.floats(0, 100), max_size=30),
)
def test_pieces_are_those_of_the_whole_however_it_is_heard(
    speech: list[Span],
    longest: float,
    powers: np.ndarray,
    latency: float,
    late: list[float],
    pushes: list[float],
) -> None:
    told = [part * latency for part in late]
    found = streamed(speech, 100.0, longest, powers, latency=latency, told=told, pushes=pushes)
    whole = offline(speech, longest, powers)
    assert [(piece.start, piece.end) for piece in found] == [
        (pytest.approx(piece.start, abs=1e-9), pytest.approx(piece.end, abs=1e-9)) for piece in whole
    ]
    assert found == streamed(speech, 100.0, longest, powers)
