"""Text that says the same over and over, which no temperature has helped: what it says once is kept."""

from collections.abc import Sequence
from dataclasses import replace

from oasr.interfaces.heads import SpokenSegment, WindowReading

_LEAST_REPEATS = 4  # people say a word three times; models in a loop say it until they run out of room


def without_loop(reading: WindowReading) -> tuple[WindowReading, float | None]:
    """A reading without the loop that its text ends in, and where the loop begins, in seconds from its start.

    None when there is no loop. The window counts as read all the same: reading it again would only loop again.
    """
    end = loop_start([token for segment in reading.segments for token in segment.tokens])
    if end is None:
        return reading, None
    kept: list[SpokenSegment] = []
    at = 0.0
    for segment in reading.segments:
        if end > 0:
            kept.append(replace(segment, tokens=segment.tokens[:end]))
            at = segment.end if end >= len(segment.tokens) else segment.start
        end -= len(segment.tokens)
    return WindowReading(tuple(kept), reading.resume), at


def loop_start(tokens: Sequence[int]) -> int | None:
    """How many tokens there are before a text begins to repeat itself until its end; None when it does not."""
    best = None
    for period in range(1, len(tokens) // _LEAST_REPEATS + 1):
        start = len(tokens) - period
        while start > 0 and tokens[start - 1] == tokens[start - 1 + period]:
            start -= 1
        repeated = len(tokens) - start
        if repeated >= _LEAST_REPEATS * period and (best is None or start + period < best):
            best = start + period
    return best
