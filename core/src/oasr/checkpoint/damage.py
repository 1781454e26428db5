"""Says what is wrong with a file that cannot be read, before a parser says it less clearly."""

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oasr.errors import CheckpointError, OasrError

_ZIP = b"PK\x03\x04"
_LFS_POINTER = b"version https://git-lfs"


def damage(path: Path) -> str | None:
    """What is visibly wrong with a file, as the end of a sentence that starts with its name; None when nothing is."""
    if not path.exists():
        return "is a link that leads nowhere" if path.is_symlink() else "is missing"
    if not path.is_file():
        return "is not a file"
    if path.stat().st_size == 0:
        return "is empty (0 bytes); copy or download it again"
    try:
        with path.open("rb") as file:
            head = file.read(len(_LFS_POINTER))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if head == _LFS_POINTER:
        return "is a Git LFS pointer, not the file itself; run: git lfs pull"
    if head.startswith(_ZIP) and not zipfile.is_zipfile(path):
        return f"is truncated: it ends after {path.stat().st_size:,} bytes; copy or download it again"
    return None


def require_sound(path: Path) -> None:
    """Raise `CheckpointError` when a file is missing, empty, a pointer or visibly cut short."""
    if problem := damage(path):
        raise CheckpointError(f"{path} {problem}.")


def is_there(path: Path) -> bool:
    """Whether there is a file that may be absent. Raises `CheckpointError` for what is there and no file."""
    if os.path.lexists(path) and not path.is_file():
        require_sound(path)
    return path.is_file()


@contextmanager
def blaming(path: Path, action: str) -> Iterator[None]:
    """Turns whatever a damaged file makes the system or a plugin raise into a `CheckpointError` about a path."""
    try:
        yield
    except OasrError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path} {action}: {error.strerror or error}.") from error
    except Exception as error:
        raise CheckpointError(f"{path} {action} ({type(error).__name__}: {error}).") from error


def shortened(names: list[str], limit: int = 6) -> str:
    """A list for an error message: the first few names, and how many more there are."""
    listed = ", ".join(names[:limit])
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit} more"
