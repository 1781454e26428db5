"""Checkpoint formats: how a toolkit lays a model out on disk.

Nothing here imports torch: sniffing and reading a configuration must stay cheap. A format's class lives in a module
that imports torch only inside `open` or in the checkpoint it returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Match:
    """That a format recognises a path."""

    confidence: float
    """From 0 to 1; the highest wins and a tie is an error."""
    why: str
    """What was seen, such as `config.json names model_type whisper`."""


class Checkpoint(ABC):
    """One opened checkpoint. Weights are read only when asked for."""

    path: Path
    """What the user named: a folder or a file."""
    architecture: str
    """Name or alias of an architecture component, as the checkpoint states it."""
    naming: str
    """Whose tensor names these are: `huggingface`, `ctranslate2`, `openai`, ... or `oasr` for an architecture's own."""
    config: Mapping[str, Any]
    """Model configuration as stored."""
    generation: Mapping[str, Any]
    """Decoding defaults as stored; empty when the layout has none."""
    files: Mapping[str, Path]
    """Side files by role, such as `tokenizer`."""

    @abstractmethod
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of every tensor by name, without reading the weights.

        Raises `CheckpointError` when a file is missing, empty or cut short.
        """

    @abstractmethod
    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every tensor, one at a time, on the CPU, in the stored type (packed integers are unpacked to float32).

        Raises `CheckpointError` when a file is missing, empty or cut short.
        """


class CheckpointFormat(ABC):
    """Recognises and opens one layout."""

    @classmethod
    @abstractmethod
    def match(cls, path: Path) -> Match | None:
        """Whether `path` is of this layout, judged by names and a few bytes with the standard library alone."""

    @abstractmethod
    def open(self, path: Path) -> Checkpoint:
        """Open a path that matched. Raises `CheckpointError` naming what is missing or not supported."""
