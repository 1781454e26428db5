"""Greedy search and sampling."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.decoder import LabelSynchronousDecoder
from oasr.types import DecodingOptions

_COLDEST = 1e-6  # below it a float32 has no room for the quotient, and the likeliest token is certain anyway


@dataclass(frozen=True, slots=True)
class _Draw:
    """A row that samples: its own generator makes its draws independent of the rows beside it."""

    temperature: float
    generator: torch.Generator


class AttentionDecoder(LabelSynchronousDecoder):
    """The likeliest token of each row, or at a temperature above 0 a draw from the softmax."""

    def __init__(self, config: ComponentConfig | None):
        """There is nothing to set."""

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
