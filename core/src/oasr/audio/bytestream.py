"""Paths, bytes and file objects as one thing: a named, bounded, seekable run of bytes."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from oasr.config import AudioConfig
from oasr.errors import AudioError, AudioLimitError

_CHUNK = 1 << 20
_MOST_IN_MEMORY = 1 << 24


class ByteStream:
    """Reads `file` from its position on as if the file began there. Errors are `AudioError`s that name the input.

    Also what libav reads through, which trusts `read` to return bytes and never more than asked for.
    """

    def __init__(self, name: str, file: BinaryIO, limits: AudioConfig, *, owned: bool = True):
        """`owned` says that closing the stream closes the file."""
        self.name = name
        self._file = file
        self._owned = owned
        with _reporting(name):
            self._start = file.tell()
            self.size = max(0, file.seek(0, os.SEEK_END) - self._start)
            file.seek(self._start)
        if self.size > limits.max_bytes:
            self.close()
            raise AudioLimitError(name, f"has {self.size} bytes; the limit is {limits.max_bytes} (audio.max_bytes)")

    def read(self, count: int) -> bytes:
        """Up to `count` bytes; fewer only at the end."""
        count = min(count, self.size - self.tell())
        with _reporting(self.name):
            return b"".join(_pieces(self.name, self._file, count))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As of a file; offsets count from where the stream began."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self.size}[whence]
        position = max(0, start + offset)
        with _reporting(self.name):
            self._file.seek(self._start + position)
        return position

    def close(self) -> None:
        if self._owned:
            self._file.close()

    def leave_out_last(self, count: int) -> None:
        """End `count` bytes earlier from now on."""
        self.size -= count

    def tell(self) -> int:
        with _reporting(self.name):
            return self._file.tell() - self._start


def open_stream(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | Any, limits: AudioConfig
) -> ByteStream:
    """`source` as a stream. Closing it closes a file opened here; the caller's object stays open."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return ByteStream("<bytes>", io.BytesIO(source), limits)
    if not isinstance(source, (str, os.PathLike)):
        name = _name_of(source)
        if _seekable(name, source):
            return ByteStream(name, source, limits, owned=isinstance(source, _Copy))
        return ByteStream(name, copied(source, limits), limits)
    name = os.fspath(source)
    file = _open_path(name)
    if _seekable(name, file):
        return ByteStream(name, file, limits)
    with file:
        return ByteStream(name, copied(file, limits), limits)


def _open_path(name: str) -> BinaryIO:
    with _reporting(name):
        return Path(name).open("rb")


def copied(file: Any, limits: AudioConfig) -> BinaryIO:
    """The rest of a file object, held in memory while it is small and in an unnamed temporary file otherwise.

    Stops one byte past the limit.
    """
    name = _name_of(file)
    seekable = _seekable(name, file)
    count = ByteStream(name, file, limits, owned=False).size if seekable else limits.max_bytes + 1
    copy = cast(BinaryIO, _Copy(name))
    with _reporting(name):
        for piece in _pieces(name, file, count):
            copy.write(piece)
    if copy.tell() > limits.max_bytes:
        raise AudioLimitError(name, f"has more than {limits.max_bytes} bytes, the limit (audio.max_bytes)")
    copy.seek(0)
    return copy


class _Copy(SpooledTemporaryFile[bytes]):
    """Named as what it is a copy of."""

    def __init__(self, name: str):
        super().__init__(max_size=_MOST_IN_MEMORY)
        self._name = name

    @property
    def name(self) -> str:
        return self._name


def _name_of(file: Any) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else "<stream>"


def _seekable(name: str, file: BinaryIO) -> bool:
    with _reporting(name):
        return hasattr(file, "seekable") and file.seekable()


def _pieces(name: str, file: BinaryIO, count: int) -> Iterator[bytes]:
    """`count` bytes of `file`, or all that is left."""
    while count > 0:
        asked = min(count, _CHUNK)
        piece: object = file.read(asked)
        if isinstance(piece, str):
            raise AudioError(name, "is opened in text mode; open it in binary mode ('rb')")
        if piece is None:
            raise AudioError(name, "is a non-blocking stream without data; pass one that blocks")
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise AudioError(name, f"its read() returned {type(piece).__name__}, not bytes")
        piece = bytes(piece)
        if len(piece) > asked:
            raise AudioError(name, f"its read({asked}) returned {len(piece)} bytes")
        if not piece:
            return
        count -= len(piece)
        yield piece


@contextmanager
def _reporting(name: str) -> Iterator[None]:
    """Turns what the system says into an `AudioError` that names the input."""
    try:
        yield
    except FileNotFoundError as error:
        raise AudioError(name, "there is no such file") from error
    except (OSError, ValueError) as error:  # ValueError: a closed file, a path with a null byte
        raise AudioError(name, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
