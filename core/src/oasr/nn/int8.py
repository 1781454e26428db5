"""Layers with int8 weights for CPUs: a quarter of the memory, and products of integers.

Weights have one scale an output; inputs are quantized as they come, with one scale a row. Both are symmetric, as in
LLM.int8() (Dettmers et al., 2022) without its outliers. What a row gives never depends on the rows beside it: sums of
integers are exact in any order.
"""

import torch
import torch.nn.functional as F
from torch import nn

from oasr.nn.embedding import Embedding
from oasr.nn.linear import Linear

_LARGEST = 127
_ROWS_AT_ONCE = 256  # so that what lies between the steps of a product stays in a core's cache


def to_int8(module: nn.Module) -> None:
    """Replace every `Linear` and `Embedding` inside a module; the float weights are let go of one by one."""
    for name, child in module.named_children():
        if isinstance(child, Linear):
            setattr(module, name, Int8Linear(child))
        elif isinstance(child, Embedding):
            setattr(module, name, Int8Embedding(child))
        else:
            to_int8(child)


class Int8Weight(nn.Module):
    """A matrix (outputs, inputs), quantized."""

    weight: torch.Tensor
    scale: torch.Tensor

    def __init__(self, weight: torch.Tensor):
        super().__init__()
        integers, scale = quantize(weight.detach())
        self.register_buffer("weight", integers)
        self.register_buffer("scale", scale[:, 0])

    def multiply(self, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """x (..., inputs) to (..., outputs), as `torch.nn.functional.linear`."""
        rows = x.reshape(-1, x.shape[-1])
        products = rows.new_empty(len(rows), len(self.weight))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            integers, scale = quantize(rows[start : start + _ROWS_AT_ONCE])
            product = products[start : start + _ROWS_AT_ONCE]
            torch.mul(torch._int_mm(integers, self.weight.t()), scale, out=product).mul_(self.scale)
            if bias is not None:
                product.add_(bias)
        return products.view(*x.shape[:-1], len(self.weight))


class Int8Linear(Int8Weight):
    """A `Linear`, quantized."""

    def __init__(self, layer: Linear):
        super().__init__(layer.weight)
        self.bias = layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.multiply(x, self.bias)


class Int8Embedding(Int8Weight):
    """An `Embedding`, quantized: one matrix for both of its directions."""

    def __init__(self, table: Embedding):
        super().__init__(table.weight)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return F.embedding(ids, self.weight) * F.embedding(ids, self.scale[:, None])

    def project(self, x: torch.Tensor) -> torch.Tensor:
        return self.multiply(x)


def quantize(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """rows float (n, size) as int8 (n, size) and their scales (n, 1): a value is about its integer times the scale.

    It is off by at most half a scale; the scale is the largest magnitude of the row over 127. What is not finite gives
    a scale that is not finite either.
    """
    scale = rows.abs().amax(dim=1, keepdim=True).div_(_LARGEST).clamp_(min=torch.finfo(rows.dtype).tiny)
    return (rows / scale).round_().to(torch.int8), scale
