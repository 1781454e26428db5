"""A folder as the place for results, each file whole or not at all."""

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path, PurePath

from oasr.errors import ConfigError, OasrError
from oasr.output import WRITERS
from oasr.output.sink import OutputError, ResultSink
from oasr.types import Transcript


class OutputFolder(ResultSink):
    """Writes `name.wav.txt` for the input `name.wav`: with its extension, as `name.mp3` may lie beside it."""

    def __init__(self, path: Path, formats: Sequence[str], places: Sequence[PurePath]):
        """`places` are where each input's files belong, beneath `path` and without the format's extension."""
        self._path = path
        self._formats = tuple(formats)
        self._places = tuple(places)
        self._numbers = count()

    def prepare(self) -> None:
        """Create the folder. Raises `ConfigError` when it cannot be written to."""
        trial = self._temporary(self._path)
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            # Trying is the only test that a file system which is full, read-only or remote answers truthfully.
            trial.touch(exist_ok=False)
            trial.unlink()
        except FileExistsError:
            raise ConfigError(f"--output-dir {self._path}: is a file, not a folder") from None
        except OSError as error:
            raise ConfigError(f"--output-dir {self._path}: cannot be written to: {error.strerror or error}") from None

    def holds(self, index: int) -> bool:
        """Whether every file of this input exists."""
        return all(path.is_file() for path in self._files(index).values())

    def put(self, index: int, source: str, transcript: Transcript) -> None:
        for form, path in self._files(index).items():
            self._replace(path, WRITERS[form].document(source, transcript))

    def fail(self, index: int, source: str, error: OasrError) -> None:
        """No file is written: a later run finds that the input lacks one."""

    def finish(self) -> None:
        """Nothing is held."""

    def _files(self, index: int) -> dict[str, Path]:
        place = self._places[index]
        return {form: self._path / place.with_name(f"{place.name}.{form}") for form in self._formats}

    def _replace(self, path: Path, text: str) -> None:
        temporary = self._temporary(path.parent)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The file name in a text need not be UTF-8; what JSON has in its place, JSON reads back.
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
            temporary.replace(path)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
        finally:
            _discard(temporary)

    def _temporary(self, folder: Path) -> Path:
        """A hidden name that no other process uses, and that is short enough wherever the file's own is."""
        return folder / f".oasr-{os.getpid()}-{next(self._numbers)}.part"


def _discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # the folder is closed to us, as the error under way says better
