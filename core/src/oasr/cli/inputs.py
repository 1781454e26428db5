"""From what was typed to the inputs of a batch: files, folders, patterns and standard input.

An argument is, in this order: `-` for standard input, something that exists, a pattern, or a mistake. An argument that
yields nothing becomes an input with an error, so that it is reported in its place like any other bad input.
"""

import glob
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePath
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from oasr.errors import AudioError, AudioLimitError

_MEDIA = (
    "3gp aac ac3 aif aifc aiff amr ape asf au avi caf dts eac3 flac flv gsm m2ts m4a m4b m4v mka mkv mov mp2 mp3 mp4 "
    "mpeg mpg mpga mts nist oga ogg ogv opus qt rf64 snd sph spx ts tta voc w64 wav wave weba webm wma wmv wv"
)
_EXTENSIONS = frozenset(_MEDIA.split())
_STDIN_PLACE = PurePath("stdin")
_CHUNK = 1 << 20
_MOST_IN_MEMORY = 1 << 24


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a batch."""

    source: str
    """How it is named to the user."""
    relative: PurePath
    """Where its output belongs in a folder of results, without extension: its place beneath the argument that named it.
    No two inputs share one."""
    content: str | BinaryIO = ""
    """The path, or the bytes of standard input, a pipe or a device."""
    error: AudioError | None = None
    """Why it cannot be read, when that is known already."""


def gather(arguments: Sequence[str], max_bytes: int) -> list[Input]:
    """All inputs in the order of the arguments, folders sorted by name; what was named twice comes once.

    `max_bytes` bounds what is read of standard input and the like.
    """
    found: dict[str, Input] = {}
    for argument in arguments:
        for each in _expanded(argument, max_bytes):
            found.setdefault(_identity(each), each)
    return _kept_apart(list(found.values()))


def is_single(arguments: Sequence[str]) -> bool:
    """Whether exactly one input was named, which a folder or a pattern never does, however much it holds."""
    return len(arguments) == 1 and not Path(arguments[0]).is_dir() and not _is_pattern(arguments[0])


def _expanded(argument: str, max_bytes: int) -> Iterable[Input]:
    if argument == "-":
        return [_standard_input(max_bytes)]
    if _is_pattern(argument):
        return list(_matching(argument)) or [_failed(argument, "matches no audio file")]
    try:
        os.stat(argument)  # noqa: PTH116  where Path("") is the current folder
    except FileNotFoundError:
        return [_failed(argument, "there is no such file")]
    except (OSError, ValueError) as error:
        return [_failed(argument, f"cannot be read: {getattr(error, 'strerror', None) or error}")]
    path = Path(argument)
    if path.is_dir():
        inside = list(_media_in(path, path, ()))
        return inside or [_failed(argument, "holds no file with the extension of an audio or video format")]
    if not path.is_file():
        return [_read(argument, PurePath(path.name), lambda: path.open("rb"), max_bytes)]
    return [Input(argument, PurePath(path.name), argument)]


def _is_pattern(argument: str) -> bool:
    return argument != "-" and glob.has_magic(argument) and not os.path.lexists(argument)


def _matching(pattern: str) -> Iterator[Input]:
    """Folders that match are searched. Where the pattern states no extension, only media files are meant.

    As in a shell, `**` follows no links, which may lead in circles, and hidden files match only what names them.
    """
    # A pattern within a name, such as **.wav, has no folders to cross.
    parts = [part if part == "**" else re.sub(r"\*+", "*", part) for part in PurePath(pattern).parts]
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:fixed])
    names_hidden = any(part.startswith(".") for part in parts[fixed:])
    states_extension = re.search(r"\.[^.*?\[\]]+$", parts[-1]) is not None
    for path in sorted(root.glob(str(PurePath(*parts[fixed:])))):
        if not names_hidden and any(part.startswith(".") for part in path.relative_to(root).parts):
            continue
        if path.is_dir():
            yield from _media_in(path, root, ())
        elif states_extension or _is_media(path.name):
            yield Input(str(path), path.relative_to(root), str(path))


def _media_in(folder: Path, root: PurePath, above: tuple[tuple[int, int], ...]) -> Iterator[Input]:
    """Media files beneath a folder, by name; links are followed, though never back into a folder `above`."""
    try:
        status = folder.stat()
        identity = (status.st_dev, status.st_ino)
        entries = [] if identity in above else sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield _failed(str(folder), f"cannot be searched: {error.strerror}")
        return
    for entry in entries:
        path = folder / entry.name
        if entry.name.startswith("."):
            continue
        is_broken = entry.is_symlink() and not path.exists()
        if not is_broken and entry.is_dir():
            yield from _media_in(path, root, (*above, identity))
        # A broken link is kept, for its audio is missing; a pipe is left out, for it would block.
        elif _is_media(entry.name) and (is_broken or entry.is_file()):
            yield Input(str(path), path.relative_to(root), str(path))


def _is_media(name: str) -> bool:
    return PurePath(name).suffix[1:].lower() in _EXTENSIONS


class _Copy(SpooledTemporaryFile[bytes]):
    """In memory while it is small, in an unnamed temporary file otherwise; named as what it is a copy of."""

    def __init__(self, name: str):
        super().__init__(max_size=_MOST_IN_MEMORY)
        self._name = name

    @property
    def name(self) -> str:
        return self._name


def _standard_input(max_bytes: int) -> Input:
    name, relative = "<stdin>", _STDIN_PLACE
    if sys.stdin is None or sys.stdin.closed:
        return Input(name, relative, error=AudioError(name, "standard input is closed"))
    if sys.stdin.isatty():
        return Input(name, relative, error=AudioError(name, "is a terminal; pipe or redirect audio into it"))
    return _read(name, relative, lambda: nullcontext(sys.stdin.buffer), max_bytes)


def _read(
    name: str, relative: PurePath, opened: Callable[[], AbstractContextManager[BinaryIO]], max_bytes: int
) -> Input:
    """What may block is read here and not in a thread of the engine, where Ctrl-C would not reach it."""
    held = cast(BinaryIO, _Copy(name))
    try:
        with opened() as file:
            while piece := file.read(_CHUNK):
                held.write(piece)
                if held.tell() > max_bytes:
                    problem = f"has more than {max_bytes} bytes, the limit (audio.max_bytes)"
                    return Input(name, relative, error=AudioLimitError(name, problem))
    except OSError as error:
        return Input(name, relative, error=AudioError(name, f"cannot be read: {error.strerror}"))
    held.seek(0)
    return Input(name, relative, held)


def _failed(source: str, problem: str) -> Input:
    return Input(source, PurePath(source), error=AudioError(source or '""', problem))


def _identity(each: Input) -> str:
    if each.error or each.relative is _STDIN_PLACE:
        return each.source
    return os.path.abspath(each.source)  # noqa: PTH100  a link is another input than its target


def _kept_apart(inputs: list[Input]) -> list[Input]:
    """When two inputs would meet in one place, all files keep theirs beneath the deepest folder that holds them all."""
    readable = [each for each in inputs if each.error is None]
    if len({each.relative for each in readable}) == len(readable):
        return inputs
    paths = {_identity(each): Path(_identity(each)) for each in readable if each.relative is not _STDIN_PLACE}
    root = os.path.commonpath([path.parent for path in paths.values()])
    places = {identity: path.relative_to(root) for identity, path in paths.items()}
    free = next(place for place in _stdin_places() if place not in places.values())
    return [each if each.error else replace(each, relative=places.get(_identity(each), free)) for each in inputs]


def _stdin_places() -> Iterator[PurePath]:
    yield _STDIN_PLACE
    yield from (PurePath(f"{_STDIN_PLACE}-{number}") for number in count(2))
