"""No n-gram is said twice, and otherwise it is a search like any other."""

from collections.abc import Callable
from typing import ClassVar

import pytest
import torch

from oasr.testing import DecoderSuite, PluginSuite

pytest.importorskip("acme_oasr_decoder_norepeat", reason="pip install ./examples/plugin-decoder")

from acme_oasr_decoder_norepeat.config import NoRepeatConfig
from acme_oasr_decoder_norepeat.decoder import NoRepeatDecoder


class TestPlugin(PluginSuite):
    plugin = "acme_oasr_decoder_norepeat.plugin"


class TestNoRepeat(DecoderSuite):
    component = "no-repeat"


class TestNoRepeatOfSingleTokens(TestNoRepeat):
    options: ClassVar = {"ngram": 1}


def say(ngram: int, logits: Callable[[], torch.Tensor], steps: int) -> list[int]:
    """What is said from logits (1, vocabulary)."""
    decoder = NoRepeatDecoder(NoRepeatConfig(ngram=ngram))
    generated = torch.zeros(1, steps + 1, dtype=torch.int64)
    for count in range(steps):
        generated[:, count] = decoder.advance(logits(), generated, torch.tensor([count]), [None])
    return generated[0, :steps].tolist()


@pytest.mark.parametrize("ngram", [1, 2, 3, 4])
def test_no_n_gram_is_said_twice(ngram: int) -> None:
    generator = torch.Generator().manual_seed(0)
    favourites = torch.zeros(40)
    favourites[:2] = 5.0
    said = say(ngram, lambda: (favourites + torch.randn(40, generator=generator))[None], steps=30)
    grams = [tuple(said[start : start + ngram]) for start in range(len(said) - ngram + 1)]
    assert len(set(grams)) == len(grams)


def test_shorter_repetitions_are_allowed() -> None:
    assert say(4, lambda: torch.tensor([[1.0, 0.0]]), steps=5) == [0, 0, 0, 0, 1]


def test_the_likeliest_that_is_left_is_said() -> None:
    assert say(2, lambda: torch.tensor([[3.0, 2.0, 1.0]]), steps=6) == [0, 0, 1, 0, 2, 0]


def test_it_repeats_rather_than_say_what_the_model_rules_out() -> None:
    assert say(1, lambda: torch.tensor([[1.0, -torch.inf]]), steps=3) == [0, 0, 0]
