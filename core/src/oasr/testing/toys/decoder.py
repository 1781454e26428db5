"""The toy's search."""

from collections.abc import Sequence

import torch

from oasr.errors import RequestError
from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.decoder import LabelSynchronousDecoder
from oasr.types import DecodingOptions


class ToyDecoder(LabelSynchronousDecoder):
    """Greedy; it refuses to sample."""

    def __init__(self, config: ComponentConfig | None):
        """There is nothing to set."""

    def check(self, options: DecodingOptions) -> None:
        super().check(options)
        if options.temperature:
            raise RequestError("The decoder toy-greedy does not sample; leave temperature at 0")

    def advance(
        self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor, states: Sequence[None]
    ) -> torch.Tensor:
        return logits.argmax(dim=-1)
