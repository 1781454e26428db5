"""The encoder: a Conformer (Gulati et al., 2020) as WeNet builds it (U2: Zhang et al., 2020; U2++: Wu et al., 2021).

WeNet's relative attention leaves out the shift of Transformer-XL: a query scores the absolute position of each key,
(q + u) k + (q + v) p with p the projected sinusoid of the key's position. That equals (q + u) (k + p) + (v - u) p:
plain attention to keys that carry their positions, and for each key a number that depends on its position alone.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from oasr.nn import Linear, SelfAttention, attention
from oasr_conformer.config import ConformerConfig, ConvolutionConfig
from oasr_conformer.layers import ACTIVATIONS, FeedForward, Residual
from oasr_conformer.positions import sinusoids

LOOK_AHEAD = {4: 6, 6: 10, 8: 14}
"""By subsampling: feature frames behind the first that the convolutions need for one encoder frame."""

_KERNELS_AND_STRIDES = {4: ((3, 2), (3, 2)), 6: ((3, 2), (5, 3)), 8: ((3, 2), (3, 2), (3, 2))}
_CONVOLUTION_NORM_EPSILON = 1e-5
_HIDDEN = -3e4  # added to a score, leaves a weight of zero in every number format; rows that see nothing stay finite


class Context(ABC):
    """What the frames of one pass see around them."""

    positions: torch.Tensor
    """Sinusoids of the frames' positions, (batch or 1, time, width)."""
    valid: torch.Tensor
    """bool (batch, time): frames that are not padding."""

    @abstractmethod
    def attend(self, layer: int, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Attend with the frames to all they may see; all (batch, time, heads, size). Returns (batch, time, width)."""

    @abstractmethod
    def with_past(self, layer: int, x: torch.Tensor, reach: int) -> torch.Tensor:
        """x (batch, time, width) behind the `reach` frames before it; zeros where nothing was."""


class Subsampling(nn.Module):
    """Convolutions that make one encoder frame of 4, 6 or 8 feature frames."""

    def __init__(self, mel_bins: int, width: int, factor: int):
        super().__init__()
        self._factor = factor
        inputs, bins = [1, width, width], mel_bins
        layers: list[nn.Module] = []
        for channels, (kernel, stride) in zip(inputs, _KERNELS_AND_STRIDES[factor], strict=False):
            layers += [nn.Conv2d(channels, width, kernel, stride), nn.ReLU()]
            bins = (bins - kernel) // stride + 1
        self.convolutions = nn.Sequential(*layers)
        self.out = Linear(width * bins, width)

    def forward(self, features: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """features (batch, time, bins) to frames (batch, at least one, width) and how many of them are valid."""
        least = LOOK_AHEAD[self._factor] + 1
        if features.shape[1] < least:
            features = F.pad(features, (0, 0, 0, least - features.shape[1]))
        x = self.convolutions(features[:, None])
        frames = (lengths - least).div(self._factor, rounding_mode="floor") + 1
        return self.out(x.transpose(1, 2).flatten(2)), frames.clamp(min=0)


class RelativeAttention(SelfAttention):
    """Self-attention whose keys carry their positions."""

    def __init__(self, width: int, heads: int):
        super().__init__(width, heads)
        self.position_weight = nn.Parameter(torch.empty(width, width))
        self.content_bias = nn.Parameter(torch.empty(heads, width // heads))
        self.position_bias = nn.Parameter(torch.empty(heads, width // heads))

    def project_at(self, x: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Query, keys and values of frames with these sinusoids."""
        query, keys, values = self.project(x)
        placed = F.linear(positions, self.position_weight).unflatten(-1, (self.heads, -1))
        return query + self.content_bias, keys + placed, values

    def position_scores(self) -> torch.Tensor:
        """What a key's sinusoid alone adds to its score in each head, as weights (heads, width) float32."""
        bias = (self.position_bias - self.content_bias).float()
        weight = self.position_weight.float().unflatten(0, bias.shape)
        return torch.einsum("hsw,hs->hw", weight, bias) / math.sqrt(bias.shape[1])


class BatchNorm(nn.Module):
    """Batch normalisation over the last dimension, with the statistics of training."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.empty(width))
        self.mean = nn.Parameter(torch.empty(width))
        self.variance = nn.Parameter(torch.empty(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.weight * (self.variance + _CONVOLUTION_NORM_EPSILON).rsqrt()
        return x * scale + (self.bias - self.mean * scale)


class Pointwise(nn.Module):
    """A linear layer stored as a convolution of kernel 1."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, 1))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight[..., 0], self.bias)


class Convolution(nn.Module):
    """The convolution module: a gate, a convolution of each channel over time, a norm, an activation."""

    def __init__(self, layer: int, width: int, config: ConvolutionConfig, activation: str):
        super().__init__()
        self.enter = Pointwise(width, 2 * width)
        self.depthwise = nn.Conv1d(
            width, width, config.kernel, groups=width, padding=0 if config.causal else config.kernel // 2
        )
        self.norm = BatchNorm(width) if config.norm == "batch" else nn.LayerNorm(width, _CONVOLUTION_NORM_EPSILON)
        self.leave = Pointwise(width, width)
        self._layer = layer
        self._past = config.kernel - 1 if config.causal else None
        self._activation = ACTIVATIONS[activation]

    def forward(self, x: torch.Tensor, context: Context) -> torch.Tensor:
        if self._past is not None:
            x = F.glu(self.enter(context.with_past(self._layer, x, self._past)), dim=-1)
        else:
            # The gate of nothing is not zero: padding must be, as it is beyond the end of a clip read alone.
            x = F.glu(self.enter(x), dim=-1).masked_fill(~context.valid[..., None], 0.0)
        x = self.depthwise(x.transpose(1, 2)).transpose(1, 2)
        return self.leave(self._activation(self.norm(x)))


class Block(nn.Module):
    """A Conformer block; without macaron and convolution, one of a Transformer."""

    def __init__(self, layer: int, config: ConformerConfig):
        super().__init__()
        width, epsilon, before = config.width, config.norm_epsilon, config.normalize_before
        share = 0.5 if config.macaron else 1.0
        self._layer = layer
        self.macaron = None
        if config.macaron:
            self.macaron = FeedForward(width, config.feed_forward, config.activation)
            self.macaron_residual = Residual(width, epsilon, before, share)
        self.attention: SelfAttention | RelativeAttention
        relative = config.positions == "relative"
        self.attention = (RelativeAttention if relative else SelfAttention)(width, config.heads)
        self.attention_residual = Residual(width, epsilon, before)
        self.convolution = None
        if config.convolution:
            self.convolution = Convolution(layer, width, config.convolution, config.activation)
            self.convolution_residual = Residual(width, epsilon, before)
            self.norm = nn.LayerNorm(width, epsilon)
        self.feed_forward = FeedForward(width, config.feed_forward, config.activation)
        self.feed_forward_residual = Residual(width, epsilon, before, share)

    def forward(self, x: torch.Tensor, context: Context) -> torch.Tensor:
        if self.macaron is not None:
            x = self.macaron_residual(x, self.macaron)
        x = self.attention_residual(x, lambda frames: self._attend(frames, context))
        convolution = self.convolution
        if convolution is None:
            return self.feed_forward_residual(x, self.feed_forward)
        x = self.convolution_residual(x, lambda frames: convolution(frames, context))
        return self.norm(self.feed_forward_residual(x, self.feed_forward))

    def _attend(self, x: torch.Tensor, context: Context) -> torch.Tensor:
        if isinstance(self.attention, RelativeAttention):
            query, keys, values = self.attention.project_at(x, context.positions)
        else:
            query, keys, values = self.attention.project(x)
        return self.attention.out(context.attend(self._layer, query, keys, values))


class FeatureNorm(nn.Module):
    """Mean and inverse deviation of each mel bin over the training data (cepstral mean and variance normalisation)."""

    def __init__(self, mel_bins: int):
        super().__init__()
        self.mean = nn.Parameter(torch.empty(mel_bins))
        self.inverse_deviation = nn.Parameter(torch.empty(mel_bins))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return (features - self.mean) * self.inverse_deviation


class Encoder(nn.Module):
    def __init__(self, config: ConformerConfig):
        super().__init__()
        self.config = config
        self.feature_norm = FeatureNorm(config.features.mel_bins) if config.normalized_features else None
        self.subsampling = Subsampling(config.features.mel_bins, config.width, config.subsampling)
        self.blocks = nn.ModuleList(Block(layer, config) for layer in range(config.layers))
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)  # where norms follow layers, stored and not used

    def embed(self, features: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Features (batch, time, bins) to what the blocks read but for positions, and its lengths."""
        if self.feature_norm is not None:
            features = self.feature_norm(features)
        x, lengths = self.subsampling(features.to(self.norm.weight.dtype), lengths)
        return x * math.sqrt(self.config.width), lengths

    def forward(self, x: torch.Tensor, context: Context) -> torch.Tensor:
        """What `embed` gave, (batch, time, width), to encoder frames."""
        if self.config.positions == "absolute":
            x = x + context.positions
        for block in self.blocks:
            x = block(x, context)
        return self.norm(x) if self.config.normalize_before else x

    def position_scores(self) -> torch.Tensor | None:
        """Weights (layers * heads, width) float32 that turn the sinusoid of a key into what it adds to its score."""
        if self.config.positions != "relative":
            return None
        blocks = cast("Sequence[Block]", self.blocks)
        return torch.cat([cast(RelativeAttention, block.attention).position_scores() for block in blocks])

    def masks(self, sinusoid: torch.Tensor, valid: torch.Tensor, scores: torch.Tensor | None) -> torch.Tensor:
        """What is added to the scores of keys, (layers or 1, batch or 1, heads or 1, 1, keys).

        sinusoid (batch or 1, keys, width) float32 of the keys' positions, valid bool (batch, keys), and scores as
        `position_scores` gave them.
        """
        if scores is None:
            added = torch.zeros_like(valid, dtype=torch.float32)[None, :, None]
        else:
            added = (scores @ sinusoid.transpose(1, 2)).unflatten(1, (self.config.layers, -1)).transpose(0, 1)
        masked = added.masked_fill(~valid[:, None], _HIDDEN)
        return masked[:, :, :, None].to(self.norm.weight.dtype)


class WholePass(Context):
    """All frames of each row at once, as far as a row reaches; attention may be limited as it is chunk by chunk."""

    def __init__(
        self,
        encoder: Encoder,
        frames: torch.Tensor,
        lengths: torch.Tensor,
        chunk: int | None = None,
        left_context: int | None = None,
    ):
        places = torch.arange(frames.shape[1], device=frames.device)[None]
        sinusoid = sinusoids(places, encoder.config.width)
        self.positions = sinusoid.to(frames.dtype)
        self.valid = places < lengths[:, None]
        self._masks = encoder.masks(sinusoid, self.valid, encoder.position_scores())
        self._chunk = chunk
        self._left_context = left_context

    def attend(self, layer: int, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        mask = self._masks[layer % len(self._masks)]
        if self._chunk is None:
            return attention(query, keys, values, mask)
        attended = []
        # A chunk sees itself and what is before, so a mask of queries by keys is not needed.
        for start in range(0, query.shape[1], self._chunk):
            stop = start + self._chunk
            seen = slice(0 if self._left_context is None else max(0, start - self._left_context), stop)
            # Attention on CUDA reads masks several numbers at a time, which faults where a part begins between them.
            part = mask[..., seen].contiguous()
            attended.append(attention(query[:, start:stop], keys[:, seen], values[:, seen], part))
        return torch.cat(attended, dim=1)

    def with_past(self, layer: int, x: torch.Tensor, reach: int) -> torch.Tensor:
        return F.pad(x, (0, 0, reach, 0))
