"""Architectures: the networks. They know nothing of decoders, files or requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import nn

from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.format import Checkpoint
from oasr.interfaces.frontend import FeatureBatch

if TYPE_CHECKING:
    from oasr.interfaces.streaming import StreamingEncoder, StreamingFacts


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a checkpoint dictates. A user's configuration cannot override it."""

    sample_rate: int
    """Hertz."""
    frontend: str
    frontend_options: Mapping[str, Any]
    tokenizer: str
    text_tokens: int
    """Ids from here on are control tokens and never part of the text."""
    frame_shift: float
    """Seconds between two encoder frames."""
    heads: frozenset[str]
    """Names of the heads offered, as `head()` takes them."""
    default_decoder: str
    max_input_seconds: float
    """Longest audio `encode` takes at once; longer audio is read in windows of this length."""
    languages: tuple[str, ...] = ()
    """Language codes the model can be asked for; empty when it has no such choice."""
    tasks: tuple[str, ...] = ("transcribe",)
    timestamps: bool = False
    """Whether the model can say when each segment begins and ends."""
    word_timestamps: bool = False
    """Whether the head tells when each word was said; a search that reads frames in order knows without."""
    excerpts: Literal["never", "long", "always"] = "never"
    """Whether windows have the features they have in the whole input, when times are asked for, and not those of an
    input by itself. `long`: an input that fits a window is filled up with silence first."""
    streaming: StreamingFacts | None = None
    """What chunks live audio may be read in; None when the model needs to hear the end before it reads the start."""

    @property
    def max_input_samples(self) -> int:
        """Samples of the longest audio `encode` takes at once."""
        return round(self.max_input_seconds * self.sample_rate)


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """frames (batch, time, feature) and how many of each row are valid, int64 (batch,), on the same device."""

    frames: torch.Tensor
    lengths: torch.Tensor


@dataclass(frozen=True, slots=True)
class Rename:
    """One rule of a naming: tensors whose whole name matches `pattern` become `target`.

    `target` may use the groups of the pattern (`\\1`); None says the tensor is known and not needed. With
    `part = (i, n)` the tensor fills the i-th of n equal parts of the target's first dimension, which is how separate
    query, key and value matrices become one.
    """

    pattern: str
    target: str | None
    part: tuple[int, int] = (0, 1)


@dataclass(frozen=True, slots=True)
class WeightRules:
    """How the names of one toolkit map to an architecture's own; the first rule that matches counts."""

    renames: tuple[Rename, ...]
    zeros: tuple[Rename, ...] = ()
    """Own names (and parts of them) this naming leaves out because they are zero; `target` is None."""


@dataclass(frozen=True, slots=True)
class PagedLayout:
    """Keys and values that grow by one token a step, for `PagedCache`."""

    layers: int
    heads: int
    head_size: int
    max_tokens: int
    """Most tokens one row ever holds."""


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """What one decoded row keeps between steps."""

    paged: PagedLayout
    slots: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Shape of each fixed tensor of one row, without the row axis, for `SlotCache`."""


class Architecture(nn.Module, ABC):
    """A network, built from its configuration alone: weights arrive later, strictly, through `rename`.

    Law: padding, batch order and batch size never change a row's result.
    """

    Config: ClassVar[type[ComponentConfig]]
    facts: ModelFacts

    @abstractmethod
    def __init__(self, config: ComponentConfig):
        super().__init__()

    @classmethod
    @abstractmethod
    def read_config(cls, checkpoint: Checkpoint) -> ComponentConfig:
        """The configuration a foreign checkpoint describes, checked against the shapes of its weights.

        Raises `CheckpointError` naming the variant or the contradiction.
        """

    @classmethod
    @abstractmethod
    def rename(cls, naming: str) -> WeightRules:
        """Rules for one naming. Raises `CheckpointError` naming those known when there is none."""

    @abstractmethod
    def encode(self, features: FeatureBatch) -> EncoderOutput:
        """Encode a batch of windows, each no longer than `facts.max_input_seconds`."""

    @abstractmethod
    def head(self, name: str) -> Any:
        """One of `facts.heads`, as the interface of that name in `oasr.interfaces.heads`."""

    def streaming(self, chunk: int, left_context: int | None) -> StreamingEncoder:
        """The encoder at a chunk size and left context that `facts.streaming` allows, in encoder frames."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype
