"""Tokenizers: from token ids to text and back."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class TextStream(Protocol):
    """Text of a growing token sequence. Law: the deltas, with `finish()`, join to `decode` of all ids pushed."""

    def push(self, ids: Sequence[int]) -> str:
        """What can be shown after these ids; half a character is held back."""

    def finish(self) -> str:
        """What was held back."""


class Tokenizer(ABC):
    """Opened from the side files of a checkpoint."""

    @abstractmethod
    def __init__(self, files: Mapping[str, Path]):
        """Take side files by role, as in `Checkpoint.files`. Raises `CheckpointError` for an absent or damaged one."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of ids, control tokens included."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; control tokens leave none."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Ids of text, without control tokens around it; control tokens spelt in the text are taken as plain text."""

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each id as the vocabulary spells it. Raises `RequestError` for an id outside the vocabulary."""

    @abstractmethod
    def stream(self) -> TextStream:
        """A new incremental decoder."""
