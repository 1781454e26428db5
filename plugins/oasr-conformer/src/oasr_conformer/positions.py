"""Sinusoidal position encodings (Vaswani et al., 2017), computed where they are needed: positions have no end."""

import math

import torch


def sinusoids(positions: torch.Tensor, width: int) -> torch.Tensor:
    """positions (...) int64 to encodings (..., width) float32, sines and cosines by turns."""
    even = torch.arange(0, width, 2, dtype=torch.float32, device=positions.device)
    angles = positions[..., None].float() * torch.exp(even * (-math.log(10_000.0) / width))
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)
