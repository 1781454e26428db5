"""WeNet's layout: train.yaml, weights as a pickled state dict, a table of symbols and what belongs to it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoint.damage import require_sound, shortened
from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint, CheckpointFormat, Match

if TYPE_CHECKING:
    import torch

    from oasr_format_wenet.cmvn import FeatureStatistics

_DESCRIPTION = "train.yaml"
_RELEASED = "final.pt"
_MARKS = (b"encoder_conf", b"encoder:")
_SNIFFED_BYTES = 1 << 16
_COMPANIONS = ("units.txt", "words.txt", "global_cmvn")
_STATISTICS = "encoder.global_cmvn."


class WeNetFormat(CheckpointFormat):
    """Recognises the folder, or one of the weight files in it, by train.yaml."""

    @classmethod
    def match(cls, path: Path) -> Match | None:
        if not path.is_dir() and path.suffix not in (".pt", ".zip"):
            return None
        folder = path if path.is_dir() else path.parent
        weights = [path] if path.is_file() else [*folder.glob("*.pt"), *folder.glob("final*.zip")]
        if not os.path.lexists(folder / _DESCRIPTION):
            companions = [name for name in _COMPANIONS if (folder / name).is_file()]
            is_release = any(file.name.startswith("final") for file in weights)
            return Match(0.4, f"weights and {companions[0]} are there") if is_release and companions else None
        if not _describes_a_model(folder / _DESCRIPTION):
            return Match(0.3, f"weights and a damaged {_DESCRIPTION} are there") if weights else None
        return Match(0.9 if weights else 0.5, f"{_DESCRIPTION} describes an encoder")

    def open(self, path: Path) -> Checkpoint:
        return WeNetCheckpoint(path)


class WeNetCheckpoint(Checkpoint):
    """A release, or a training folder of which one checkpoint is named. `config` is train.yaml.

    Where the weights lack the statistics of the features, those of the file global_cmvn are added as tensors.
    """

    naming = "wenet"
    generation: Mapping[str, Any] = {}

    def __init__(self, path: Path):
        # yaml is imported when a checkpoint is opened: recognising one does not need it.
        from oasr_format_wenet.side_files import sentencepiece_file, symbols_file
        from oasr_format_wenet.train_yaml import architecture, read_train_yaml

        self.path = path
        self._folder = path if path.is_dir() else path.parent
        self.weights = _weights_of(path) if path.is_dir() else path
        _refuse_torchscript(self.weights)
        self.config = read_train_yaml(self._folder / _DESCRIPTION)
        self.architecture = architecture(self._folder / _DESCRIPTION, self.config)
        found = {
            "symbols": symbols_file(self._folder, self.config),
            "sentencepiece": sentencepiece_file(self._folder, self.config),
        }
        self.files = {role: file for role, file in found.items() if file is not None}

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        shapes = {name: tuple(tensor.shape) for name, tensor in self._state.items()}
        if self._statistics:
            shapes |= {f"{_STATISTICS}{name}": (len(values),) for name, values in self._statistics_by_name()}
        return shapes

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        import torch

        yield from self._state.items()
        for name, values in self._statistics_by_name():
            yield f"{_STATISTICS}{name}", torch.tensor(values)

    @cached_property
    def _state(self) -> dict[str, torch.Tensor]:
        """Tensors by name; data-parallel training puts `module.` before every name."""
        from oasr.checkpoint.pickles import read_state_dict

        state = read_state_dict(self.weights)
        wrapped = all(name.startswith("module.") for name in state)
        return {name.removeprefix("module."): tensor for name, tensor in state.items()} if wrapped else state

    @cached_property
    def _statistics(self) -> FeatureStatistics | None:
        """Those of the file, where the weights do not hold them."""
        from oasr_format_wenet.cmvn import read_statistics
        from oasr_format_wenet.side_files import statistics_file

        if f"{_STATISTICS}mean" in self._state:
            return None
        file = statistics_file(self._folder, self.config)
        return read_statistics(file) if file else None

    def _statistics_by_name(self) -> list[tuple[str, tuple[float, ...]]]:
        statistics = self._statistics
        return [("mean", statistics.mean), ("istd", statistics.inverse_deviation)] if statistics else []


def _describes_a_model(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
    return any(mark in head for mark in _MARKS)


def _weights_of(folder: Path) -> Path:
    """final.pt, or the only weights there are."""
    if os.path.lexists(folder / _RELEASED):
        return folder / _RELEASED
    found = sorted(folder.glob("*.pt"))
    averages = [path for path in found if path.stem.startswith("avg")]
    for candidates in (averages, found):
        if len(candidates) == 1:
            return candidates[0]
    if found:
        raise CheckpointError(
            f"{folder} has no {_RELEASED} and several other weights: {shortened([path.name for path in found])}. "
            "Name the file to read."
        )
    programs = sorted(folder.glob("final*.zip"))
    if programs:
        _refuse_torchscript(programs[0])
    raise CheckpointError(f"{folder} has no weights: {_RELEASED} is missing.")


def _refuse_torchscript(path: Path) -> None:
    require_sound(path)
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        is_program = any(name.endswith("/constants.pkl") for name in archive.namelist())
    if is_program or path.suffix == ".zip":
        raise CheckpointError(
            f"{path} is a TorchScript program, not named weights. Use {_RELEASED} of the same model: WeNet releases it "
            'under "checkpoint model", beside the "runtime model" that holds programs.'
        )
