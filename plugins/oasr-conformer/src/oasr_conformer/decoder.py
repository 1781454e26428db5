"""The attention decoders, which score hypotheses that another search found (U2: Zhang et al., 2020)."""

import math

import torch
from torch import nn

from oasr.nn import Embedding, Linear, SelfAttention, attention
from oasr_conformer.config import DecoderConfig
from oasr_conformer.layers import FeedForward, Residual
from oasr_conformer.positions import sinusoids


class CrossAttention(nn.Module):
    """Attention of texts to the audio they were found in."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self._heads = heads
        self.query = Linear(width, width)
        self.key_value = Linear(width, 2 * width)
        self.out = Linear(width, width)

    def forward(self, x: torch.Tensor, audio: torch.Tensor, heard: torch.Tensor) -> torch.Tensor:
        """x (rows * texts, tokens, width), audio (rows, frames, width), heard bool (rows, 1, 1, frames)."""
        keys, values = self.key_value(audio).unflatten(-1, (2, self._heads, -1)).unbind(2)
        # The texts of a row hear the same audio: all their tokens ask it at once.
        query = self.query(x).reshape(len(audio), -1, self._heads, keys.shape[-1])
        return self.out(attention(query, keys, values, heard).view_as(x))


class DecoderBlock(nn.Module):
    def __init__(self, width: int, config: DecoderConfig):
        super().__init__()
        self.attention = SelfAttention(width, config.heads)
        self.attention_residual = Residual(width, config.norm_epsilon, config.normalize_before)
        self.cross_attention = CrossAttention(width, config.heads)
        self.cross_residual = Residual(width, config.norm_epsilon, config.normalize_before)
        self.feed_forward = FeedForward(width, config.feed_forward, config.activation)
        self.feed_forward_residual = Residual(width, config.norm_epsilon, config.normalize_before)

    def forward(
        self, x: torch.Tensor, looking_back: torch.Tensor, audio: torch.Tensor, heard: torch.Tensor
    ) -> torch.Tensor:
        x = self.attention_residual(
            x, lambda tokens: self.attention.out(attention(*self.attention.project(tokens), looking_back))
        )
        x = self.cross_residual(x, lambda tokens: self.cross_attention(tokens, audio, heard))
        return self.feed_forward_residual(x, self.feed_forward)


class Decoder(nn.Module):
    """A Transformer that reads texts in one direction."""

    def __init__(self, width: int, vocabulary_size: int, layers: int, config: DecoderConfig):
        super().__init__()
        self._scale = math.sqrt(width)
        self.tokens = Embedding(vocabulary_size, width)
        self.blocks = nn.ModuleList(DecoderBlock(width, config) for _ in range(layers))
        self.norm = nn.LayerNorm(width, config.norm_epsilon)
        self._normalize_before = config.normalize_before
        self.out = Linear(width, vocabulary_size)

    def forward(self, tokens: torch.Tensor, audio: torch.Tensor, heard: torch.Tensor) -> torch.Tensor:
        """Logits of the token after each, (rows, texts, tokens, vocabulary).

        tokens int64 (rows, texts, tokens), audio (rows, frames, width), heard bool (rows, frames): what is no padding.
        """
        length = tokens.shape[2]
        looking_back = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
        x = self.tokens(tokens.flatten(0, 1)) * self._scale
        x = x + sinusoids(torch.arange(length, device=tokens.device), x.shape[-1]).to(x.dtype)
        for block in self.blocks:
            x = block(x, looking_back, audio, heard[:, None, None])
        if self._normalize_before:
            x = self.norm(x)
        return self.out(x).unflatten(0, tokens.shape[:2])
