"""The layout of transformers: `config.json`, weights in one file or in shards, and the side files of the processor."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoint.damage import is_there
from oasr.checkpoint.json_file import read_object
from oasr.checkpoint.weight_folder import FAMILIES, FolderWeights, has_weights
from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint, CheckpointFormat, Match
from oasr_format_huggingface.tokenizer_files import joined_tokenizer

if TYPE_CHECKING:
    import torch

_CONFIG = "config.json"
_ADAPTER = "adapter_config.json"
_SIDE_FILES = {
    "tokenizer": "tokenizer.json",
    "tokenizer_config": "tokenizer_config.json",
    "special_tokens": "special_tokens_map.json",
    "added_tokens": "added_tokens.json",
    "vocab": "vocab.json",
    "merges": "merges.txt",
    "normalizer": "normalizer.json",
    "sentencepiece": "tokenizer.model",
    "preprocessor": "preprocessor_config.json",
    "processor": "processor_config.json",
    "chat_template": "chat_template.jinja",
}


class HuggingFaceFormat(CheckpointFormat):
    """Recognises the folder by what `config.json` names."""

    @classmethod
    def match(cls, path: Path) -> Match | None:
        if (path / _ADAPTER).is_file() and not (path / _CONFIG).exists():
            return Match(0.8, f"{_ADAPTER} is there")
        if not os.path.lexists(path / _CONFIG):
            return None
        has_any = any(has_weights(path, family) for family in FAMILIES)
        try:
            name = _architecture(read_object(path / _CONFIG))
        except CheckpointError:
            return Match(0.3, f"weights are there, and {_CONFIG} is damaged") if has_any else None
        if name is None:
            return None
        return Match(0.9 if has_any else 0.5, f"{_CONFIG} names {name}")

    def open(self, path: Path) -> Checkpoint:
        return HuggingFaceCheckpoint(path)


class HuggingFaceCheckpoint(Checkpoint):
    """A folder that `save_pretrained` wrote, or a download."""

    naming = "huggingface"

    def __init__(self, path: Path):
        if (path / _ADAPTER).is_file() and not (path / _CONFIG).exists():
            raise CheckpointError(
                f"{path} holds an adapter ({_ADAPTER}), not a model: merge it into its base model first "
                "(merge_and_unload in peft) and save that."
            )
        self.path = path
        self.config: Mapping[str, Any] = read_object(path / _CONFIG)
        architecture = _architecture(self.config)
        if architecture is None:
            raise CheckpointError(f"{path / _CONFIG} names neither architectures nor model_type.")
        self.architecture = architecture
        generation = path / "generation_config.json"
        self.generation: Mapping[str, Any] = read_object(generation) if is_there(generation) else {}
        self.files = _side_files(path)

    @cached_property
    def weights(self) -> FolderWeights:
        """The files that hold the tensors."""
        return FolderWeights(self.path)

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self.weights.shapes()

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        return self.weights.tensors()


def _architecture(config: Mapping[str, Any]) -> str | None:
    """The class that wrote the model says more than its type, which heads of other kinds share."""
    classes = config.get("architectures")
    if isinstance(classes, list) and classes:
        return str(classes[0])
    kind = config.get("model_type")
    return kind if isinstance(kind, str) and kind else None


def _side_files(folder: Path) -> dict[str, Path]:
    files = {role: folder / name for role, name in _SIDE_FILES.items() if is_there(folder / name)}
    if "tokenizer" not in files and {"vocab", "merges"} <= files.keys():
        files["tokenizer"] = joined_tokenizer(files)
    return files
