"""A table of vectors."""

import torch
import torch.nn.functional as F
from torch import nn


class Embedding(nn.Module):
    """ids (...) to vectors (..., width). Created empty: a checkpoint fills it.

    `torch.nn.Embedding` draws random numbers on construction, which on the meta device costs the import of torch's
    compiler, about two seconds.
    """

    def __init__(self, size: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, width))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return F.embedding(ids, self.weight)

    def project(self, x: torch.Tensor) -> torch.Tensor:
        """x (..., width) to its products with every vector, (..., size): logits, where the table is tied to them."""
        return F.linear(x, self.weight)
