"""Format `txt`: the text and nothing else."""

from oasr.output.writer import TranscriptWriter
from oasr.types import Transcript


class PlainTextWriter(TranscriptWriter):
    """The text alone; among others one line `source: text` each, as grep prints what it found."""

    def document(self, source: str, transcript: Transcript) -> str:
        return f"{transcript.text}\n"

    def entry(self, source: str, transcript: Transcript) -> str:
        return f"{source}: {' '.join(transcript.text.splitlines())}".rstrip() + "\n"
