"""Prefix beams are those of a search that keeps prefixes in a dictionary, and exact where nothing is pruned."""

import itertools
import math
from collections import defaultdict
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oasr.errors import RequestError
from oasr.tokenizers.pieces import PieceTokenizer
from oasr.types import DecodingOptions
from oasr_decoder_ctc.config import PrefixBeamConfig
from oasr_decoder_ctc.greedy import CTCGreedy
from oasr_decoder_ctc.prefix_beam import CTCPrefixBeam

LETTERS = "abcde"
TOKENIZER = PieceTokenizer(["<blk>", *LETTERS])
LAW = settings(
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
SEEDS = st.integers(0, 10_000)


def noise(time: int, seed: int, vocabulary: int = len(LETTERS) + 1, sharpness: float = 2.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (sharpness * torch.randn(time, vocabulary, generator=generator)).log_softmax(dim=-1)


def add(*terms: float) -> float:
    most = max(terms)
    return most if most == -math.inf else most + math.log(sum(math.exp(term - most) for term in terms))


def by_dictionary(log_probs: torch.Tensor, beam: int) -> list[tuple[tuple[int, ...], float]]:
    """The search as in Hannun et al., 2014, with the likeliest `beam` tokens of each frame."""
    prefixes = {(): (0.0, -math.inf)}
    for frame in log_probs.double():
        following: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [-math.inf, -math.inf])
        values, tokens = frame.topk(min(beam, len(frame)))
        for value, token in zip(values.tolist(), tokens.tolist(), strict=True):
            for prefix, (spaced, spoken) in prefixes.items():
                if token == 0:
                    following[prefix][0] = add(following[prefix][0], spaced + value, spoken + value)
                    continue
                longer = following[(*prefix, token)]
                if prefix[-1:] == (token,):
                    following[prefix][1] = add(following[prefix][1], spoken + value)
                    longer[1] = add(longer[1], spaced + value)
                else:
                    longer[1] = add(longer[1], spaced + value, spoken + value)
        best = sorted(following.items(), key=lambda each: -add(*each[1]))[:beam]
        prefixes = {prefix: (spaced, spoken) for prefix, (spaced, spoken) in best}
    found = [(prefix, add(*scores)) for prefix, scores in prefixes.items()]
    return [each for each in found if each[1] > -math.inf]


def assert_found(spellings: Any, expected: list[tuple[tuple[int, ...], float]]) -> None:
    assert [each.tokens for each in spellings] == [tokens for tokens, _ in expected]
    assert [each.score for each in spellings] == pytest.approx([score for _, score in expected], abs=1e-6)


@LAW
@given(seed=SEEDS, beam=st.integers(1, 8), time=st.integers(1, 25), sharpness=st.sampled_from([0.5, 2.0, 6.0]))
def test_beams_are_those_of_a_dictionary(search: Any, seed: int, beam: int, time: int, sharpness: float) -> None:
    log_probs = noise(time, seed, sharpness=sharpness)
    [spellings] = search(CTCPrefixBeam(PrefixBeamConfig(beam=beam)), [log_probs])
    assert_found(spellings, by_dictionary(log_probs, beam))


@LAW
@given(seed=SEEDS, time=st.integers(1, 5))
def test_without_pruning_a_score_is_the_sum_over_all_paths(search: Any, seed: int, time: int) -> None:
    log_probs = noise(time, seed, vocabulary=3)
    sums: dict[tuple[int, ...], float] = defaultdict(lambda: -math.inf)
    for path in itertools.product(range(3), repeat=time):
        text = tuple(token for token, _ in itertools.groupby(path) if token)
        sums[text] = add(sums[text], sum(log_probs[frame, token].item() for frame, token in enumerate(path)))
    [spellings] = search(CTCPrefixBeam(PrefixBeamConfig(beam=400)), [log_probs])
    assert_found(spellings, sorted(sums.items(), key=lambda each: -each[1]))


@LAW
@given(seed=SEEDS)
def test_frames_lie_on_a_path_that_spells_the_tokens(search: Any, seed: int) -> None:
    log_probs = noise(20, seed)
    [spellings] = search(CTCPrefixBeam(PrefixBeamConfig()), [log_probs])
    for each in spellings:
        assert list(each.frames) == sorted(set(each.frames))
        for (one, left), (other, right) in itertools.pairwise(zip(each.tokens, each.frames, strict=True)):
            assert one != other or right - left > 1, "a blank parts equal tokens"
        at_frames = log_probs[list(each.frames), list(each.tokens)].tolist()
        assert list(each.log_probs) == pytest.approx(at_frames)


def test_rows_of_any_width_share_a_batch(search: Any) -> None:
    decoder = CTCPrefixBeam(PrefixBeamConfig(beam=3))
    inputs = [noise(time, time) for time in (12, 30, 7, 20)]
    wishes = [DecodingOptions(beam=beam) for beam in (1, 5, 2, 5)]
    found = search(decoder, inputs, wishes)
    for spellings, log_probs, beam in zip(found, inputs, (3, 5, 2, 5), strict=True):
        assert_found(spellings, by_dictionary(log_probs, beam))


def test_a_beam_wider_than_the_vocabulary_is_as_wide(search: Any) -> None:
    log_probs = noise(15, 3)
    [spellings] = search(CTCPrefixBeam(PrefixBeamConfig(beam=20)), [log_probs])
    assert len(spellings) == 20
    assert_found(spellings, by_dictionary(log_probs, 20))


def clear(tokens: list[int], sure: float = 30.0) -> torch.Tensor:
    logits = torch.randn(len(tokens), len(LETTERS) + 1, generator=torch.Generator().manual_seed(len(tokens)))
    logits[range(len(tokens)), tokens] = sure
    return logits.log_softmax(dim=-1)


def test_skipping_blank_frames_keeps_equal_tokens_apart(search: Any) -> None:
    log_probs = clear([0, 0, 1, 1, 0, 0, 0, 1, 0, 2, 0, 0, 2, 2, 0])
    [spellings] = search(CTCPrefixBeam(PrefixBeamConfig(skip_blank=0.9)), [log_probs])
    assert spellings[0].tokens == (1, 1, 2, 2)
    assert spellings[0].frames == (3, 7, 9, 13)


def test_frames_that_are_not_surely_blank_are_not_skipped(search: Any) -> None:
    log_probs = noise(30, 1)
    [skipping] = search(CTCPrefixBeam(PrefixBeamConfig(skip_blank=0.999)), [log_probs])
    assert_found(skipping, by_dictionary(log_probs, 10))


def test_a_row_of_blanks_alone_says_nothing(search: Any) -> None:
    [spellings, _] = search(CTCPrefixBeam(PrefixBeamConfig(skip_blank=0.5)), [clear([0] * 9), clear([1] * 4)])
    assert spellings[0].tokens == ()


def test_long_streams_forget_what_no_beam_needs(search: Any) -> None:
    import gc

    from oasr.interfaces.architecture import EncoderOutput
    from oasr_decoder_ctc.chains import Chain

    decoder = CTCPrefixBeam(PrefixBeamConfig(beam=4))
    head = type("Head", (), {"blank": 0, "vocabulary_size": 6, "log_probs": staticmethod(lambda frames: frames)})
    row = decoder.start(head, DecodingOptions(), TOKENIZER)
    for seed in range(30):
        decoder.advance(head, EncoderOutput(noise(20, seed)[None], torch.tensor([20])), [row])
        [best, *_] = decoder.spellings(row)
    held = sum(isinstance(each, Chain) for each in gc.get_objects())
    assert len(best.tokens) > 100
    assert held < 2 * len(best.tokens)


@pytest.mark.parametrize(
    "options",
    [
        DecodingOptions(temperature=0.5),
        DecodingOptions(best_of=3),
        DecodingOptions(suppress_tokens=(1,)),
        DecodingOptions(prompt="Hello"),
        DecodingOptions(max_new_tokens=3),
        DecodingOptions(length_penalty=0.6),
        DecodingOptions(condition_on_previous=True),
    ],
)
def test_options_that_ctc_cannot_honour_are_refused(options: DecodingOptions) -> None:
    for decoder in (CTCGreedy(None), CTCPrefixBeam(PrefixBeamConfig())):
        with pytest.raises(RequestError, match="leave it unset"):
            decoder.check(options)


@pytest.mark.parametrize("options", [DecodingOptions(beam=4), DecodingOptions(hotwords=("a",))])
def test_greedy_refuses_what_needs_beams_and_says_which_search_has_them(options: DecodingOptions) -> None:
    with pytest.raises(RequestError, match="ctc-prefix-beam"):
        CTCGreedy(None).check(options)
    CTCPrefixBeam(PrefixBeamConfig()).check(options)
