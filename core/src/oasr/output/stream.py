"""Standard output as the place for results: in the order of the inputs, whatever order they end in."""

import os
import sys
from collections.abc import Callable

from oasr.errors import OasrError
from oasr.output.sink import ResultSink
from oasr.output.writer import TranscriptWriter
from oasr.types import Transcript


class StandardOutputError(OasrError):
    """Standard output takes nothing any more, so that all further results would be lost."""


class OutputStream(ResultSink):
    """Writes each result as soon as all before it are there."""

    def __init__(self, writer: TranscriptWriter, *, single: bool, write: Callable[[str], None]):
        """`single` says that one input was named, whose transcript then stands alone."""
        self._writer = writer
        self._single = single
        self._write = write
        self._held: dict[int, str] = {}
        self._next = 0

    def put(self, index: int, source: str, transcript: Transcript) -> None:
        self._hold(index, (self._writer.document if self._single else self._writer.entry)(source, transcript))

    def fail(self, index: int, source: str, error: OasrError) -> None:
        self._hold(index, "" if self._single else self._writer.failure(source, error))

    def finish(self) -> None:
        while self._held:
            self._write(self._held.pop(min(self._held)))

    def _hold(self, index: int, text: str) -> None:
        self._held[index] = text
        while self._next in self._held:
            self._write(self._held.pop(self._next))
            self._next += 1


def write_standard_output(text: str) -> None:
    """Write text at once, as UTF-8 whatever the locale, which may lack the letters of the language.

    Raises `BrokenPipeError` when the reader has left, and `StandardOutputError` when there is no room.
    """
    if not text:
        return
    if sys.stdout is None:
        raise StandardOutputError("Standard output is closed; name a folder with --output-dir")
    sys.stdout.flush()
    data = text.encode("utf-8", "backslashreplace")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python flushes what is left at exit, which must not fail and complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise StandardOutputError(f"Standard output cannot be written: {error.strerror or error}") from None
