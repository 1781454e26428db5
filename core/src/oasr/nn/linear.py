"""The linear layer of every architecture: one class, so that `to_int8` knows what to replace."""

import torch
import torch.nn.functional as F
from torch import nn


class Linear(nn.Module):
    """x (..., inputs) to (..., outputs). Created empty: a checkpoint fills it."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight, self.bias)
