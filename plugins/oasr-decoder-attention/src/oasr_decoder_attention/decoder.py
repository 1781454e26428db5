"""Greedy search, beam search and sampling."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.decoder import Branches, Breadth, LabelSynchronousDecoder
from oasr.types import DecodingOptions

_COLDEST = 1e-6  # below it a float32 has no room for the quotient, and the likeliest token is certain anyway


@dataclass(frozen=True, slots=True)
class _Draw:
    """A window that samples: its own generator makes its draws independent of the rows beside it."""

    temperature: float
    generator: torch.Generator


class AttentionDecoder(LabelSynchronousDecoder):
    """At temperature 0 the likeliest token, or as many beams as asked for; above it draws from the softmax."""

    def __init__(self, config: ComponentConfig | None):
        """There is nothing to set."""

    def check(self, options: DecodingOptions) -> None:
        """All options of width are honoured."""

    def breadth(self, options: DecodingOptions) -> Breadth:
        if options.temperature > 0:
            return Breadth(options.best_of)
        if options.beam == 1:
            return Breadth()
        return Breadth(options.beam, finished=max(1, round(options.beam * options.patience)))

    def start(self, options: DecodingOptions, device: torch.device) -> _Draw | None:
        if options.temperature == 0:
            return None
        return _Draw(max(options.temperature, _COLDEST), torch.Generator(device).manual_seed(options.seed))

    def advance(
        self,
        logits: torch.Tensor,
        generated: torch.Tensor,
        counts: torch.Tensor,
        states: Sequence[_Draw | None],
    ) -> torch.Tensor:
        tokens = logits.argmax(dim=-1)
        for row, draw in enumerate(states):
            if draw is not None:
                # Gumbel-max: the arg-max of logits / temperature + Gumbel noise is a draw from the softmax.
                noise = torch.empty_like(logits[row]).exponential_(generator=draw.generator)
                behind = logits[row] - logits[row].amax()  # at most 0, so that no temperature overflows
                tokens[row] = (behind / draw.temperature - noise.log()).argmax()
        return tokens

    def branch(self, log_probs: torch.Tensor, scores: torch.Tensor, ends: torch.Tensor) -> Branches:
        """Of all continuations of a window's beams, the best go on; what ends counts where it beats one of these.

        So the search of openai/whisper goes (decoding.py). What the rules forbid keeps its share of the probability, as
        in transformers: a text is as probable as the model finds it.
        """
        width, vocabulary = log_probs.shape[1:]
        # A beam has `width` continuations among the best, and its end, at most.
        few = min(width + 1, vocabulary)
        best, tokens = log_probs.topk(few, dim=-1)
        totals = (scores[:, :, None] + best).masked_fill(tokens == ends[:, None, None], -torch.inf)
        going, index = totals.flatten(1).topk(width, dim=-1)
        ending = scores + log_probs.gather(2, ends[:, None, None].expand(-1, width, 1))[:, :, 0]
        return Branches(
            tokens=tokens.flatten(1).gather(1, index),
            parents=index // few,
            scores=going,
            ended=ending.masked_fill(~(ending > going[:, -1:]), -torch.inf),
        )

    def rank(self, score: float, tokens: int, options: DecodingOptions) -> float:
        if options.length_penalty is None:
            return score / tokens
        return score / ((5 + tokens) / 6) ** options.length_penalty
