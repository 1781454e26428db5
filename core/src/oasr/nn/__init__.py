"""Layers that architectures share, and that quantizers replace."""

from oasr.nn.attention import attention
from oasr.nn.embedding import Embedding
from oasr.nn.linear import Linear

__all__ = ["Embedding", "Linear", "attention"]
