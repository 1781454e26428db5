"""Frontends: from waveforms to features."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import nn

from oasr.interfaces.component import ComponentConfig


@dataclass(frozen=True, slots=True)
class FeatureBatch:
    """frames (batch, time, feature) float32 and how many of each row are valid, int64 (batch,), on the same device."""

    frames: torch.Tensor
    lengths: torch.Tensor


class Frontend(nn.Module, ABC):
    """Extracts features of a batch on whatever device it was moved to.

    Law: a row's features do not depend on the rows beside it.
    """

    sample_rate: int
    """Hertz."""

    @abstractmethod
    def __init__(self, config: ComponentConfig | None):
        super().__init__()

    @abstractmethod
    def frames(self, samples: int) -> int:
        """Frames a waveform of so many samples costs once padded; what the frame budget of a batch counts."""

    @abstractmethod
    def extract(self, waveforms: torch.Tensor, lengths: torch.Tensor) -> FeatureBatch:
        """Features of waveforms (batch, samples) float32 in [-1, 1], right-padded; lengths int64 (batch,)."""
