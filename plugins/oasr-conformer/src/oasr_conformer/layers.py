"""What the blocks of the encoder and of the decoders are made of."""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import nn

from oasr.nn import Linear

ACTIVATIONS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}


class Residual(nn.Module):
    """Adds what a layer makes of its input to it, with layer normalisation before the layer or after the sum."""

    def __init__(self, width: int, epsilon: float, normalize_before: bool, share: float = 1.0):
        super().__init__()
        self.norm = nn.LayerNorm(width, epsilon)
        self._before = normalize_before
        self._share = share

    def forward(self, x: torch.Tensor, layer: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        if self._before:
            return torch.add(x, layer(self.norm(x)), alpha=self._share)
        return self.norm(torch.add(x, layer(x), alpha=self._share))


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int, activation: str):
        super().__init__()
        self.up = Linear(width, hidden)
        self.down = Linear(hidden, width)
        self._activation = ACTIVATIONS[activation]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self._activation(self.up(x)))
