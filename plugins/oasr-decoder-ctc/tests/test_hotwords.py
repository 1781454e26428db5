"""Hotwords add what a search for every occurrence finds, and what is promised is taken back."""

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oasr.errors import RequestError
from oasr.tokenizers.pieces import PieceTokenizer
from oasr.types import DecodingOptions
from oasr_decoder_ctc.config import PrefixBeamConfig
from oasr_decoder_ctc.hotwords import ContextGraph, ContextGraphs, spelled
from oasr_decoder_ctc.prefix_beam import CTCPrefixBeam

TOKENIZER = PieceTokenizer(["<blk>", *"abcdef"])
VOCABULARY = TOKENIZER.size
PHRASES = st.dictionaries(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple), st.floats(0.1, 5.0), max_size=6
)
TEXTS = st.lists(st.integers(1, 5), max_size=20)
LAW = settings(
    deadline=None,
    max_examples=200,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


def occurrences(phrases: dict[tuple[int, ...], float], text: list[int]) -> float:
    """The scores of all phrases wherever they stand."""
    return sum(
        score * len(phrase)
        for phrase, score in phrases.items()
        for start in range(len(text))
        if tuple(text[start : start + len(phrase)]) == phrase
    )


def begun(phrases: dict[tuple[int, ...], float], text: list[int]) -> float:
    """Most of what is promised to a phrase that the text ends in the middle of."""
    return max(
        (
            score * length
            for phrase, score in phrases.items()
            for length in range(1, len(phrase))
            if len(text) >= length and tuple(text[-length:]) == phrase[:length]
        ),
        default=0.0,
    )


def walk(graphs: ContextGraphs, row: int, rows: int, text: list[int]) -> tuple[float, float]:
    """Gains of a text, token by token, and what it is promised at the end; the other rows read something else."""
    states = torch.zeros(rows, 1, dtype=torch.int64)
    total = 0.0
    for token in text:
        tokens = torch.ones(rows, 2, dtype=torch.int64)
        tokens[row, 1] = token
        gains, following = graphs.extend(states, tokens)
        states = following[:, :, 1]
        total += float(gains[row, 0, 1])
    return total, float(graphs.promise(states)[row, 0])


@LAW
@given(first=PHRASES, second=PHRASES, text=TEXTS)
def test_gains_are_those_of_every_occurrence(
    first: dict[tuple[int, ...], float], second: dict[tuple[int, ...], float], text: list[int]
) -> None:
    every = [first, second, {}]
    graphs = ContextGraphs([ContextGraph.of(tuple(each.items()), VOCABULARY) for each in every], torch.device("cpu"))
    for row, phrases in enumerate(every):
        gained, promised = walk(graphs, row, 3, text)
        assert gained == pytest.approx(occurrences(phrases, text))
        assert promised == pytest.approx(begun(phrases, text))


def test_a_hotword_may_bring_its_score() -> None:
    assert spelled(("ab", "c :3.5", "de  :4"), TOKENIZER, 2.0) == (((1, 2), 2.0), ((3,), 3.5), ((4, 5), 4.0))


def test_a_hotword_named_twice_counts_once() -> None:
    assert spelled(("ab", "ab :3.0", "ab :1.0"), TOKENIZER, 2.0) == (((1, 2), 3.0),)


@pytest.mark.parametrize("hotword", ["xyz", "a b", "<blk>"])
def test_a_hotword_that_cannot_be_spelt_is_an_error(hotword: str) -> None:
    with pytest.raises(RequestError, match=hotword):
        spelled((hotword,), TOKENIZER, 2.0)


def unsure(first: str, second: str, by: float) -> torch.Tensor:
    """Log-probabilities in which each letter of one text is a little likelier than that of the other."""
    logits = torch.zeros(2 * len(first), VOCABULARY)
    for index, letters in enumerate(zip(first, second, strict=True)):
        one, other = (TOKENIZER.encode(letter)[0] for letter in letters)
        logits[2 * index, other] = 10.0
        logits[2 * index, one] = 10.0 + by * (one != other)
        logits[2 * index + 1, 0] = 10.0
    return logits.log_softmax(dim=-1)


def best(search: Any, log_probs: torch.Tensor, *hotwords: str) -> str:
    [spellings] = search(CTCPrefixBeam(PrefixBeamConfig()), [log_probs], DecodingOptions(hotwords=hotwords), TOKENIZER)
    return TOKENIZER.decode(spellings[0].tokens)


def test_a_hotword_is_preferred_where_it_is_nearly_heard(search: Any) -> None:
    log_probs = unsure("abad", "abcd", by=1.5)
    assert best(search, log_probs) == "abad"
    assert best(search, log_probs, "bc") == "abcd"
    assert best(search, log_probs, "bc :0.2") == "abad"


def test_a_hotword_is_not_heard_where_nobody_says_it(search: Any) -> None:
    log_probs = unsure("abad", "abcd", by=12.0)
    assert best(search, log_probs, "bc") == "abad"


def test_the_beginning_of_a_hotword_alone_is_worth_nothing(search: Any) -> None:
    log_probs = unsure("abad", "abcd", by=1.5)
    [plain] = search(CTCPrefixBeam(PrefixBeamConfig()), [log_probs], tokenizer=TOKENIZER)
    options = DecodingOptions(hotwords=("cdef :0.4",))
    [promised] = search(CTCPrefixBeam(PrefixBeamConfig()), [log_probs], options, TOKENIZER)
    assert promised[0].tokens == plain[0].tokens
    assert promised[0].score == pytest.approx(plain[0].score)


def test_scores_hold_the_gain(search: Any) -> None:
    log_probs = unsure("abad", "abcd", by=1.5)
    decoder = CTCPrefixBeam(PrefixBeamConfig(beam=3000))  # wide enough for all that can be said
    [plain] = search(decoder, [log_probs], tokenizer=TOKENIZER)
    [hot] = search(decoder, [log_probs], DecodingOptions(hotwords=("ab", "bc :1.0")), TOKENIZER)
    scores = {each.tokens: each.score for each in plain}
    for spelling in hot[:100]:
        gain = occurrences({(1, 2): 2.0, (2, 3): 1.0}, list(spelling.tokens))
        assert spelling.score == pytest.approx(scores[spelling.tokens] + gain, abs=1e-3)
    assert hot[0].tokens == (1, 2, 3, 4)


def test_rows_of_a_batch_have_hotwords_of_their_own(search: Any) -> None:
    inputs = [unsure("abad", "abcd", by=1.5)] * 3 + [unsure("ffffffee", "ffffffed", by=1.0)]
    wishes = [DecodingOptions(hotwords=words) for words in ((), ("bc",), ("ab", "da"), ("ed",))]
    found = search(CTCPrefixBeam(PrefixBeamConfig()), inputs, wishes, TOKENIZER)
    for spellings, log_probs, wish in zip(found, inputs, wishes, strict=True):
        [alone] = search(CTCPrefixBeam(PrefixBeamConfig()), [log_probs], wish, TOKENIZER)
        assert [each.tokens for each in spellings] == [each.tokens for each in alone]
    assert [TOKENIZER.decode(spellings[0].tokens) for spellings in found] == ["abad", "abcd", "abad", "ffffffed"]
