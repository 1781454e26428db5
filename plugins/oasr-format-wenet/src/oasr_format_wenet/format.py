"""WeNet's layout: train.yaml, weights as a pickled state dict, a table of symbols and what belongs to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.interfaces.format import Checkpoint, CheckpointFormat, Match
from oasr_format_wenet.cmvn import FeatureStatistics, read_statistics
from oasr_format_wenet.side_files import sentencepiece_file, statistics_file, symbols_file
from oasr_format_wenet.train_yaml import NAME, architecture, description_of, read_train_yaml
from oasr_format_wenet.weights import read_state, weight_files

if TYPE_CHECKING:
    import torch

_MARKS = (b"encoder_conf", b"encoder:")
_SNIFFED_BYTES = 1 << 16
_COMPANIONS = ("units.txt", "words.txt", "global_cmvn")
_MEAN, _INVERSE_DEVIATION = "encoder.global_cmvn.mean", "encoder.global_cmvn.istd"


class WeNetFormat(CheckpointFormat):
    """Recognises the folder, or one of the weight files in it, by train.yaml."""

    @classmethod
    def match(cls, path: Path) -> Match | None:
        if path.is_dir():
            weights = [*path.glob("*.pt"), *path.glob("final*.zip")]
        elif path.suffix in (".pt", ".zip") and path.is_file():
            weights = [path]
        else:
            return None
        description = description_of(path)
        if not os.path.lexists(description):
            companions = [name for name in _COMPANIONS if description.with_name(name).is_file()]
            is_release = any(file.name.startswith("final") for file in weights)
            return Match(0.4, f"weights and {companions[0]} are there") if is_release and companions else None
        if not _describes_a_model(description):
            return Match(0.3, f"weights and a damaged {NAME} are there") if weights else None
        return Match(0.9 if weights else 0.5, f"{NAME} describes an encoder")

    def open(self, path: Path) -> Checkpoint:
        return WeNetCheckpoint(path)


class WeNetCheckpoint(Checkpoint):
    """A release, or a folder of a training. `config` is train.yaml.

    Where the weights lack the statistics of the features, those of the file global_cmvn are added as tensors.
    """

    naming = "wenet"
    generation: Mapping[str, Any] = {}

    def __init__(self, path: Path):
        self.path = path
        self._folder = path if path.is_dir() else path.parent
        self.weights = weight_files(path)
        self.config = read_train_yaml(path)
        self.architecture = architecture(path, self.config)
        found = {
            "symbols": symbols_file(self._folder, self.config),
            "sentencepiece": sentencepiece_file(self._folder, self.config),
        }
        self.files = {role: file for role, file in found.items() if file is not None}

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        added = {name: (len(values),) for name, values in self._statistics_by_name().items()}
        return {name: tuple(tensor.shape) for name, tensor in self._state.items()} | added

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        import torch

        yield from self._state.items()
        for name, values in self._statistics_by_name().items():
            yield name, torch.tensor(values)

    @cached_property
    def _state(self) -> dict[str, torch.Tensor]:
        return read_state(self.weights)

    @cached_property
    def _statistics(self) -> FeatureStatistics | None:
        """Those of the file, where the weights do not hold them."""
        if _MEAN in self._state:
            return None
        file = statistics_file(self._folder, self.config)
        return read_statistics(file) if file else None

    def _statistics_by_name(self) -> dict[str, tuple[float, ...]]:
        statistics = self._statistics
        if statistics is None:
            return {}
        return {_MEAN: statistics.mean, _INVERSE_DEVIATION: statistics.inverse_deviation}


def _describes_a_model(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
    return any(mark in head for mark in _MARKS)
