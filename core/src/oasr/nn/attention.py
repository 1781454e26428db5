"""Scaled dot-product attention."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from oasr.nn.linear import Linear


class SelfAttention(nn.Module):
    """The projections of multi-head self-attention; whoever has other keys and values, as a cache has, attends."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = Linear(width, 3 * width)
        self.out = Linear(width, width)

    def project(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """x (batch, time, width) to query, keys and values, each (batch, time, heads, size)."""
        projected: Sequence[torch.Tensor] = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        return projected

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every place attend to all."""
        attended: torch.Tensor = self.out(attention(*self.project(x)))
        return attended


def attention(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Attend with query (rows, new, heads, size) to keys and values (rows, time, heads, size).

    mask is broadcastable to (rows, heads, new, time): bool, False where a query must not look, or numbers of the
    queries' type that are added to the scores. Returns (rows, new, heads * size).
    """
    attended = F.scaled_dot_product_attention(
        query.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), attn_mask=mask
    )
    return attended.transpose(1, 2).flatten(2)
