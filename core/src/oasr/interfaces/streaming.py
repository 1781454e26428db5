"""Streaming: encoders that read live audio chunk by chunk, a batch of streams at once."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from oasr.interfaces.architecture import EncoderOutput, PagedLayout
from oasr.interfaces.frontend import FeatureBatch


@dataclass(frozen=True, slots=True)
class StreamingFacts:
    """What chunks a checkpoint was trained for, in encoder frames; a left context of None is all that was said."""

    chunks: tuple[int, ...]
    """Chunk sizes; empty when any will do."""
    left_contexts: tuple[int | None, ...]
    """Left contexts; empty when any will do."""
    default_chunk: int
    default_left_context: int | None


@dataclass(frozen=True, slots=True)
class ChunkShape:
    """How features are cut: windows of `window` frames, each `hop` frames after the one before."""

    window: int
    hop: int
    frames: int
    """Encoder frames of a whole window."""
    least: int = 1
    """When the audio ends, a rest of fewer frames is dropped."""
    tail: int = 0
    """Frames of padding added when the audio ends, so that the last words are read with the context they need."""
    padding: float = 0.0
    """Value of the feature frames that fill the last windows up."""


@dataclass(frozen=True, slots=True)
class StreamLayout:
    """What one stream keeps between chunks."""

    slots: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Shape of each tensor of one stream, without the stream axis; zero when a stream begins."""
    paged: PagedLayout | None = None
    """Keys and values that grow with the stream, for a left context without a limit."""


class StreamView(ABC):
    """The states of the streams that ride in one batch."""

    ages: torch.Tensor
    """int64 (streams,): encoder frames that each stream has given before."""

    @abstractmethod
    def load(self, name: str) -> torch.Tensor:
        """The slot tensor `name` of the streams, (streams, ...)."""

    @abstractmethod
    def store(self, name: str, values: torch.Tensor) -> None:
        """Write the slot tensor `name` of the streams; values (streams, ...)."""

    @abstractmethod
    def append(
        self, layer: int, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Store the chunk's keys and values (streams, new, heads, size) behind those before, in the paged cache.

        Return all keys and values (streams, time, heads, size) and a bool mask (streams, time) of those that count. New
        ones stand at `ages`, so a stream's own chunk comes last among what counts.
        """


class StreamingEncoder(ABC):
    """An encoder at one chunk size and left context.

    Laws: whatever streams share a batch, and whatever their ages, each gets what it would get alone; chunk by chunk
    gives what `encode_whole` gives, but for the frames of the last chunk.
    """

    shape: ChunkShape
    layout: StreamLayout

    @abstractmethod
    def encode_chunk(self, features: FeatureBatch, streams: StreamView) -> EncoderOutput:
        """Encode the next window of each stream, (streams, window, feature); only last windows may be shorter."""

    @abstractmethod
    def encode_whole(self, features: FeatureBatch) -> EncoderOutput:
        """Encode whole inputs in one pass, with attention limited as it is chunk by chunk."""
