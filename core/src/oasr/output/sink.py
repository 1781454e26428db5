"""Where the results of a batch go."""

from abc import ABC, abstractmethod

from oasr.errors import OasrError
from oasr.types import Transcript


class OutputError(OasrError):
    """The result of one input could not be written."""


class ResultSink(ABC):
    """Takes how each input ended, under its number in the batch from 0, in any order."""

    @abstractmethod
    def put(self, index: int, source: str, transcript: Transcript) -> None:
        """Write a transcript. Raises `OutputError` when that is lost and others may not be."""

    @abstractmethod
    def fail(self, index: int, source: str, error: OasrError) -> None:
        """Learn that an input failed."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is still held; called also when the batch breaks off."""
