"""Reads PyTorch files without ever running code from them."""

from __future__ import annotations

import pickle
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from oasr.checkpoint.damage import require_sound, shortened
from oasr.errors import CheckpointError

if TYPE_CHECKING:
    import torch

# The wording of torch/_weights_only_unpickler.py.
_REFUSED_CLASS = re.compile(r"GLOBAL (\S+)")
_CAUSE = re.compile(r"WeightsUnpickler error:\s*(.+)")


def read_pickle(path: Path, *, stand_ins: bool = False) -> Any:
    """Content of a `.pt`, `.pth` or `.bin` file, with its tensors on the CPU and mapped from the file where it can be.

    Raises `CheckpointError` when the file is missing, empty or truncated, and when it holds anything but tensors and
    plain containers: unpickling a class runs code that the file chooses, so there is no switch to allow it. With
    `stand_ins` other objects, such as the paths in a training checkpoint, are read as objects that do nothing.
    """
    require_sound(path)
    try:
        return _load(path, {} if stand_ins else None)
    except pickle.UnpicklingError as error:
        raise CheckpointError(_refusal(path, str(error))) from error
    except (EOFError, RuntimeError, OSError, ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), "it ends early")
        raise CheckpointError(f"{path} is truncated or not a PyTorch file: {reason}.") from error


def read_state_dict(path: Path) -> dict[str, torch.Tensor]:
    """The same for a file that holds nothing but named tensors."""
    content = read_pickle(path)
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds a {type(content).__name__}, not named tensors.")
    return named_tensors(path, content)


def named_tensors(path: Path, content: Mapping[Any, Any]) -> dict[str, torch.Tensor]:
    """Part of what a file holds as tensors by name. Raises `CheckpointError` listing what is something else."""
    import torch

    others = [
        str(name) for name, value in content.items() if not isinstance(name, str) or not isinstance(value, torch.Tensor)
    ]
    if others:
        raise CheckpointError(f"{path} holds entries that are not named tensors: {shortened(others)}.")
    return dict(content)


def _load(path: Path, stand_ins: dict[str, type[_StandIn]] | None) -> Any:
    """What torch reads, with a stand-in for each class that it refuses; None refuses them."""
    import torch

    known: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = []
    known += [(kind, name) for name, kind in (stand_ins or {}).items()]
    try:
        # Warnings are about a pickle that Python wrote, whose refusal says enough.
        with warnings.catch_warnings(action="ignore"), torch.serialization.safe_globals(known):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        match = _REFUSED_CLASS.search(str(error))
        if stand_ins is None or match is None or match[1] in stand_ins:
            raise
        return _load(path, {**stand_ins, match[1]: type(match[1], (_StandIn,), {})})


class _StandIn:
    """Takes whatever an object of an unknown class is made of, and does nothing with it."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any):
        pass

    def __setstate__(self, _: Any) -> None:
        pass


def _refusal(path: Path, reason: str) -> str:
    match = _REFUSED_CLASS.search(reason)
    if match is None:
        # torch's own text, around the cause, advises to switch the check off.
        cause = _CAUSE.search(reason)
        return f"{path} is truncated or holds more than tensors and plain containers{f': {cause[1]}' if cause else ''}."
    return (
        f"{path} was not loaded: it contains {match[1]}, and unpickling a class can run any code. "
        "Only tensors and plain containers are read. If you trust the file, load it with the toolkit it comes from and "
        "save the weights alone: torch.save(model.state_dict(), path)."
    )
