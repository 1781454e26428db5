"""The front end: convolutions that halve the frame rate, then one ConvNeXt layer (Liu et al., 2022)."""

import torch
import torch.nn.functional as F
from torch import nn

from oasr.nn import Linear
from oasr_zipformer.activations import swoosh_l, swoosh_r
from oasr_zipformer.layer import BiasNorm
from oasr_zipformer.timeline import Past

LOOK_AHEAD = 3
"""Frames of the ConvNeXt layer, 20 ms apart, that it sees to either side."""
FEWEST_FRAMES = 9
"""Feature frames that the three convolutions need for one of theirs."""
CHANNELS = (8, 32, 128)
"""Of the three convolutions."""
_EXPANSION = 3


def subsampled(frames: torch.Tensor) -> torch.Tensor:
    """How many frames come of so many feature frames: none of fewer than nine."""
    return ((frames - 7) // 2).clamp(min=0)


class ConvNeXt(nn.Module):
    """A depthwise convolution over time and frequency, and a residual bottleneck at every point."""

    def __init__(self, channels: int):
        super().__init__()
        kernel = 2 * LOOK_AHEAD + 1
        # Over time there is no padding: the caller brings the frames on either side.
        self.depthwise = nn.Conv2d(channels, channels, kernel, groups=channels, padding=(0, LOOK_AHEAD))
        self.widen = nn.Conv2d(channels, _EXPANSION * channels, 1)
        self.narrow = nn.Conv2d(_EXPANSION * channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (batch, channels, LOOK_AHEAD + time + LOOK_AHEAD, bands); returns (batch, channels, time, bands)."""
        residual = x[:, :, LOOK_AHEAD : x.shape[2] - LOOK_AHEAD]
        return residual + self.narrow(swoosh_l(self.widen(self.depthwise(x))))


class Subsampling(nn.Module):
    """Features at 100 Hz to frames at 50 Hz."""

    def __init__(self, mel_bins: int, width: int):
        super().__init__()
        first, second, third = CHANNELS
        self.conv1 = nn.Conv2d(1, first, 3, padding=(0, 1))
        self.conv2 = nn.Conv2d(first, second, 3, stride=2)
        self.conv3 = nn.Conv2d(second, third, 3, stride=(1, 2))
        self.convnext = ConvNeXt(third)
        self.out = Linear(third * bands(mel_bins), width)
        self.norm = BiasNorm(width)

    def forward(self, features: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """features (batch, time, bins); returns (batch, (time - 7) // 2, width), whose lengths are int64 (batch,)."""
        x = self._convolved(features)
        exists = torch.arange(x.shape[2], device=lengths.device) < lengths[:, None]
        x = x.masked_fill(~exists[:, None, :, None], 0.0)
        return self._projected(F.pad(x, (0, 0, LOOK_AHEAD, LOOK_AHEAD)))

    def advance(self, features: torch.Tensor, past: Past) -> torch.Tensor:
        """The next window of streams, (streams, 2 n + 13, bins), to (streams, n, width)."""
        x = self._convolved(features).transpose(1, 2)
        now, ahead = x[:, :-LOOK_AHEAD], x[:, -LOOK_AHEAD:]
        return self._projected(torch.cat((past.before("front", now), ahead), dim=1).transpose(1, 2))

    def _convolved(self, features: torch.Tensor) -> torch.Tensor:
        x = swoosh_r(self.conv1(features[:, None]))
        x = swoosh_r(self.conv2(x))
        return swoosh_r(self.conv3(x))

    def _projected(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.out(self.convnext(x).transpose(1, 2).flatten(2)))


def bands(mel_bins: int) -> int:
    """Frequency bands that the convolutions leave."""
    return ((mel_bins - 1) // 2 - 1) // 2


def mel_bins_of(bands: int) -> int:
    """The number of mel bins, a multiple of four, that leaves so many bands."""
    return 4 * (bands + 1)
