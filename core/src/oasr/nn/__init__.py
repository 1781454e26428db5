"""Layers that architectures share, and that quantizers replace."""

from oasr.nn.attention import attention
from oasr.nn.linear import Linear

__all__ = ["Linear", "attention"]
