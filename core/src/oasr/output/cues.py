"""Subtitles as a viewer can read them: a few words at a time, on few short lines.

A cue ends with its segment, at a pause, and at the end of a sentence that is not too short to read. A segment that
breaks off in the middle of a sentence ends nothing: models cut there for reasons of their own. What is then still too
long is halved, best where a clause ends or the speaker hesitates, until it fits.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from oasr.output.units import MOST_WIDTH, Unit, units
from oasr.types import Segment, Transcript

_MOST_MS = 7000
_LEAST_MS = 800  # where the next cue leaves room
_PAUSE_SECONDS = 0.5  # between two words
_FOR_A_CLAUSE = 0.3  # how much of the whole halves may differ in for one to end with a clause
_MOST_IN_LINES = 2 * MOST_WIDTH  # units, of a column at least

_QUOTES = "\"'”’»)\\]」』】）"  # noqa: RUF001
_SENTENCE_END = re.compile(f"[.!?…。！？．｡؟۔।॥།။។][{_QUOTES}]*$")  # noqa: RUF001
_CLAUSE_END = re.compile(f"[.!?…。！？．｡؟۔।॥།။។,;:–—、，；：､،؛][{_QUOTES}]*$")  # noqa: RUF001
_ABBREVIATION = re.compile(r"\W*(\w|\d\d|mr|mrs|ms|dr|st|prof|jr|sr|vs)\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cue:
    """Lines shown together. Times in milliseconds from the start of the audio."""

    start: int
    end: int
    lines: tuple[str, ...]


def cues(transcript: Transcript, most_lines: int) -> list[Cue]:
    """The cues of a transcript in order of time, without overlap and without empty lines, in one or two lines each."""
    parts = [
        part
        for passage in _passages(transcript.segments)
        for phrase in _phrases(passage)
        for part in _fitting(phrase, most_lines)
    ]
    parts.sort(key=lambda part: part[0].start)
    spans = placed([(part[0].start, part[-1].end) for part in parts], transcript.duration, _LEAST_MS, _MOST_MS)
    return [
        Cue(start, end, tuple(map(_joined, _lines(part, most_lines))))
        for (start, end), part in zip(spans, parts, strict=True)
    ]


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def placed(
    spans: Sequence[tuple[float, float]], duration: float, least: int = 1, most: int = sys.maxsize
) -> list[tuple[int, int]]:
    """Spans in seconds, sorted by their starts, as milliseconds without overlap, each with its start before its end.

    Each lasts from `least` to `most` milliseconds where the next leaves room. None outlasts the duration, unless that
    has fewer milliseconds than there are spans.
    """
    starts: list[int] = []
    for start, _ in spans:
        starts.append(max(milliseconds(start), starts[-1] + 1 if starts else 0))
    close = milliseconds(duration)
    if close < len(spans):
        close = len(spans) + max([starts[-1], *(milliseconds(end) for _, end in spans)])
    starts = [min(start, close - left) for start, left in zip(starts, range(len(starts), 0, -1), strict=True)]
    ends = []
    for (start, following), (_, end) in zip(pairwise([*starts, close]), spans, strict=True):
        ends.append(min(max(milliseconds(end), start + least), start + most, following))
    return list(zip(starts, ends, strict=True))


def _passages(segments: Sequence[Segment]) -> Iterator[list[Unit]]:
    """The units of each segment, together with those of the next when it goes on with the sentence."""
    passage: list[Unit] = []
    for segment in segments:
        found = units(segment)
        if not found:
            continue
        if passage and _goes_on(passage[-1], found[0]):
            found[0] = replace(found[0], space=" ")
        elif passage:
            yield passage
            passage = []
        passage += found
    if passage:
        yield passage


def _goes_on(unit: Unit, following: Unit) -> bool:
    """Whether a sentence surely goes on in the next segment: scripts without small letters do not tell."""
    is_near = 0 <= following.start - unit.end < _PAUSE_SECONDS
    return is_near and _begins_small(following) and not _SENTENCE_END.search(unit.text)


def _begins_small(unit: Unit) -> bool:
    return next(filter(str.isalnum, unit.text), "").islower()


def _phrases(pieces: Sequence[Unit]) -> Iterator[list[Unit]]:
    phrase: list[Unit] = []
    for unit, following in zip(pieces, [*pieces[1:], None], strict=False):
        phrase.append(unit)
        long_enough = unit.end - phrase[0].start >= _LEAST_MS / 1000
        if (
            following is None
            or following.start - unit.end >= _PAUSE_SECONDS
            or (long_enough and _ends_sentence(unit, following))
        ):
            yield phrase
            phrase = []


def _ends_sentence(unit: Unit, following: Unit) -> bool:
    if not _SENTENCE_END.search(unit.text) or _ABBREVIATION.fullmatch(unit.text):
        return False
    return not _begins_small(following)


def _fitting(phrase: list[Unit], most_lines: int) -> Iterator[list[Unit]]:
    lasting = milliseconds(phrase[-1].end) - milliseconds(phrase[0].start)
    if len(phrase) == 1 or (lasting <= _MOST_MS and _lines(phrase, most_lines)):
        yield phrase
        return
    cut = min(range(1, len(phrase)), key=_unfitness(phrase))
    yield from _fitting(phrase[:cut], most_lines)
    yield from _fitting(phrase[cut:], most_lines)


def _lines(phrase: list[Unit], most_lines: int) -> list[list[Unit]]:
    """The phrase in one line or as many as two; empty when it takes more. A word that is too long has its own line."""
    if _is_line(phrase):
        return [phrase]
    if most_lines == 1 or len(phrase) > _MOST_IN_LINES:
        return []
    cuts = [cut for cut in range(1, len(phrase)) if _is_line(phrase[:cut]) and _is_line(phrase[cut:])]
    if not cuts:
        return []
    cut = min(cuts, key=_unfitness(phrase))
    return [phrase[:cut], phrase[cut:]]


def _is_line(pieces: list[Unit]) -> bool:
    return len(pieces) == 1 or sum(unit.width + len(unit.space) for unit in pieces) - len(pieces[0].space) <= MOST_WIDTH


def _unfitness(phrase: list[Unit]) -> Callable[[int], float]:
    """How bad it is to cut before each unit, from how uneven the halves are and what stands there."""
    widths = list(accumulate(unit.width + len(unit.space) for unit in phrase))
    whole = max(widths[-1], 1)

    def unfitness(cut: int) -> float:
        uneven = abs(whole - 2 * widths[cut - 1]) / whole
        hesitation = phrase[cut].start - phrase[cut - 1].end
        return uneven - hesitation - (_FOR_A_CLAUSE if _CLAUSE_END.search(phrase[cut - 1].text) else 0)

    return unfitness


def _joined(pieces: list[Unit]) -> str:
    return pieces[0].text + "".join(unit.space + unit.text for unit in pieces[1:])
