"""The encoder (Yao et al., 2023, section 3.1): stacks of layers, each at a frame rate and width of its own."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from oasr_zipformer.config import StackConfig, ZipformerConfig
from oasr_zipformer.layer import Bypass, Layer
from oasr_zipformer.timeline import NoPast, Past, Timeline, whole_timeline


class Downsampling(nn.Module):
    """Weighted means of groups of frames; an incomplete group repeats the last frame there is."""

    def __init__(self, factor: int):
        super().__init__()
        self.factor = factor
        self.bias = nn.Parameter(torch.empty(factor))

    def forward(self, x: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
        """x (batch, time, width), lengths int64 (batch,) or None when all frames exist and no group is incomplete."""
        if lengths is not None:
            time = torch.arange(x.shape[1] + -x.shape[1] % self.factor, device=x.device)
            nearest = torch.minimum(time, (lengths - 1).clamp(min=0)[:, None])
            x = x[torch.arange(len(x), device=x.device)[:, None], nearest]
        weights = self.bias.softmax(dim=0)[:, None]
        return (x.unflatten(1, (-1, self.factor)) * weights).sum(dim=2)


class Stack(nn.Module):
    """Layers at one frame rate, between a downsampling and its inverse."""

    def __init__(self, config: StackConfig, position_width: int, causal: bool):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(Layer(config, position_width, causal) for _ in range(config.layers))
        if config.downsampling > 1:
            self.downsampling = Downsampling(config.downsampling)
            self.bypass = Bypass(config.width)

    def forward(
        self,
        x: torch.Tensor,
        lengths: torch.Tensor | None,
        distances: torch.Tensor,
        timeline: Timeline,
        pasts: Sequence[Past],
    ) -> torch.Tensor:
        """x (batch, time, width) and lengths (batch,) at the rate of the front end; a past for each layer."""
        factor = self.config.downsampling
        slow = self.downsampling(x, lengths) if factor > 1 else x
        for layer, past in zip(self.layers, pasts, strict=True):
            slow = layer(slow, distances, timeline, past)
        if factor == 1:
            return slow
        repeated = slow[:, :, None].expand(-1, -1, factor, -1).flatten(1, 2)
        return self.bypass(x, repeated[:, : x.shape[1]])


class Encoder(nn.Module):
    """Frames at 50 Hz to frames at 25 Hz."""

    def __init__(self, config: ZipformerConfig):
        super().__init__()
        self.config = config
        self.stacks = nn.ModuleList(Stack(stack, config.position_width, config.causal) for stack in config.stacks)
        self.downsampling = Downsampling(config.output_downsampling)

    def forward(
        self,
        x: torch.Tensor,
        lengths: torch.Tensor | None,
        distances: Sequence[torch.Tensor],
        timelines: Sequence[Timeline],
        pasts: Sequence[Sequence[Past]],
    ) -> torch.Tensor:
        """x (batch, time, width) and lengths (batch,) of the front end; for each stack, what its layers need."""
        outputs: list[torch.Tensor] = []
        for config, stack, *given in zip(self.config.stacks, self.stacks, distances, timelines, pasts, strict=True):
            x = _of_width(x, config.width)
            x = stack(x, lengths, *given)
            outputs.append(x)
        encoded: torch.Tensor = self.downsampling(_widest(outputs), lengths)
        return encoded

    def whole(
        self, x: torch.Tensor, lengths: torch.Tensor, chunk: int | None, left_context: int | None
    ) -> torch.Tensor:
        """Whole inputs (batch, time, width) in one pass, with attention limited by chunk and left context in frames."""
        timelines: dict[int, Timeline] = {}
        distances: dict[int, torch.Tensor] = {}
        factors = [stack.downsampling for stack in self.config.stacks]
        for factor in set(factors):
            frames = -(-x.shape[1] // factor)
            limits = [limit // factor if limit else limit for limit in (chunk, left_context)]
            timelines[factor] = whole_timeline((lengths + factor - 1) // factor, frames, *limits)
            distances[factor] = relative_positions(frames, frames, self.config.position_width, x)
        encoded: torch.Tensor = self(
            x,
            lengths,
            [distances[factor] for factor in factors],
            [timelines[factor] for factor in factors],
            [[NoPast()] * stack.layers for stack in self.config.stacks],
        )
        return encoded


def _of_width(x: torch.Tensor, width: int) -> torch.Tensor:
    """x without its last channels, or with zeros behind them."""
    return x[..., :width] if x.shape[-1] >= width else F.pad(x, (0, width - x.shape[-1]))


def relative_positions(frames: int, keys: int, width: int, like: torch.Tensor) -> torch.Tensor:
    """Encodings of how far a key stands behind a frame, (keys + frames - 1, width), from -(keys - 1) to frames - 1.

    Distances are compressed, to logarithms far away, and then to angles, so that any distance has an encoding
    (icefall, zipformer.py, CompactRelPositionalEncoding). The last number is one, as a bias. Type and device are those
    of `like`.
    """
    distance = torch.arange(1 - keys, frames, device=like.device, dtype=torch.float32)
    compression = math.sqrt(width)
    compressed = compression * distance.sign() * torch.log1p(distance.abs() / compression)
    angle = torch.atan(compressed * (2 * math.pi / width))
    multiples = angle[:, None] * torch.arange(1, width // 2 + 1, device=like.device)
    encoding = torch.stack((multiples.cos(), multiples.sin()), dim=-1).flatten(1)
    encoding[:, -1] = 1.0
    return encoding.to(like.dtype)


def _widest(outputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """The last output, and from those before, the last first, the channels that are still lacking."""
    pieces = [outputs[-1]]
    width = outputs[-1].shape[-1]
    for output in reversed(outputs[:-1]):
        if output.shape[-1] > width:
            pieces.append(output[..., width:])
            width = output.shape[-1]
    return torch.cat(pieces, dim=-1)
