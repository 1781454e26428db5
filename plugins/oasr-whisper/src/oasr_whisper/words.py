"""Words and their times, from the tokens of a window and when each of them was said.

What a word is, and how times are corrected around pauses, follows openai/whisper (tokenizer.py, timing.py). Where it
cuts "15.09.2021", "twenty-one" or "U.S." into several words, a word here lasts until the next space.
"""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from oasr.interfaces.tokenizer import Tokenizer
from oasr_whisper.alignment import Alignment

_UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_JOINERS = "\N{ZERO WIDTH JOINER}\N{THAI CHARACTER SARA AM}\N{LAO VOWEL SIGN AM}"

_SPOKEN_PUNCTUATION = "%&#@*/\\§‰"
_OPENING_AFTER_SPACE = "\"'-¿¡"
_SENTENCE_ENDS = (".", "。", "!", "！", "?", "？")  # noqa: RUF001
_CLOSING_QUOTES = "\"'”’」』)）"  # noqa: RUF001

_LONGEST_TYPICAL = 0.7  # seconds; a median above it comes from pauses


@dataclass(frozen=True, slots=True)
class SplitWord:
    """A word of a text and the tokens it is made of, counted from the start of that text."""

    text: str
    """As in the text, with the space before it: the words of a text join to the text."""
    tokens: range
    spoken: range
    """`tokens` without punctuation at the ends, which takes the time of pauses."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a window with a text of its own: what the model put between two timestamps, or the whole window."""

    start: float
    """Seconds from the start of the window, like all times here."""
    end: float
    tokens: int
    """Text tokens it holds."""
    words: tuple[SplitWord, ...]


@dataclass(frozen=True, slots=True)
class AlignedWord:
    """A word and when it was said, in seconds from the start of the window."""

    text: str
    start: float
    end: float
    confidence: float
    """Mean probability of its tokens, from 0 to 1."""
    interpolated: bool
    """No stretch of the audio belongs to the word: its times are taken from its neighbours."""


def split_words(tokens: Sequence[int], tokenizer: Tokenizer, language: str | None) -> list[SplitWord]:
    """The words of a text of text tokens, with punctuation at the word it belongs to.

    A word begins at a space; in languages written without spaces, at each character, or run of ASCII, that the
    tokens keep apart. None means a language with spaces. There are no words in a text without characters.
    """
    pieces = _pieces(tokens, tokenizer)
    words: list[list[_Piece]] = []
    for piece in pieces:
        if words and _continues(words[-1][-1].text, piece.text, language in _UNSPACED):
            words[-1].append(piece)
        else:
            words.append([piece])
    return [_split_word(word) for word in _merge_punctuation(words)]


