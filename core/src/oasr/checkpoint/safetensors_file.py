"""Reads safetensors: names and shapes from the header with the standard library, tensors with the library itself.

The layout is a little-endian uint64 header length, a JSON header and the data
(https://github.com/huggingface/safetensors#format).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoint.damage import require_sound
from oasr.errors import CheckpointError

if TYPE_CHECKING:
    import torch

_MAX_HEADER_BYTES = 100_000_000  # the limit of the reference implementation
_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U8": 8, "BOOL": 8}


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor of a file, without reading the data.

    Raises `CheckpointError` when the file is missing, empty, truncated or not safetensors.
    """
    require_sound(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 2 <= length <= _MAX_HEADER_BYTES:
            raise CheckpointError(f"{path} is not a safetensors file: it starts with {head!r}.")
        header = file.read(length)
    if len(header) < length:
        raise CheckpointError(f"{path} is truncated: the file ends inside its header; copy or download it again.")
    entries = _parse(path, header)
    end = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    whole = 8 + length + end
    if size < whole:
        raise CheckpointError(f"{path} is truncated: {size:,} of {whole:,} bytes are there; copy or download it again.")
    return {name: tuple(entry["shape"]) for name, entry in entries.items()}


def read_tensors(path: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor of a file, one at a time, on the CPU and in the stored type.

    Raises `CheckpointError` as `read_shapes` does.
    """
    from safetensors import SafetensorError, safe_open

    names = read_shapes(path)
    try:
        with safe_open(path, framework="pt") as file:
            for name in names:
                yield name, file.get_tensor(name)
    except SafetensorError as error:
        raise CheckpointError(f"{path} cannot be read: {error}.") from error


def _parse(path: Path, header: bytes) -> Mapping[str, Any]:
    try:
        entries = json.loads(header)
        entries.pop("__metadata__", None)
        for entry in entries.values():
            start, end = entry["data_offsets"]
            if not all(type(number) is int and number >= 0 for number in (start, end, *entry["shape"])):
                raise ValueError("a tensor's place and shape must be whole numbers")
            bits = _BITS.get(entry["dtype"])
            if bits and (end - start) * 8 != math.prod(entry["shape"]) * bits:
                raise ValueError("a tensor's size does not fit its shape")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} has a damaged safetensors header: {error}.") from error
    return dict(entries)
