"""Scaled dot-product attention."""

import torch
import torch.nn.functional as F


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
