"""The weights of one or several checkpoints of a training run.

pretrained.pt      {"model": tensors}
epoch-30.pt        {"model": ..., "model_avg": ..., "batch_idx_train": 91234, training parameters, optimizer, ...}
checkpoint-8000.pt the same, by batches
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoint.damage import require_sound, shortened
from oasr.checkpoint.pickles import named_tensors, read_pickle
from oasr.errors import CheckpointError
from oasr_format_icefall.settings import SETTINGS, Settings

if TYPE_CHECKING:
    import torch

SUFFIXES = (".pt", ".pth")
_BEST = "pretrained.pt"
_MODEL, _AVERAGE, _BATCHES = "model", "model_avg", "batch_idx_train"


@dataclass(frozen=True)
class Weights:
    """A weighted sum of checkpoints that hold the same tensors."""

    parts: Sequence[tuple[Mapping[str, torch.Tensor], float]]
    """The first decides what tensors there are."""
    parameters: Mapping[str, Any]
    """Training parameters, as far as the file states them."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor by name."""
        return {name: tuple(tensor.shape) for name, tensor in self.parts[0][0].items()}

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every tensor, summed when it is asked for."""
        for name, tensor in self.parts[0][0].items():
            if len(self.parts) == 1 or not tensor.is_floating_point():
                yield name, tensor
            else:
                total = sum(weight * state[name].double() for state, weight in self.parts)
                assert not isinstance(total, int)
                yield name, total.to(tensor.dtype)


def read_weights(folder_or_file: Path, settings: Settings) -> Weights:
    """The weights that settings choose in a folder, or those of a file.

    Raises `CheckpointError` when there are none, when nothing says which of several to take, and when those to average
    do not belong together.
    """
    if folder_or_file.is_file():
        return _alone(_Saved(folder_or_file))
    if settings.epoch is None and settings.iter is None:
        return _alone(_Saved(_only(folder_or_file)))
    prefix, last = ("epoch", settings.epoch) if settings.epoch is not None else ("checkpoint", settings.iter)
    numbered = _numbered(folder_or_file, prefix)
    if last not in numbered:
        raise CheckpointError(
            f"{folder_or_file} has no {prefix}-{last}.pt, which {settings.path} asks for; it has "
            f"{shortened([path.name for path in numbered.values()]) or 'none of the kind'}."
        )
    newest_first = [numbered[number] for number in sorted(numbered, reverse=True) if number <= last]
    end = _Saved(newest_first[0])
    averaged = end.has_average if settings.use_averaged_model is None else settings.use_averaged_model
    if settings.avg == 1:
        return _alone(end, averaged)
    needed = settings.avg + averaged
    if len(newest_first) < needed:
        raise CheckpointError(
            f"{folder_or_file} has {len(newest_first)} checkpoints up to {prefix}-{last}.pt; "
            f"{settings.path} asks for an average of {settings.avg}, which takes {needed}."
        )
    if averaged:
        return _between(_Saved(newest_first[settings.avg]), end)
    return _mean([end, *map(_Saved, newest_first[1 : settings.avg])])


def is_torchscript(path: Path) -> bool:
    """Whether a file holds a program beside its weights."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") or "/code/" in name for name in archive.namelist())


class _Saved:
    """What `torch.save` wrote to one file."""

    def __init__(self, path: Path):
        self.path = path
        require_sound(path)
        if is_torchscript(path):
            raise CheckpointError(
                f"{path} is a TorchScript export, a program beside its weights, which is not read. Name a file that "
                "holds weights alone, such as pretrained.pt or epoch-N.pt."
            )
        content = read_pickle(path, stand_ins=True)
        if not isinstance(content, dict) or not isinstance(content.get(_MODEL), dict):
            raise CheckpointError(f'{path} has no entry "{_MODEL}" with tensors, as icefall writes it.')
        self._content = content

    @property
    def has_average(self) -> bool:
        return isinstance(self._content.get(_AVERAGE), dict)

    @property
    def batches(self) -> int:
        """How many batches of training it has seen."""
        count = self._content.get(_BATCHES)
        if not isinstance(count, int):
            raise CheckpointError(f"{self.path} does not say after how many batches it was saved ({_BATCHES}).")
        return count

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: value for name, value in self._content.items() if isinstance(value, (str, int, float))}

    def state(self, averaged: bool) -> dict[str, torch.Tensor]:
        """Tensors by name. Those of several devices carry a prefix."""
        if averaged and not self.has_average:
            raise CheckpointError(f'{self.path} has no "{_AVERAGE}": write "use_averaged_model": false in {SETTINGS}.')
        tensors = named_tensors(self.path, self._content[_AVERAGE if averaged else _MODEL])
        return {name.removeprefix("module."): tensor for name, tensor in tensors.items()}


def _alone(saved: _Saved, averaged: bool | None = None) -> Weights:
    averaged = saved.has_average if averaged is None else averaged
    return Weights([(saved.state(averaged), 1.0)], saved.parameters)


def _between(start: _Saved, end: _Saved) -> Weights:
    """The average over what lies between two checkpoints, each of which holds the average since the beginning
    (icefall, checkpoint.py, average_checkpoints_with_averaged_model)."""
    batches = end.batches - start.batches
    if batches <= 0:
        raise CheckpointError(f"{end.path} was saved no later than {start.path}: there is nothing to average.")
    parts = [(end.state(True), end.batches / batches), (start.state(True), -start.batches / batches)]
    return _summed([end, start], parts)


def _mean(saved: Sequence[_Saved]) -> Weights:
    return _summed(saved, [(each.state(False), 1 / len(saved)) for each in saved])


def _summed(saved: Sequence[_Saved], parts: Sequence[tuple[dict[str, torch.Tensor], float]]) -> Weights:
    first = parts[0][0]
    for other, (state, _) in zip(saved, parts, strict=True):
        unlike = [
            name
            for name in sorted(first.keys() | state.keys())
            if name not in first or name not in state or first[name].shape != state[name].shape
        ]
        if unlike:
            raise CheckpointError(
                f"{saved[0].path} and {other.path} are of different models and cannot be averaged: they differ in "
                f"{shortened(unlike)}."
            )
    return Weights(parts, saved[0].parameters)


def _only(folder: Path) -> Path:
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    readable = [path for path in files if not is_torchscript(path)]
    best = [path for path in readable if path.name == _BEST] or readable
    if len(best) == 1:
        return best[0]
    names = [path.name for path in best]
    if names:
        raise CheckpointError(
            f"{folder} holds {len(names)} checkpoints: {shortened(names)}. Name one of them, or write which to take to "
            f'{SETTINGS}, such as {{"epoch": 30, "avg": 9}}.'
        )
    exports = [path.name for path in (*files, *folder.glob("*.onnx"))]
    if exports:
        raise CheckpointError(
            f"{folder} holds only TorchScript or ONNX exports ({shortened(exports)}), which are not read. "
            f"It takes {_BEST} or epoch-N.pt of the same model."
        )
    raise CheckpointError(f"{folder} holds no weights: {_BEST} or epoch-N.pt is missing.")


def _numbered(folder: Path, prefix: str) -> dict[int, Path]:
    matches = ((re.fullmatch(rf"{prefix}-(\d+)\.pt", path.name), path) for path in folder.iterdir())
    return {int(match[1]): path for match, path in matches if match}
