"""CTranslate2's layout: a folder with `model.bin`, `config.json` and the side files of the original model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoint.damage import is_there
from oasr.checkpoint.json_file import read_object
from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint, CheckpointFormat, Match
from oasr_format_ctranslate2.model_bin import ModelBin, starts_like_model_bin

if TYPE_CHECKING:
    import torch

_WEIGHTS = "model.bin"
_SCALE = "_scale"
_SIDE_FILES = {
    "tokenizer": ("tokenizer.json",),
    "tokenizer_config": ("tokenizer_config.json",),
    "vocabulary": ("vocabulary.json", "vocabulary.txt"),
    "preprocessor": ("preprocessor_config.json",),
}


class CTranslate2Format(CheckpointFormat):
    """Recognises the folder, or `model.bin` itself, by the head of the file."""

    @classmethod
    def match(cls, path: Path) -> Match | None:
        file = path / _WEIGHTS if path.is_dir() else path
        if file.name != _WEIGHTS or not os.path.lexists(file):
            return None
        if not file.is_file():
            return Match(0.3, f"{_WEIGHTS} is there, but no file")
        if file.stat().st_size == 0:
            return Match(0.3, f"{_WEIGHTS} is there, but empty")
        spec = starts_like_model_bin(file)
        return (
            None if spec is None else Match(0.9, f"{_WEIGHTS} starts like a CTranslate2 model ({spec or 'version 1'})")
        )

    def open(self, path: Path) -> Checkpoint:
        return CTranslate2Checkpoint(path)


class CTranslate2Checkpoint(Checkpoint):
    """A converted model. `config` holds `config.json` and, under `variables`, the settings stored as scalars."""

    naming = "ctranslate2"
    generation: Mapping[str, Any] = {}

    def __init__(self, path: Path):
        self.path = path
        folder = path if path.is_dir() else path.parent
        self._weights = ModelBin(folder / _WEIGHTS)
        if not self._weights.spec:
            raise CheckpointError(f"{self._weights.path} has binary version 1, which does not name the model it holds.")
        self.architecture = self._weights.spec
        settings = folder / "config.json"  # early converters wrote none
        self.config = {
            **(read_object(settings) if is_there(settings) else {}),
            "revision": self._weights.revision,
            "variables": self._weights.scalars,
        }
        self.files = {
            role: folder / name
            for role, names in _SIDE_FILES.items()
            for name in reversed(names)
            if is_there(folder / name)
        }

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: self._weights.variables[source].shape for name, source in self._sources().items()}

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, source in self._sources().items():
            yield name, self._tensor(source)

    def _sources(self) -> dict[str, str]:
        """The variable behind every name: scalars are settings, and scales belong to what they scale."""
        weights = self._weights
        tensors = {name: name for name, variable in weights.variables.items() if variable.shape}
        tensors |= {alias: target for alias, target in weights.aliases.items() if weights.variables[target].shape}
        return {name: source for name, source in tensors.items() if not self._is_scale(name)}

    def _is_scale(self, name: str) -> bool:
        scaled = name.removesuffix(_SCALE)
        return scaled != name and (scaled in self._weights.variables or scaled in self._weights.aliases)

    def _tensor(self, name: str) -> torch.Tensor:
        import torch

        variable = self._weights.variables[name]
        data = self._weights.read(name)
        kind = getattr(torch, variable.type)
        tensor = torch.frombuffer(data, dtype=kind) if data else torch.empty(0, dtype=kind)
        tensor = tensor.reshape(variable.shape)
        if name + _SCALE not in self._weights.variables:
            return tensor
        scale = self._tensor(name + _SCALE).float()
        rows = (scale.numel(), *[1] * (tensor.dim() - 1))
        if scale.numel() not in (1, tensor.shape[0]):
            raise CheckpointError(
                f"{self._weights.path}: {name} has {tensor.shape[0]} rows and {scale.numel()} scales."
            )
        # Stored integers are round(weight * scale), one scale a row for int8 and one for all for int16.
        return tensor.float() / scale.reshape(rows)
