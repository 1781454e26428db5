"""The weight files of a folder as Hugging Face lays them out: one file, or shards named by an index.

    model.safetensors
    model.safetensors.index.json  model-00001-of-00002.safetensors  model-00002-of-00002.safetensors
    pytorch_model.bin             (and its index and shards)

Safetensors win over pickles; a second set of safetensors that contradicts the first is refused, since picking one
silently would load the wrong model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from oasr.checkpoint.damage import is_there, require_sound, shortened
from oasr.checkpoint.json_file import file_beside, read_object
from oasr.checkpoint.pickles import read_state_dict
from oasr.checkpoint.safetensors_file import read_shapes, read_tensors
from oasr.errors import CheckpointError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Family:
    """How the files of one kind are called, and what reads them."""

    whole: str
    shards: re.Pattern[str]
    shapes: Callable[[Path], Mapping[str, tuple[int, ...]]]
    tensors: Callable[[Path], Iterable[tuple[str, torch.Tensor]]]

    @property
    def index(self) -> str:
        """The file that says which shard holds which tensor."""
        return f"{self.whole}.index.json"


def _pickled_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in read_state_dict(path).items()}


FAMILIES = (
    Family("model.safetensors", re.compile(r"model-\d{5}-of-\d{5}\.safetensors"), read_shapes, read_tensors),
    Family(
        "pytorch_model.bin",
        re.compile(r"pytorch_model-\d{5}-of-\d{5}\.bin"),
        _pickled_shapes,
        lambda path: read_state_dict(path).items(),
    ),
)
"""In the order of preference."""


class FolderWeights:
    """The tensors of a folder.

    Raises `CheckpointError` when the folder has no weights, a shard is missing, or a file contradicts the others.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        found = next((family for family in FAMILIES if has_weights(folder, family)), None)
        if found is None:
            raise CheckpointError(_no_weights(folder))
        self._family = found
        self._index = read_index(folder / found.index) if is_there(folder / found.index) else None
        self.files = self._choose()

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of every tensor by name. Pickles are mapped, not read."""
        return self._shapes

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every tensor, one at a time."""
        for file in self.files:
            yield from self._family.tensors(file)

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        by_file = {file.name: self._family.shapes(file) for file in self.files}
        owners: dict[str, str] = {}
        for file, shapes in by_file.items():
            for name in shapes:
                if other := owners.get(name):
                    raise CheckpointError(f"{self._folder}: {name} is in {other} and in {file}.")
                owners[name] = file
        if self._index is not None and self._index != owners:
            wrong = sorted(name for name in {*self._index, *owners} if self._index.get(name) != owners.get(name))
            raise CheckpointError(
                f"{self._folder}: {self._family.index} and the files it names disagree about {shortened(wrong)}."
            )
        return {name: size for shapes in by_file.values() for name, size in shapes.items()}

    def _choose(self) -> list[Path]:
        present = {path.name for path in self._folder.iterdir() if self._belongs(path.name)}
        chosen = {self._family.whole} if self._index is None else set(self._index.values())
        if missing := sorted(chosen - present):
            raise CheckpointError(
                f"{self._folder} is incomplete: {shortened(missing)} named by {self._family.index} "
                f"{'is' if len(missing) == 1 else 'are'} missing."
            )
        if stray := sorted(present - chosen):
            kept = self._family.index if self._index is not None else self._family.whole
            raise CheckpointError(
                f"{self._folder} holds two sets of weights: {shortened(stray)} "
                f"{'does' if len(stray) == 1 else 'do'} not belong to {kept}. Remove what is left over."
            )
        for name in chosen:
            require_sound(self._folder / name)
        return [self._folder / name for name in sorted(chosen)]

    def _belongs(self, name: str) -> bool:
        return name == self._family.whole or bool(self._family.shards.fullmatch(name))


def has_weights(folder: Path, family: Family) -> bool:
    """Whether a folder holds a file or an index of a family."""
    return os.path.lexists(folder / family.whole) or os.path.lexists(folder / family.index)


def read_index(path: Path) -> dict[str, str]:
    """Which file holds each tensor. Raises `CheckpointError` for a damaged index and for names outside the folder."""
    places = read_object(path).get("weight_map")
    if not isinstance(places, dict):
        raise CheckpointError(f"{path} is not an index of shards: it has no weight_map.")
    return {tensor: file_beside(path, file).name for tensor, file in places.items()}


def _no_weights(folder: Path) -> str:
    for family in FAMILIES:
        shards = sorted(path.name for path in folder.iterdir() if family.shards.fullmatch(path.name))
        if shards:
            return f"{folder} is incomplete: it has {shortened(shards)}, but {family.index} is missing."
    return f"{folder} has no weights: {' or '.join(family.whole for family in FAMILIES)} is missing."
