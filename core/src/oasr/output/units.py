"""The text of a segment in the pieces that are never broken, each with its time.

A piece is a word between spaces, or a character with its marks where a script writes no spaces. Where words are timed
their times hold; all other time is shared out by characters.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile

from oasr.types import Segment, Word

MOST_WIDTH = 42
"""Of a line, in columns of a terminal."""

_NARROW = r"\xa0\u2007\u202f"  # spaces that forbid a break, such as French has before "!"
_CONTROL = r"\x00-\x1f\x7f-\x9f"
_GAP = re.compile(rf"\s*(?:[^\S{_NARROW}]|[{_CONTROL}])[\s{_CONTROL}]*")
_ARROW = re.compile("--+>")  # divides the times of a cue
# Tibetan, Thai, Lao, Myanmar and Khmer, then Chinese and Japanese with their punctuation.
_SPACELESS = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u3100-\u312f\u31c0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff00-\uff9f\U00020000-\U0003ffff]"
)
# What may not end a line: vowels written before their consonant, signs that stack the next one, opening brackets.
_NEVER_LAST = frozenset("เแโใไເແໂໃໄ\u1039\u17d2")
_OPENING = ("Ps", "Pi", "Cf")
# What may not begin one: vowels written after, small kana, iteration and length marks (JIS X 4051), punctuation.
_NEVER_FIRST = frozenset("ะาำๆະາຳໆៗーぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ々ゝゞヽヾ〜\uff5e\uff9e\uff9f")
_CLOSING = ("Pe", "Pf", "Po")
_MARKS = ("Mn", "Mc", "Me", "Cf")


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of text. Times in seconds from the start of the audio."""

    text: str
    space: str
    """What stands between it and the unit before: a space or nothing."""
    width: int
    start: float
    end: float


def flat(text: str) -> str:
    """Text in one line: breaks and control characters are spaces, which come singly and between words only."""
    return _GAP.sub(" ", text).strip()


def width(text: str) -> int:
    """Columns that text takes: two for a wide character, none for a mark above or below another."""
    return sum(map(_columns, text))


def units(segment: Segment) -> list[Unit]:
    """The pieces of a segment in order; their texts, with their spaces before them, joined are its text."""
    text = _for_cues(segment.text)
    timed = list(_timed(text, segment.words))
    clock = _Clock(segment, len(text), timed)
    bounds = list(_bounds(text, timed))
    begins = [*(begin for begin, _ in bounds), len(text)]
    found = []
    for (_, end), (begin, following) in zip(bounds, pairwise(begins), strict=True):
        piece = text[begin:end]
        space = " " if text[begin - 1 : begin] == " " else ""
        # Without timed words nothing is known of pauses: a unit lasts until the next.
        until = end if timed else following
        found.append(Unit(piece, space, width(piece), clock.start(begin), clock.end(until)))
    return found


def _for_cues(text: str) -> str:
    return _ARROW.sub("->", flat(text))


def _timed(text: str, words: Sequence[Word]) -> Iterator[tuple[int, int, Word]]:
    """Where each word begins and ends, punctuation after it included. A word that is not in the text is left out."""
    places = []
    cursor = 0
    for word in words:
        written = _for_cues(word.text)
        begin = text.find(written, cursor) if written else -1
        if begin >= 0:
            cursor = begin + len(written)
            places.append((begin, cursor, word))
    limits = [*(begin for begin, _, _ in places[1:]), len(text)]
    for (begin, end, word), limit in zip(places, limits, strict=False):
        marks = takewhile(lambda character: unicodedata.category(character) in _CLOSING, text[end:limit])
        yield begin, end + len(list(marks)), word


def _bounds(text: str, timed: Sequence[tuple[int, int, Word]]) -> Iterator[tuple[int, int]]:
    """Where each unit begins and ends. Timed words are kept whole even where characters might be parted."""
    kept = {at for begin, end, _ in timed if width(text[begin:end]) <= MOST_WIDTH for at in range(begin + 1, end)}
    begin = 0
    for at in range(1, len(text)):
        if text[at] == " ":
            yield begin, at
            begin = at + 1
        elif at > begin and at not in kept and _parts(text[at - 1], text[at]):
            yield begin, at
            begin = at
    if text:
        yield begin, len(text)


def _parts(left: str, right: str) -> bool:
    """Whether a line may end between two characters that no space divides."""
    if not _SPACELESS.match(left) and not _SPACELESS.match(right):
        return False
    if left in _NEVER_LAST or unicodedata.category(left) in _OPENING:
        return False
    return right not in _NEVER_FIRST and unicodedata.category(right) not in (*_CLOSING, *_MARKS)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class _Clock:
    """When a segment reaches each position of its text: between those that are known, evenly.

    Where one word ends and the next starts at once, the position has a time for each.
    """

    def __init__(self, segment: Segment, length: int, timed: Sequence[tuple[int, int, Word]]):
        known = [(0, segment.start)]
        for begin, end, word in timed:
            known += [(begin, word.start), (end, word.end)]
        known.append((length, segment.end))
        latest = max(segment.start, segment.end)
        self._positions = [position for position, _ in known]
        self._times = [min(time, latest) for time in accumulate((time for _, time in known), max)]

    def start(self, position: int) -> float:
        """When the unit that begins here starts."""
        return self._at(position, bisect_right(self._positions, position) - 1)

    def end(self, position: int) -> float:
        """When the unit before ends."""
        return self._at(position, bisect_left(self._positions, position) - 1)

    def _at(self, position: int, before: int) -> float:
        left, right = self._positions[before : before + 2]
        earlier, later = self._times[before : before + 2]
        return earlier + (later - earlier) * (position - left) / (right - left)
