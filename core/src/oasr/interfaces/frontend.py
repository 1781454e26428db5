"""Frontends: from waveforms to features."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from oasr.interfaces.component import ComponentConfig


@dataclass(frozen=True, slots=True)
class FeatureBatch:
    """frames (batch, time, feature) float32 and how many of each row are valid, int64 (batch,), on the same device."""

    frames: torch.Tensor
    lengths: torch.Tensor


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Rows that are cut out of longer inputs."""

    waveforms: torch.Tensor
    """float32 (batch, margin + samples + margin): what stands around each row is in the margins."""
    lengths: torch.Tensor
    """int64 (batch,): samples of each excerpt, without margins, and of silence behind it that belongs to the input; the
    features behind them are zeros."""
    first: torch.Tensor
    """bool (batch,): rows with which their input begins, and before which there is nothing."""
    loudest: torch.Tensor
    """float32 (batch,): what was loudest before in the input, in the frontend's own measure; -inf when nothing was."""


class Frontend(nn.Module, ABC):
    """Extracts features of a batch on whatever device it was moved to.

    Laws: a row's features do not depend on the rows beside it; however a waveform is cut, a stream gives the frames of
    `extract`.
    """

    sample_rate: int
    """Hertz."""

    @abstractmethod
    def __init__(self, config: ComponentConfig | None):
        super().__init__()

    @abstractmethod
    def frames(self, samples: int) -> int:
        """Frames a waveform of so many samples costs once padded; what the frame budget of a batch counts."""

    margin_samples: int = 0
    """How far around an excerpt of a longer input its features reach; 0 where excerpts are not told from inputs."""

    def extract_excerpts(self, excerpts: Excerpts) -> tuple[FeatureBatch, torch.Tensor]:
        """Features of excerpts as they are in the features of the whole input, and `loudest` with them taken in.

        Called only where the facts ask for excerpts.
        """
        raise NotImplementedError

    def loudest(self, waveform: torch.Tensor) -> torch.Tensor:
        """What is loudest in a waveform (samples,), float32 (), in the measure of `Excerpts`. Called as that is."""
        raise NotImplementedError

    @abstractmethod
    def extract(self, waveforms: torch.Tensor, lengths: torch.Tensor) -> FeatureBatch:
        """Features of waveforms (batch, samples) float32 in [-1, 1], right-padded; lengths int64 (batch,)."""

    def stream(self) -> Any:
        """The state of a waveform that will come piece by piece."""
        raise NotImplementedError

    def advance(
        self, streams: Sequence[Any], samples: Sequence[torch.Tensor], last: Sequence[bool]
    ) -> list[torch.Tensor]:
        """Take more samples (samples,) of each stream, any number of them; `last` says which waveforms end there.

        Return the frames (time, feature) that can be computed by now, of each, all computed as one batch. Replace what
        a state holds and never write into it: a call that fails is repeated from shallow copies made before.
        """
        raise NotImplementedError