def time_words(
    spans: Sequence[Span], alignment: Alignment, duration: float, last_speech: float = 0.0
) -> list[list[AlignedWord]]:
    """The words of each span with their times.

    The alignment is of the text tokens of all spans in order; `duration` is the length of the window. `last_speech` is
    when speech before this window ended, negative or 0. Times never decrease, from span to span neither, and lie
    within the window.
    """
    timings = _measure(spans, alignment)
    flat = [timing for span in timings for timing in span]
    durations = [timing.end - timing.start for timing in flat if timing.aligned]
    typical = min(_LONGEST_TYPICAL, median(durations)) if durations else 0.0
    _shorten_after_sentences(flat, typical)
    for span, words in zip(spans, timings, strict=True):
        aligned = [word for word in words if word.aligned]
        if aligned:
            _shorten_first(aligned, span, last_speech, typical)
            _shorten_last(aligned[-1], span, typical)
            last_speech = aligned[-1].end
    _put_in_order([timing for timing in flat if timing.aligned], duration)
    _interpolate(spans, timings, duration, typical)
    return [[timing.word() for timing in span] for span in timings]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Whole characters and the tokens that spell them."""

    text: str
    tokens: range

    @property
    def silent(self) -> bool:
        """Punctuation or space only."""
        return all(map(_is_silent, self.text))


def _pieces(tokens: Sequence[int], tokenizer: Tokenizer) -> list[_Piece]:
    """The shortest runs of tokens that spell whole characters. Their texts join to the text of all tokens."""
    full = tokenizer.decode(tokens)
    pieces: list[_Piece] = []
    begin = shown = 0
    anchor = anchored = 0  # tokens and characters up to the last place that is certainly not within a character
    for stop in range(1, len(tokens) + 1):
        text = tokenizer.decode(tokens[anchor:stop])
        if not full.startswith(text, anchored):
            continue  # half a character decodes to a replacement, which is not what stands there
        if anchored + len(text) > shown:
            pieces.append(_Piece(full[shown : anchored + len(text)], range(begin, stop)))
            begin, shown = stop, anchored + len(text)
        if not text.endswith(_REPLACEMENT):
            anchor, anchored = stop, shown
    if pieces and begin < len(tokens):
        pieces[-1] = _Piece(pieces[-1].text + full[shown:], range(pieces[-1].tokens.start, len(tokens)))
    return pieces


def _continues(before: str, text: str, unspaced: bool) -> bool:
    """Whether a piece of text belongs to the word that ends with the piece before."""
    if text[0].isspace():
        return False
    if not unspaced:
        return True
    if unicodedata.category(text[0]).startswith("M") or text[0] in _JOINERS or before[-1] == _JOINERS[0]:
        return True
    return before[-1].isascii() and text[0].isascii() and not before[-1].isspace()


def _merge_punctuation(words: Sequence[list[_Piece]]) -> list[list[_Piece]]:
    """Punctuation that stands alone joins the next word where it opens something, else the word before."""
    merged: list[list[_Piece]] = []
    opening: list[_Piece] = []
    for word in words:
        silent = all(piece.silent for piece in word)
        if silent and (not merged or opening or _opens("".join(piece.text for piece in word))):
            opening += word
        elif silent:
            merged[-1] += word
        else:
            merged.append([*opening, *word])
            opening = []
    if opening and merged:
        merged[-1] += opening
    elif opening:
        merged.append(opening)
    return merged


def _opens(text: str) -> bool:
    marks = text.strip()
    if text[0].isspace() and all(mark in _OPENING_AFTER_SPACE for mark in marks):
        return True
    return all(unicodedata.category(mark) in ("Ps", "Pi") for mark in marks)


def _is_silent(character: str) -> bool:
    if character in _SPOKEN_PUNCTUATION:
        return False
    return character.isspace() or unicodedata.category(character).startswith("P")


def _split_word(pieces: Sequence[_Piece]) -> SplitWord:
    spoken = [piece for piece in pieces if not piece.silent] or pieces
    return SplitWord(
        text="".join(piece.text for piece in pieces),
        tokens=range(pieces[0].tokens.start, pieces[-1].tokens.stop),
        spoken=range(spoken[0].tokens.start, spoken[-1].tokens.stop),
    )


@dataclass(slots=True)
class _Timing:
    """A word while its times are worked out."""

    text: str
    start: float
    end: float
    confidence: float
    aligned: bool
    """Whether a stretch of the audio belongs to it."""

    def word(self) -> AlignedWord:
        return AlignedWord(self.text, self.start, self.end, self.confidence, not self.aligned)


def _measure(spans: Sequence[Span], alignment: Alignment) -> list[list[_Timing]]:
    timings, offset = [], 0
    for span in spans:
        timings.append([_timing(word, alignment, offset) for word in span.words])
        offset += span.tokens
    return timings


def _timing(word: SplitWord, alignment: Alignment, offset: int) -> _Timing:
    first, stop = offset + word.spoken.start, offset + word.spoken.stop
    start, end = alignment.times[first], alignment.times[stop]
    confidence = fmean(math.exp(value) for value in alignment.log_probs[first:stop])
    return _Timing(word.text, start, end, confidence, aligned=end > start)


def _shorten_after_sentences(words: Sequence[_Timing], typical: float) -> None:
    """The first word of a sentence does not begin in the pause before it."""
    for before, word in pairwise(words):
        if before.text.rstrip(_CLOSING_QUOTES).endswith(_SENTENCE_ENDS):
            word.start = max(word.start, word.end - 2 * typical)


def _shorten_first(words: Sequence[_Timing], span: Span, last_speech: float, typical: float) -> None:
    """The first words after a pause do not begin in it, nor long before the model says that the span begins."""
    first, second = words[0], words[1] if len(words) > 1 else None
    longest = 2 * typical
    both_long = second is not None and second.end - first.start > 2 * longest
    if first.end - last_speech > 2 * longest and (first.end - first.start > longest or both_long):
        if second is not None and second.end - second.start > longest:
            first.end = second.start = max(second.end / 2, second.end - longest)
        first.start = max(first.start, first.end - longest)
    if first.start + 0.5 < span.start < first.end:
        first.start = max(first.start, min(first.end - typical, span.start))


def _shorten_last(word: _Timing, span: Span, typical: float) -> None:
    """The last word does not last long after the model says that the span ends."""
    if word.start < span.end < word.end - 0.5:
        word.end = min(word.end, max(word.start + typical, span.end))


def _put_in_order(words: Sequence[_Timing], duration: float) -> None:
    earliest = 0.0
    for word in words:
        word.start = min(max(word.start, earliest), duration)
        word.end = min(max(word.end, word.start), duration)
        earliest = word.end


def _interpolate(spans: Sequence[Span], timings: Sequence[Sequence[_Timing]], duration: float, typical: float) -> None:
    """Share the gap between aligned words, as far as it lies in the span, among the words that stand in it."""
    starts = [word.start for span in timings for word in span if word.aligned]
    earliest, aligned = 0.0, 0
    for span, words in zip(spans, timings, strict=True):
        run: list[_Timing] = []
        for word in [*words, None]:
            if word is not None and not word.aligned:
                run.append(word)
                continue
            latest = starts[aligned] if aligned < len(starts) else duration
            if run:
                low = min(max(earliest, span.start), latest)
                high = min(max(low, span.end), latest)
                _spread(run, low, high, typical, before_speech=word is not None)
                earliest, run = high, []
            if word is not None:
                earliest, aligned = word.end, aligned + 1


def _spread(words: Sequence[_Timing], low: float, high: float, typical: float, before_speech: bool) -> None:
    """Give each word an equal share, no longer than words usually are, beside the speech they belong to."""
    share = (high - low) / len(words)
    if 0 < typical < share:
        share = typical
        low = max(low, high - len(words) * share) if before_speech else low
    for number, word in enumerate(words):
        word.start = min(low + number * share, high)
        word.end = min(low + (number + 1) * share, high)
