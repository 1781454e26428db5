"""Cutting audio at pauses into pieces that a model can take at once."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from oasr.detectors.loudness import Loudness
from oasr.interfaces.detector import Span

_SLACK = 1e-6  # seconds, far less than a sample: what sums of times may be off by
_SEARCHED = 1 / 3  # the part of the longest piece, before its end, in which a pause is looked for
_LEAST_REST = 1 / 10  # of the longest piece, so that hardly a word is left alone
_PAUSE_SECONDS = 0.2  # a pause is as quiet as so much audio around its middle


def pieces(
    spans: Iterable[Span],
    duration: float,
    longest: float,
    *,
    loudness: Loudness | None = None,
    longest_pause: float = math.inf,
) -> list[Span]:
    """Pieces of at most `longest` seconds that hold all speech: in order, apart, and within the audio.

    `spans` are what a detector found, in any order, in audio of `duration` seconds. Neighbours come into one piece,
    with the pause between them, as long as it is no longer than `longest_pause`. Speech that is itself too long is cut
    where `loudness` is least in the last third before the limit, or at the limit when `loudness` is not known.
    """
    if not longest > 0:
        raise ValueError(f"longest must be above 0 seconds, not {longest}")
    found: list[Span] = []
    for span in _united(spans, duration):
        for part in _parts(span, longest, loudness):
            whole = Span(found[-1].start, part.end) if found else part
            if found and whole.duration <= longest + _SLACK and part.start - found[-1].end <= longest_pause:
                found[-1] = whole
            else:
                found.append(part)
    return found


def _united(spans: Iterable[Span], duration: float) -> list[Span]:
    """In order, within the audio and without overlap."""
    united: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        start, end = max(span.start, 0.0), min(span.end, duration)
        if start >= end:
            continue
        if united and start <= united[-1].end:
            united[-1] = Span(united[-1].start, max(end, united[-1].end))
        else:
            united.append(Span(start, end))
    return united


def _parts(span: Span, longest: float, loudness: Loudness | None) -> Iterator[Span]:
    """The span, cut as often as it is too long."""
    start = span.start
    while span.end - start > longest + _SLACK:
        earliest = start + (1 - _SEARCHED) * longest
        latest = min(start + longest, max(earliest, span.end - _LEAST_REST * longest))
        cut = _quietest(loudness, earliest, latest) if loudness else latest
        yield Span(start, cut)
        start = cut
    yield Span(start, span.end)


def _quietest(loudness: Loudness, earliest: float, latest: float) -> float:
    """The middle of the quietest pause between two times; the later of equals, and `latest` when nothing is known."""
    width = max(1, round(_PAUSE_SECONDS / loudness.hop))
    first = math.ceil(earliest / loudness.hop - width / 2)
    last = math.floor(latest / loudness.hop - width / 2)
    powers = loudness.powers[max(first, 0) : last + width]
    if len(powers) < width:
        return latest
    means = np.convolve(powers, np.full(width, 1 / width), mode="valid")
    quietest = max(first, 0) + len(means) - 1 - int(np.argmin(means[::-1]))
    return min(max((quietest + width / 2) * loudness.hop, earliest), latest)
