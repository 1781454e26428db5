"""A text that repeats itself to its end is cut behind what it says first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.engine.loops import loop_start, without_loop
from oasr.interfaces.heads import SpokenSegment, WindowReading
from oasr.testing.suite import LAW


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", None),
        ("abc", None),
        ("no no no", None),
        ("hahahaha", "ha"),
        ("aaaa", "a"),
        ("so: one two one two one two one two", "so: one two"),
        ("so: one two one two one two one two one tw", "so: one two"),
        ("one two one two one two one two and three", None),
    ],
)
def test_what_is_kept_of_a_text(text: str, kept: str | None) -> None:
    end = loop_start(list(text.encode()))
    assert (None if end is None else text[:end].strip()) == (kept if end is None else kept.strip())


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(5, 9))
@LAW
def test_any_loop_is_found(before: list[int], unit: list[int], repeats: int) -> None:
    end = loop_start(before + unit * repeats)
    assert end is not None
    assert end <= len(before) + len(unit)


def test_segments_that_say_the_same_are_one() -> None:
    said = [SpokenSegment(float(n), n + 1.0, (7, 8, 9)) for n in range(6)]
    first = SpokenSegment(-1.0, 0.0, (1, 2))
    reading, at = without_loop(WindowReading((first, *said), 6.0))
    assert reading.segments == (first, said[0])
    assert (at, reading.resume) == (1.0, 6.0)


def test_a_loop_within_a_segment_leaves_its_start() -> None:
    reading, at = without_loop(WindowReading((SpokenSegment(2.0, 9.0, (1, 5, 5, 5, 5, 5)),), 9.0))
    assert reading.segments == (SpokenSegment(2.0, 9.0, (1, 5)),)
    assert at == 2.0
