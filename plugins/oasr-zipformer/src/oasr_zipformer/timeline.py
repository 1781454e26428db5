"""Time as a stack sees it: which frames exist, which look at which, and what came before them.

A whole input is one batch of rows of several lengths. A chunk of live audio has no padding, and frames from before it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True, slots=True)
class Timeline:
    """The frames of a stack, at its own rate."""

    visible: torch.Tensor
    """bool, broadcastable to (batch, heads, frames, keys): which keys, the last of which are the frames themselves, a
    frame attends to."""
    chunk: int
    """Frames after which causal convolutions see no future; all of them when there are no chunks."""
    since: torch.Tensor
    """int64, broadcastable to (batch, frames): how many frames after the start of its chunk each one stands."""
    until: torch.Tensor
    """How many frames before the end of its chunk, 1 for the last."""
    exists: torch.Tensor | None
    """bool (batch, frames, 1): which frames are no padding; None when none is."""

    def silenced(self, x: torch.Tensor) -> torch.Tensor:
        """x (batch, frames, width) with zeros where no frame exists."""
        return x if self.exists is None else x.masked_fill(~self.exists, 0.0)


def whole_timeline(lengths: torch.Tensor, frames: int, chunk: int | None, left_context: int | None) -> Timeline:
    """Of whole inputs (batch, frames). With a chunk size a frame sees its chunk and `left_context` frames before it."""
    time = torch.arange(frames, device=lengths.device)
    exists = time < lengths[:, None]
    visible = exists[:, None, None]
    size = min(chunk or frames, frames)
    if chunk is not None:
        start = time - time % chunk
        in_reach = time < (start + chunk)[:, None]
        if left_context is not None:
            in_reach &= time >= (start - left_context)[:, None]
        visible = visible & in_reach
    # A row shorter than a chunk is one chunk that ends with it, as it would be alone.
    sizes = lengths.clamp(1, size)[:, None]
    since = time % sizes
    return Timeline(visible, size, since, sizes - since, exists[:, :, None])


def chunk_timeline(ages: torch.Tensor, chunk: int, left_context: int) -> Timeline:
    """Of the next chunk of streams that have given `ages` (streams,) frames of this stack before."""
    keys = torch.arange(left_context + chunk, device=ages.device)
    visible = keys >= (left_context - ages)[:, None]
    since = keys[:chunk]
    return Timeline(visible[:, None, None], chunk, since, chunk - since, None)


class Past(ABC):
    """What came before the frames of one layer."""

    @abstractmethod
    def before(self, name: str, x: torch.Tensor, frames: int = 0) -> torch.Tensor:
        """x (batch, time, ...) behind what came before; where that was nothing, behind `frames` of zeros."""


class NoPast(Past):
    """Of whole inputs."""

    def before(self, name: str, x: torch.Tensor, frames: int = 0) -> torch.Tensor:
        return F.pad(x, (0, 0) * (x.dim() - 2) + (frames, 0)) if frames else x


class StreamPast(Past):
    """Of streams: holds as many frames as it was given, and takes the newest after each chunk."""

    def __init__(self, held: Mapping[str, torch.Tensor]):
        self._held = held
        self.newest: dict[str, torch.Tensor] = {}
        """What to hold from now on, by name."""

    def before(self, name: str, x: torch.Tensor, frames: int = 0) -> torch.Tensor:
        together = torch.cat((self._held[name], x), dim=1)
        self.newest[name] = together[:, x.shape[1] :]
        return together
