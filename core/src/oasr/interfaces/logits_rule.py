"""Logits rules: what a search may not choose."""

from abc import ABC, abstractmethod

import torch


class LogitsRule(ABC):
    """Changes next-token logits of the rows it governs.

    Rules run on the device, must not wait for it, and may be captured in a CUDA graph: pure functions of their tensors.
    """

    @abstractmethod
    def apply(self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Return the logits to search in.

        logits (rows, vocabulary) float32, may be changed in place; generated (rows, any) int64, the tokens after the
        prompt; counts (rows,) int64, how many of them are valid.
        """
