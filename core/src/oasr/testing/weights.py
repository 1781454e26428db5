"""Random weights that make a network lively: results that differ, and no overflow."""

import torch
from torch import nn


def randomize(module: nn.Module, seed: int = 0) -> None:
    """Fill every floating-point tensor of a module, as far as can be from zero and from infinity."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in sorted(module.state_dict().items()):
            if not tensor.is_floating_point():
                continue
            values = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() > 1:
                tensor.copy_(values / tensor[0].numel() ** 0.5)
            else:
                tensor.copy_(0.1 * values + float(name.endswith("weight")))
