"""Where the results of a batch go: files in a folder, or standard output."""

import errno
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from uuid import uuid4

from oasr.errors import ConfigError, OasrError
from oasr.output.formats import WRITERS
from oasr.output.writer import StreamWriter, TranscriptWriter
from oasr.types import Transcript

_STALE_SECONDS = 24 * 60 * 60


class OutputError(OasrError):
    """The result of one input could not be written."""


class StandardOutputError(OasrError):
    """Standard output takes nothing any more, so that all further results would be lost."""


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


class OutputFolder(ResultSink):
    """Writes `name.wav.txt` for the input `name.wav`: with its extension, as `name.mp3` may lie beside it."""

    def __init__(self, path: Path, formats: Sequence[str], places: Sequence[PurePath]):
        """`places` are where each input's files belong, beneath `path` and without the format's extension."""
        self._path = path
        self._formats = tuple(formats)
        self._places = tuple(places)

    def prepare(self) -> None:
        """Create the folder and clear what runs that were killed left. Raises `ConfigError` when it takes no files."""
        trial = _temporary(self._path)
        try:
            with suppress(FileExistsError):
                self._path.mkdir(parents=True)
            if not self._path.is_dir():
                raise ConfigError(f"--output-dir {self._path}: is a file, not a folder")
            # Trying is the only test that a file system which is full, read-only or remote answers truthfully.
            trial.touch(exist_ok=False)
            trial.unlink()
        except OSError as error:
            raise ConfigError(f"--output-dir {self._path}: cannot be written to: {error.strerror or error}") from None
        for folder in {self._path / place.parent for place in self._places}:
            _clear_stale(folder)

    def holds(self, index: int) -> bool:
        """Whether every file of this input exists."""
        return all(path.is_file() for path in self._files(index).values())

    def put(self, index: int, source: str, transcript: Transcript) -> None:
        for form, path in self._files(index).items():
            # The file name in a text need not be UTF-8; what JSON has in its place, JSON reads back.
            content = WRITERS[form].document(source, transcript).encode("utf-8", "backslashreplace")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, content)
            except OSError as error:
                raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None

    def fail(self, index: int, source: str, error: OasrError) -> None:
        """No file is written: a later run finds that the input lacks one."""

    def finish(self) -> None:
        """Nothing is held."""

    def _files(self, index: int) -> dict[str, Path]:
        place = self._places[index]
        return {form: self._path / place.with_name(f"{place.name}.{form}") for form in self._formats}


class OutputStream(ResultSink):
    """Writes each result as soon as all before it are there: in the order of the inputs, whatever they end in."""

    def __init__(self, writer: TranscriptWriter, *, single: bool, write: Callable[[str], None]):
        """`single` says that one input was named, whose transcript then stands alone.

        Raises `ConfigError` when several were and the format keeps each in a file of its own.
        """
        self._writer = None if single else _of_several(writer)
        self._entry = self._writer.entry if self._writer else writer.document
        self._write = write
        self._held: dict[int, str] = {}
        self._next = 0

    def put(self, index: int, source: str, transcript: Transcript) -> None:
        self._hold(index, self._entry(source, transcript))

    def fail(self, index: int, source: str, error: OasrError) -> None:
        self._hold(index, self._writer.failure(source, error) if self._writer else "")

    def finish(self) -> None:
        while self._held:
            self._write(self._held.pop(min(self._held)))

    def _hold(self, index: int, text: str) -> None:
        self._held[index] = text
        while self._next in self._held:
            self._write(self._held.pop(self._next))
            self._next += 1


def _of_several(writer: TranscriptWriter) -> StreamWriter:
    if isinstance(writer, StreamWriter):
        return writer
    raise ConfigError(
        "--format: this format keeps every input in a file of its own; name a folder for them with --output-dir, or one"
        " single input"
    )


def write_whole(path: Path, content: bytes) -> None:
    """Write a regular file, behind whatever links lead to it, completely or not at all. Raises `OSError`."""
    place = Path(os.path.realpath(path))
    if os.path.lexists(place) and not place.is_file():
        raise OSError(errno.EINVAL, "there is something that is not a regular file")
    temporary = _temporary(place.parent)
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.replace(place)
    finally:
        with suppress(OSError):  # the folder is closed to us, as the error under way says better
            temporary.unlink(missing_ok=True)


def _temporary(folder: Path) -> Path:
    """A hidden name that no other process uses, here or on another machine, no longer than many a file's own."""
    return folder / f".oasr-{uuid4().hex}.part"


def _clear_stale(folder: Path) -> None:
    for path in folder.glob(".oasr-*.part"):
        with suppress(OSError):  # cleared by another run, or not ours to clear
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                path.unlink()


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
        silence_standard_output()
        raise StandardOutputError(f"Standard output cannot be written: {error.strerror or error}") from None


def silence_standard_output() -> None:
    """Let Python's last flush at exit succeed, which would complain once more."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
