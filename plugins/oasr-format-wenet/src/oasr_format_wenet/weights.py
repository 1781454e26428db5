"""Chooses the weight files of a folder and reads them, averaged where `wenet.json` asks for it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oasr.checkpoint.damage import is_there, require_sound, shortened
from oasr.checkpoint.json_file import file_beside, read_object
from oasr.checkpoint.pickles import read_state_dict
from oasr.errors import CheckpointError

if TYPE_CHECKING:
    import torch

SETTINGS = "wenet.json"

_RELEASED = "final.pt"
_AVERAGE = "average"
_PARALLEL = "module."  # before every name that data-parallel training wrote


def weight_files(path: Path) -> Sequence[Path]:
    """The files to read, several where they are to be averaged.

    Of a folder those that `wenet.json` lists, else final.pt, else the only one there is. Raises `CheckpointError` when
    that does not tell, and for TorchScript.
    """
    files = _of_folder(path) if path.is_dir() else [path]
    for file in files:
        _refuse_torchscript(file)
    return files


def read_state(files: Sequence[Path]) -> dict[str, torch.Tensor]:
    """Tensors by name; the mean of the files for every tensor of numbers, and the last one's counts."""
    state, *others = (_one_state(file) for file in files)
    for file, other in zip(files[1:], others, strict=True):
        differing = sorted(
            name
            for name in {*state, *other}
            if name not in state or name not in other or state[name].shape != other[name].shape
        )
        if differing:
            raise CheckpointError(f"{file} cannot be averaged with {files[0].name}: {shortened(differing)} differ.")
    if not others:
        return state
    return {
        name: sum((other[name] for other in others), tensor) / len(files)
        if tensor.is_floating_point()
        else others[-1][name]
        for name, tensor in state.items()
    }


def _of_folder(folder: Path) -> Sequence[Path]:
    if is_there(folder / SETTINGS):
        return _to_average(folder / SETTINGS)
    if os.path.lexists(folder / _RELEASED):
        return [folder / _RELEASED]
    found = sorted(folder.glob("*.pt"))
    averages = [path for path in found if path.stem.startswith("avg")]
    for candidates in (averages, found):
        if len(candidates) == 1:
            return candidates
    if found:
        raise CheckpointError(
            f"{folder} has no {_RELEASED} and several other weights: {shortened([path.name for path in found])}. "
            f"Name the file to read, or list those to average in {SETTINGS}."
        )
    programs = sorted(folder.glob("final*.zip"))
    if not programs:
        raise CheckpointError(f"{folder} has no weights: {_RELEASED} is missing.")
    return programs


def _to_average(path: Path) -> Sequence[Path]:
    content = read_object(path)
    names = content.get(_AVERAGE)
    if content.keys() != {_AVERAGE} or not isinstance(names, list) or not names:
        raise CheckpointError(f'{path} must hold "{_AVERAGE}", a list of weight files beside it, and nothing else.')
    return [file_beside(path, name) for name in names]


def _one_state(path: Path) -> dict[str, torch.Tensor]:
    state = read_state_dict(path)
    if not state:
        raise CheckpointError(f"{path} holds no tensors.")
    if all(name.startswith(_PARALLEL) for name in state):
        return {name.removeprefix(_PARALLEL): tensor for name, tensor in state.items()}
    return state


def _refuse_torchscript(path: Path) -> None:
    require_sound(path)
    is_program = path.suffix == ".zip"
    if not is_program and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            is_program = any(name.endswith("/constants.pkl") for name in archive.namelist())
    if is_program:
        raise CheckpointError(
            f"{path} is a TorchScript program, not named weights. Use {_RELEASED} of the same model: WeNet releases it "
            'as "checkpoint model", beside the "runtime model" that holds programs.'
        )
