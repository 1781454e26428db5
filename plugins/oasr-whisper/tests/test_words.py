"""What a word is, and times that a listener can rely on."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oasr.interfaces.tokenizer import TextStream, Tokenizer
from oasr_whisper.alignment import Alignment, emphasis, token_times
from oasr_whisper.words import AlignedWord, Span, SplitWord, split_words, time_words


class Pieces(Tokenizer):
    """Ids are places in a list of byte strings."""

    def __init__(self, files: Mapping[str, Path]):
        self.spelt: Sequence[bytes] = ()

    @property
    def size(self) -> int:
        return len(self.spelt)

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(self.spelt[token] for token in ids).decode(errors="replace")

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def pieces(self, ids: Sequence[int]) -> list[str]:
        raise NotImplementedError

    def stream(self) -> TextStream:
        raise NotImplementedError


def split(pieces: Sequence[str | bytes], language: str | None = "en") -> list[SplitWord]:
    """Words of a text whose tokens are these."""
    tokenizer = Pieces({})
    tokenizer.spelt = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    return split_words(range(len(pieces)), tokenizer, language)


def texts(pieces: Sequence[str | bytes], language: str | None = "en") -> list[str]:
    return [word.text for word in split(pieces, language)]


def test_words_begin_at_spaces() -> None:
    assert texts([" And", " so", " my", " f", "ellow"]) == [" And", " so", " my", " fellow"]


@pytest.mark.parametrize(
    "pieces",
    [
        [" 22", "66"],
        [" 15", ".", "09", ".", "20", "21"],
        [" £", "13", ".", "60"],
        [" twenty", "-", "one"],
        [" U", ".", "S", "."],
        [" don", "'t"],
        [" 5", "%"],
    ],
)
@pytest.mark.parametrize("language", ["en", None])
def test_what_no_space_divides_is_one_word(pieces: list[str], language: str | None) -> None:
    assert texts(pieces, language) == ["".join(pieces)]


def test_punctuation_belongs_to_a_word_and_is_not_timed() -> None:
    comma, quoted, dash = split([" so", ",", ' "', "yes", '."', " -", " no", " ?"])
    assert (comma.text, comma.tokens, comma.spoken) == (" so,", range(2), range(1))
    assert (quoted.text, quoted.tokens, quoted.spoken) == (' "yes."', range(2, 5), range(3, 4))
    assert (dash.text, dash.tokens, dash.spoken) == (" - no ?", range(5, 8), range(6, 7))


def test_punctuation_alone_is_a_word() -> None:
    [word] = split(["?", " !"])
    assert (word.text, word.tokens, word.spoken) == ("? !", range(2), range(2))


def test_languages_without_spaces_are_divided_by_characters() -> None:
    character = "好".encode()
    pieces = ["你", character[:1], character[1:], "。", "「", "世界", "」", "。", "Open", "AI", " 13", ".", "60", "元"]
    assert texts(pieces, "zh") == ["你", "好。", "「世界」。", "OpenAI", " 13.60", "元"]


def test_marks_stay_with_the_character_they_change() -> None:
    assert texts(["ก", "ำ", "ท", "ี่"], "th") == ["กำ", "ที่"]


@pytest.mark.parametrize("pieces", [[], [b"", b""]])
def test_no_text_has_no_words(pieces: list[bytes]) -> None:
    assert split(pieces) == []


_FRAGMENTS = [
    " a",
    "b",
    " ",
    ".",
    ' "',
    "-",
    "(",
    "世",
    "\n",
    *(bytes([byte]) for byte in "é世👋".encode()),
    b"\xff",
    b"",
]


@given(st.lists(st.sampled_from(_FRAGMENTS), max_size=20), st.sampled_from(["en", "ja", None]))
def test_words_are_the_text_and_its_tokens(pieces: list[str | bytes], language: str | None) -> None:
    """Also where tokens end within a character, or spell none."""
    text = b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    words = split(pieces, language)
    assert "".join(word.text for word in words) == text.decode(errors="replace")
    if words:
        assert [token for word in words for token in word.tokens] == list(range(len(pieces)))
    for word in words:
        assert len(word.spoken) > 0
        assert set(word.spoken) <= set(word.tokens)


def aligned(*times: float) -> Alignment:
    return Alignment(times, (math.log(0.5),) * (len(times) - 1))


def span(pieces: Sequence[str], start: float = 0.0, end: float = 30.0, language: str | None = "en") -> Span:
    return Span(start, end, len(pieces), tuple(split(pieces, language)))


def times(words: Sequence[AlignedWord]) -> list[tuple[float, float]]:
    return [(pytest.approx(word.start), pytest.approx(word.end)) for word in words]


def test_times_and_confidence() -> None:
    alignment = Alignment((0.0, 0.4, 0.6, 0.9), (math.log(0.5), math.log(0.2), math.log(0.4)))
    [words] = time_words([span([" one", " tw", "o"])], alignment, 30.0)
    assert times(words) == [(0.0, 0.4), (0.4, 0.9)]
    assert [word.confidence for word in words] == [pytest.approx(0.5), pytest.approx(0.3)]
    assert not any(word.interpolated for word in words)


def test_a_word_ends_before_the_pause_its_punctuation_fills() -> None:
    [words] = time_words([span([" one", ",", " two"])], aligned(0.0, 0.4, 3.0, 3.4), 30.0)
    assert times(words) == [(0.0, 0.4), (3.0, 3.4)]


def test_a_sentence_begins_after_the_pause_before_it() -> None:
    pieces = [" one", " two", ".", " three", " four"]
    [words] = time_words([span(pieces)], aligned(0.0, 0.4, 0.8, 0.9, 5.9, 6.3), 30.0)
    assert times(words) == [(0.0, 0.4), (0.4, 0.8), (5.1, 5.9), (5.9, 6.3)]


def test_the_first_word_begins_after_the_silence_before_it() -> None:
    [words] = time_words([span([" one", " two", " three"])], aligned(0.0, 5.0, 5.4, 5.8), 30.0)
    assert times(words) == [(4.2, 5.0), (5.0, 5.4), (5.4, 5.8)]


def test_first_and_last_words_keep_to_the_times_the_model_said() -> None:
    alignment = aligned(0.0, 1.2, 1.6, 2.0, 5.0)
    [words] = time_words([span([" one", " two", " three", " four"], start=0.8, end=2.4)], alignment, 30.0)
    assert times(words) == [(0.5, 1.2), (1.2, 1.6), (1.6, 2.0), (2.0, 2.7)]


def test_a_word_without_audio_of_its_own_is_placed_between_its_neighbours() -> None:
    [words] = time_words([span([" one", ",", " 2266", " two"])], aligned(0.0, 0.4, 0.7, 0.7, 1.1), 30.0)
    assert times(words) == [(0.0, 0.4), (0.4, 0.7), (0.7, 1.1)]
    assert [word.interpolated for word in words] == [False, True, False]


def test_without_any_alignment_words_share_their_span() -> None:
    spans = [span([" one", " two"], 1.0, 2.0), span(["?"], 3.0, 9.0), span([], 9.0, 9.5)]
    first, second, third = time_words(spans, aligned(0.0, 0.0, 0.0, 0.0), 5.0)
    assert times(first) == [(1.0, 1.5), (1.5, 2.0)]
    assert times(second) == [(3.0, 5.0)]
    assert third == []
    assert all(word.interpolated for word in [*first, *second])


_WORDS = [" a", "b", ",", ".", " 2266", " £", "13", " ?", ' "', " 15.09.2021"]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(_WORDS), max_size=6), min_size=1, max_size=3),
    st.lists(st.floats(-1, 4), min_size=6, max_size=6),
    st.integers(0, 150),
    st.floats(0.1, 8.0),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["en", "zh"]),
)
def test_times_never_decrease_and_lie_within_the_audio(
    texts_of_spans: list[list[str]], edges: list[float], frames: int, sharpness: float, seed: int, language: str
) -> None:
    """Whatever the attention, and whatever the model said about the spans."""
    tokens = sum(map(len, texts_of_spans))
    scores = torch.randn(3, tokens + 4, 160, generator=torch.Generator().manual_seed(seed)) * sharpness
    alignment = Alignment(token_times(emphasis([scores], frames)[2 : tokens + 3]), (-1.0,) * tokens)
    duration = frames / 50
    spans = [
        span(pieces, start, end, language)
        for pieces, start, end in zip(texts_of_spans, edges[::2], edges[1::2], strict=False)
    ]
    timed = time_words(spans, alignment, duration)
    assert [len(words) for words in timed] == [len(each.words) for each in spans]
    flat = [edge for words in timed for word in words for edge in (word.start, word.end)]
    assert flat == sorted(flat)
    assert all(0 <= edge <= duration for edge in flat)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=7, max_size=7), st.floats(0, 30))
def test_times_hold_for_any_alignment(values: list[float], duration: float) -> None:
    [words] = time_words([span([" one", " two", ".", " three", ",", " four"])], aligned(*values), duration)
    flat = [edge for word in words for edge in (word.start, word.end)]
    assert flat == sorted(flat)
    assert all(0 <= edge <= duration for edge in flat)
