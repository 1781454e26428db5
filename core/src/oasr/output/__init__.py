"""Transcripts as text: one small module for each format, and the folder that files are written to.

To add a format, write its `TranscriptWriter` in a module of its own and add a row to `WRITERS`.
"""

from oasr.output.json_object import JsonWriter
from oasr.output.plain_text import PlainTextWriter
from oasr.output.writer import TranscriptWriter

WRITERS: dict[str, TranscriptWriter] = {"txt": PlainTextWriter(), "json": JsonWriter()}
"""By the word after `--format`, which is also the extension of the files."""

__all__ = ["WRITERS", "TranscriptWriter"]
