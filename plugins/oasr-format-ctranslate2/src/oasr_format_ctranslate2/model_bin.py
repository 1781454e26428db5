"""The table of contents of a CTranslate2 `model.bin`, read with the standard library and checked at every step.

Little-endian and unpadded. Version 6: u32 version, string spec, u32 revision, u32 count, then for each variable a
string name, u8 rank, u32 dimensions, u8 type, u32 byte count and the data; then u32 count and pairs of strings, alias
and variable. A string is a u16 length that includes the final NUL, then the bytes. Before version 4 an item size and
an element count stand for type and byte count, before 3 there are no aliases, before 2 no spec and revision.
Source: CTranslate2, python/ctranslate2/specs/model_spec.py (writer) and src/models/model.cc (reader).
"""

import math
import mmap
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from oasr.checkpoint.damage import require_sound
from oasr.errors import CheckpointError

NEWEST_VERSION = 6
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
"""By type id, the order of DataType in CTranslate2's include/ctranslate2/types.h."""

_ITEM_BYTES = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "float16": 2, "bfloat16": 2}
_TYPE_OF_ITEM_SIZE = {4: "float32", 2: "int16", 1: "int8"}
_SCALAR_CODES = {"float32": "<f", "int8": "<b", "int16": "<h", "int32": "<i", "float16": "<e"}
_MAX_RANK = 8


@dataclass(frozen=True, slots=True)
class Variable:
    """Where one variable lies in the file."""

    type: str
    shape: tuple[int, ...]
    start: int
    """Offset of the first byte."""
    length: int
    """Number of bytes."""


class ModelBin:
    """One mapped file. Raises `CheckpointError` when it is missing, empty, truncated, too new or inconsistent."""

    def __init__(self, path: Path):
        require_sound(path)
        self.path = path
        with path.open("rb") as file:
            # Copy on write, so that tensors can be made from it without a warning and never reach the file.
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self._at = 0
        self.version = self._u32("the version")
        if not 1 <= self.version <= NEWEST_VERSION:
            raise CheckpointError(
                f"{path} has CTranslate2 binary version {self.version}; versions 1 to {NEWEST_VERSION} are known."
            )
        self.spec = self._string("the specification") if self.version >= 2 else ""
        self.revision = self._u32("the revision") if self.version >= 2 else 1
        self.variables = self._read_variables()
        self.aliases = self._read_aliases()
        if self._at != len(self._data):
            raise CheckpointError(f"{path} has {len(self._data) - self._at:,} bytes after its end.")

    def read(self, name: str) -> bytearray:
        """A copy of the bytes of a variable."""
        variable = self.variables[name]
        return bytearray(memoryview(self._data)[variable.start : variable.start + variable.length])

    @cached_property
    def scalars(self) -> dict[str, int | float]:
        """Variables of a single number, which hold settings such as `encoder/num_heads`."""
        return {
            name: struct.unpack(_SCALAR_CODES[variable.type], self.read(name))[0]
            for name, variable in self.variables.items()
            if not variable.shape and variable.type in _SCALAR_CODES and not name.endswith("_scale")
        }

    def _read_variables(self) -> dict[str, Variable]:
        variables: dict[str, Variable] = {}
        for number in range(self._u32("the number of variables")):
            name = self._string(f"the name of variable {number}")
            if name in variables:
                raise CheckpointError(f"{self.path} has the variable {name} twice.")
            variables[name] = self._read_variable(name)
        return variables

    def _read_variable(self, name: str) -> Variable:
        rank = self._u8(name)
        if rank > _MAX_RANK:
            raise CheckpointError(f"{self.path} is damaged: {name} has {rank} dimensions.")
        shape = tuple(self._u32(name) for _ in range(rank))
        code, stated = self._u8(name), self._u32(name)
        kind = self._type(name, code)
        length = math.prod(shape) * _ITEM_BYTES[kind]
        if self.version < 4:
            stated *= code
        if stated % 2**32 != length % 2**32:  # the stated count wraps for 4 GiB and more
            raise CheckpointError(f"{self.path} is damaged: {name} of shape {shape} cannot have {stated:,} bytes.")
        start = self._at
        self._take(length, name)
        return Variable(kind, shape, start, length)

    def _type(self, name: str, code: int) -> str:
        if self.version < 4 and code in _TYPE_OF_ITEM_SIZE:
            return _TYPE_OF_ITEM_SIZE[code]
        if self.version >= 4 and code < len(TYPES):
            return TYPES[code]
        raise CheckpointError(f"{self.path} stores {name} in a number type that is not known (code {code}).")

    def _read_aliases(self) -> dict[str, str]:
        """Variable by alias."""
        if self.version < 3:
            return {}
        aliases: dict[str, str] = {}
        for number in range(self._u32("the number of aliases")):
            alias, target = self._string(f"alias {number}"), self._string(f"the target of alias {number}")
            target = aliases.get(target, target)
            if target not in self.variables or alias in self.variables:
                raise CheckpointError(f"{self.path} is damaged: the alias {alias} of {target} cannot be resolved.")
            aliases[alias] = target
        return aliases

    def _string(self, what: str) -> str:
        length = struct.unpack_from("<H", self._data, self._take(2, what))[0]
        start = self._take(length, what)
        raw = self._data[start : start + length]
        if not raw.endswith(b"\0"):
            raise CheckpointError(f"{self.path} is damaged at {what}: a name does not end where it should.")
        try:
            return raw[:-1].decode()
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.path} is damaged at {what}: a name is not text.") from error

    def _u8(self, what: str) -> int:
        return self._data[self._take(1, what)]

    def _u32(self, what: str) -> int:
        return int(struct.unpack_from("<I", self._data, self._take(4, what))[0])

    def _take(self, length: int, what: str) -> int:
        """Step over `length` bytes and return where they start."""
        start = self._at
        if start + length > len(self._data):
            raise CheckpointError(
                f"{self.path} is truncated: it ends at byte {len(self._data):,}, inside {what}; "
                "copy or download it again."
            )
        self._at += length
        return start


def starts_like_model_bin(path: Path) -> str | None:
    """The specification a file names, `""` when it is too old to name one; None when it is no `model.bin`."""
    with path.open("rb") as file:
        head = file.read(256)
    if len(head) < 6:
        return None
    version, length = struct.unpack_from("<IH", head)
    if not 1 <= version <= NEWEST_VERSION + 4:  # newer ones are recognised, and refused by name when opened
        return None
    if version == 1:
        return ""
    name = head[6 : 6 + length]
    if len(name) < 2 or not name.endswith(b"\0") or not name[:-1].isalnum():
        return None
    return name[:-1].decode("ascii")
