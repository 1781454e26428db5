"""Layers that architectures share, and their int8 forms."""

from oasr.nn.attention import SelfAttention, attention
from oasr.nn.embedding import Embedding
from oasr.nn.int8 import to_int8
from oasr.nn.linear import Linear

__all__ = ["Embedding", "Linear", "SelfAttention", "attention", "to_int8"]
