"""Speech as pieces that are short enough, with nothing lost."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.detectors.loudness import Loudness, loudness
from oasr.detectors.pieces import pieces
from oasr.interfaces.detector import Span
from oasr.testing.detector_suite import toy_recording

SLACK = 2e-6
_TIMES = st.floats(-1, 101, allow_nan=False)
_SPANS = st.lists(st.tuples(_TIMES, _TIMES).map(lambda pair: Span(min(pair), max(pair))), max_size=12)
_POWERS = st.lists(st.floats(0, 1), max_size=100).map(lambda powers: Loudness(np.array(powers), 1.0))


def spans(*pairs: tuple[float, float]) -> list[Span]:
    return [Span(*pair) for pair in pairs]


def quiet_at(*times: float, seconds: float = 100.0) -> Loudness:
    powers = np.ones(round(seconds / 0.1))
    for depth, time in enumerate(times, start=1):
        powers[round(time / 0.1) - 2 : round(time / 0.1) + 2] = 0.1**depth
    return Loudness(powers, 0.1)


def test_no_speech_makes_no_piece() -> None:
    assert pieces([], 10.0, 30.0) == []


def test_neighbours_share_a_piece_while_they_fit() -> None:
    speech = spans((1, 9), (10, 19), (21, 31), (32, 40))
    assert pieces(speech, 50, 30) == spans((1, 31), (32, 40))


def test_a_long_pause_separates_what_would_fit() -> None:
    speech = spans((0, 4), (5, 8), (14, 16))
    assert pieces(speech, 20, 30, longest_pause=2) == spans((0, 8), (14, 16))


def test_what_fits_exactly_is_whole() -> None:
    assert pieces(spans((0.1, 0.1 + 0.3 * 3)), 10, 0.9) == spans((0.1, 0.1 + 0.3 * 3))
    assert pieces(spans((0, 30)), 30, 30) == spans((0, 30))


def test_long_speech_is_cut_at_the_limit_when_nothing_else_is_known() -> None:
    assert pieces(spans((0, 70)), 70, 30) == spans((0, 30), (30, 60), (60, 70))


def test_long_speech_is_cut_at_its_quietest_pause_near_the_limit() -> None:
    cut = pieces(spans((0, 50)), 50, 30, loudness=quiet_at(28.5, 22, 26))
    assert cut == [Span(0, pytest.approx(26, abs=0.15)), Span(cut[0].end, 50)]


def test_among_equal_pauses_the_later_is_taken() -> None:
    silent = Loudness(np.zeros(1000), 0.1)
    assert pieces(spans((0, 100)), 100, 30, loudness=silent)[0].end == pytest.approx(30, abs=0.15)


def test_hardly_a_word_is_left_alone() -> None:
    assert pieces(spans((0, 30.2)), 31, 30)[-1].duration == pytest.approx(3)


def test_a_sound_next_to_deep_silence_is_no_pause() -> None:
    powers = np.ones(1000)
    powers[245:255] = 1e-4  # a real pause in a noisy room
    powers[281] = 0.0  # one dead frame
    first, *_ = pieces(spans((0, 60)), 60, 30, loudness=Loudness(powers, 0.1))
    assert first.end == pytest.approx(25, abs=0.5)


def test_toy_speech_is_cut_between_words() -> None:
    speech = [Span(start + 0.1, start + 2.0) for start in np.arange(0.0, 40.0, 2.2).tolist()]
    recording = toy_recording(16_000, speech, 42.0)
    whole = [Span(0.0, 42.0)]
    cut = pieces(whole, 42.0, 10.0, loudness=loudness(recording.samples, 16_000))
    assert len(cut) > 4
    assert all(not (word.start < piece.end < word.end) for piece in cut[:-1] for word in speech)


@pytest.mark.parametrize("longest", [0, -1, math.nan])
def test_a_limit_must_be_above_zero(longest: float) -> None:
    with pytest.raises(ValueError, match="longest"):
        pieces([], 1.0, longest)


@given(speech=_SPANS, longest=st.floats(0.5, 120), known=st.none() | _POWERS, longest_pause=st.floats(0, 50))
def test_pieces_are_short_and_apart_and_hold_all_speech(
    speech: list[Span], longest: float, known: Loudness | None, longest_pause: float
) -> None:
    found = pieces(speech, 100.0, longest, loudness=known, longest_pause=longest_pause)
    assert all(0 <= piece.start < piece.end <= 100 for piece in found)
    assert all(piece.duration <= longest + SLACK for piece in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    for span in speech:
        start, end = max(span.start, 0.0), min(span.end, 100.0)
        kept = sum(max(0.0, min(piece.end, end) - max(piece.start, start)) for piece in found)
        assert kept >= end - start - SLACK


@given(speech=_SPANS, longest=st.floats(0.5, 120))
def test_the_order_of_the_spans_does_not_matter(speech: list[Span], longest: float) -> None:
    assert pieces(speech[::-1], 100.0, longest) == pieces(speech, 100.0, longest)


@given(speech=_SPANS, longest=st.floats(0.5, 120))
def test_every_piece_holds_speech_at_both_ends(speech: list[Span], longest: float) -> None:
    for piece in pieces(speech, 100.0, longest):
        assert any(span.start <= piece.start < span.end or span.start <= 0 == piece.start for span in speech)
        assert any(span.start < piece.end <= span.end or span.end >= 100 == piece.end for span in speech)
