"""What a head sees of the caches: the rows it works on now, and nothing of how they are stored."""

from abc import ABC, abstractmethod

import torch


class CacheView(ABC):
    """Some rows of the caches, for one forward pass that adds `new` tokens to each of them.

    The `width` rows of a window, which hear the same audio, are consecutive and share the window's slot.
    """

    width: int
    """Rows of each window."""

    positions: torch.Tensor
    """int64 (rows, new): position of each new token in its row."""
    mask: torch.Tensor
    """bool (rows, 1, new, time): which stored tokens each new token attends to; False also hides free places."""

    @abstractmethod
    def append(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the new tokens' keys and values (rows, new, heads, size); return all (rows, time, heads, size)."""

    @abstractmethod
    def store(self, name: str, index: int, values: torch.Tensor) -> None:
        """Write entry `index` of the windows' slot tensor `name`; values (windows, ...)."""

    @abstractmethod
    def load(self, name: str, index: int) -> torch.Tensor:
        """Entry `index` of the windows' slot tensor `name`, (windows, ...)."""
