"""What a format of transcripts has to offer."""

from abc import ABC, abstractmethod

from oasr.errors import OasrError
from oasr.types import Transcript


class TranscriptWriter(ABC):
    """Turns the transcript of one input into text. `source` is the input as the user named it."""

    @abstractmethod
    def document(self, source: str, transcript: Transcript) -> str:
        """Content of a file with this transcript alone, its last line ended."""


class StreamWriter(TranscriptWriter):
    """Writes transcripts also one after the other, as a format can that names the input of each."""

    @abstractmethod
    def entry(self, source: str, transcript: Transcript) -> str:
        """The same among those of other inputs in one stream: names the source, its last line ended."""

    def failure(self, source: str, error: OasrError) -> str:
        """What stands in such a stream for an input that failed; nothing unless a format has a place for it."""
        return ""
