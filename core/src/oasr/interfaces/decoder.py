"""Decoders: the searches."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from oasr.interfaces.component import ComponentConfig
from oasr.types import DecodingOptions


class Decoder(ABC):
    """A search over the outputs of one head."""

    head: ClassVar[str]
    """Name of the head it needs: `autoregressive`."""

    @abstractmethod
    def __init__(self, config: ComponentConfig | None):
        """Take the options; None for a component that declares no configuration."""


class LabelSynchronousDecoder(Decoder):
    """Chooses the next token of every row from its logits. The engine owns the loop, so rows of many requests mix.

    Law: what a row chooses depends on that row alone.
    """

    head: ClassVar[str] = "autoregressive"

    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for an option this search cannot honour; by default it honours all."""

    def start(self, options: DecodingOptions, device: torch.device) -> Any:
        """State of one row's search on the host, such as a generator; None, the default, lets it be captured."""
        return None

    @abstractmethod
    def advance(
        self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor, states: Sequence[Any]
    ) -> torch.Tensor:
        """Next token of each row, int64 (rows,), without waiting for the device.

        Where every state is None the call may be captured in a CUDA graph and replayed: a pure function of its
        tensors then, whose Python runs once.

        logits (rows, vocabulary) float32 with the rules applied, not to be changed; generated (rows, any) int64, the
        tokens chosen so far; counts (rows,) int64, how many of them are valid; states as `start` made them, one a row.
        """
