"""OASR's own layout: `oasr.json`, `model.safetensors` under the architecture's own names, and the side files.

{"format": 1, "architecture": "whisper", "config": {...}, "generation": {...}, "files": {"tokenizer": "..."}}
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoint.damage import require_sound
from oasr.checkpoint.json_file import file_beside, read_object
from oasr.checkpoint.safetensors_file import read_shapes, read_tensors
from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint, CheckpointFormat, Match

if TYPE_CHECKING:
    import torch

DESCRIPTION = "oasr.json"
WEIGHTS = "model.safetensors"
VERSION = 1


class NativeFormat(CheckpointFormat):
    """Recognises the folder by `oasr.json`."""

    @classmethod
    def match(cls, path: Path) -> Match | None:
        return Match(1.0, f"{DESCRIPTION} is there") if os.path.lexists(path / DESCRIPTION) else None

    def open(self, path: Path) -> Checkpoint:
        return NativeCheckpoint(path)


class NativeCheckpoint(Checkpoint):
    """A folder that `oasr convert` wrote."""

    naming = "oasr"

    def __init__(self, path: Path):
        self.path = path
        content = read_object(path / DESCRIPTION)
        version = content.get("format")
        if version != VERSION:
            raise CheckpointError(
                f"{path / DESCRIPTION} has format {version!r}; this release reads format {VERSION}. "
                "Convert the original again, or upgrade oasr-core."
            )
        self.architecture = _typed(path, content, "architecture", str)
        self.config: Mapping[str, Any] = _typed(path, content, "config", dict)
        self.generation: Mapping[str, Any] = _typed(path, content, "generation", dict)
        names: Mapping[str, Any] = _typed(path, content, "files", dict)
        self.files = {role: file_beside(path / DESCRIPTION, name) for role, name in names.items()}
        for file in self.files.values():
            require_sound(file)

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return read_shapes(self.path / WEIGHTS)

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        return read_tensors(self.path / WEIGHTS)


def _typed(path: Path, content: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    value = content.get(key)
    if not isinstance(value, kind):
        raise CheckpointError(f"{path / DESCRIPTION} has no {key}, or it is not of type {kind.__name__}.")
    return value
