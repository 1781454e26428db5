"""Writes a checkpoint of any format in OASR's own layout."""

import glob
import json
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from oasr.checkpoint.damage import blaming, shortened
from oasr.checkpoint.load import Plan, configuration, on_meta, part_of
from oasr.checkpoint.native import DESCRIPTION, VERSION, WEIGHTS, NativeCheckpoint
from oasr.errors import CheckpointError
from oasr.interfaces.architecture import Architecture
from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.format import Checkpoint
from oasr.plugin import Kind
from oasr.registry import Registry

_STALE_SECONDS = 60 * 60


def convert(checkpoint: Checkpoint, registry: Registry, destination: Path, force: bool = False) -> Path:
    """Write a checkpoint to a folder that loads bit for bit as the original does, and return the folder.

    Number types are kept; a tensor joined from several takes the wider type of its parts. Raises `CheckpointError` when
    the checkpoint does not fit its architecture or the folder cannot be written, as `save_native` says.
    """
    require_writable(destination, force)
    architecture: type[Architecture] = registry.load(Kind.ARCHITECTURE, checkpoint.architecture)
    config = configuration(architecture, checkpoint)
    state = own_state(checkpoint, on_meta(architecture, config))
    name = registry.spec(Kind.ARCHITECTURE, checkpoint.architecture).name
    return save_native(
        destination,
        architecture=name,
        config=config,
        state=state,
        files=checkpoint.files,
        generation=checkpoint.generation,
        force=force,
    )


def own_state(checkpoint: Checkpoint, module: Architecture) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint under the architecture's own names, in the types they are stored in."""
    plan = Plan(checkpoint, module)
    state: dict[str, torch.Tensor] = {}
    for _, tensor, placement in plan:
        assert placement.target is not None
        if placement.parts == 1:
            # A copy, because tensors of a pickle may share memory, which safetensors does not allow.
            state[placement.target] = tensor.clone(memory_format=torch.contiguous_format)
            continue
        whole = state.get(placement.target)
        if whole is None:
            whole = torch.zeros(plan.targets[placement.target].shape, dtype=tensor.dtype)
        whole = whole.to(torch.promote_types(whole.dtype, tensor.dtype))
        part_of(whole, placement.part, placement.parts).copy_(tensor)
        state[placement.target] = whole
    for name in plan.zeros.keys() - state.keys():
        state[name] = torch.zeros(plan.targets[name].shape)
    return state


def save_native(
    destination: Path,
    *,
    architecture: str,
    config: ComponentConfig,
    state: Mapping[str, torch.Tensor],
    files: Mapping[str, Path],
    generation: Mapping[str, Any],
    force: bool = False,
) -> Path:
    """Write a folder in OASR's layout: complete or not at all.

    Raises `CheckpointError` when the destination is a file, or a folder with content: with `force` it is replaced if
    it is a converted checkpoint itself, and nothing else ever is. Raises it also when the system refuses.
    """
    require_writable(destination, force)
    place = destination.resolve()  # "." has no name to derive another from
    _clear_stale(place)
    partial = _beside(place, f"{uuid4().hex[:8]}.partial")
    try:
        partial.mkdir(parents=True)
        names = _copy_files(files, partial)
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, partial / WEIGHTS)
        description = {
            "format": VERSION,
            "architecture": architecture,
            "config": config.model_dump(mode="json"),
            "generation": dict(generation),
            "files": names,
        }
        text = json.dumps(description, ensure_ascii=False, indent=2) + "\n"
        (partial / DESCRIPTION).write_text(text, encoding="utf-8")
        # The library makes the file private; a model is as readable as the rest of the folder.
        (partial / WEIGHTS).chmod((partial / DESCRIPTION).stat().st_mode)
        _move_into_place(partial, place)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"{destination} cannot be written: {reason}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return destination


def require_writable(destination: Path, force: bool) -> None:
    """Raise `CheckpointError` when a conversion may not write to this path."""
    with blaming(destination, "cannot be written"):
        _require_writable(destination, force)


def _require_writable(destination: Path, force: bool) -> None:
    above = next(folder for folder in destination.absolute().parents if os.path.lexists(folder))
    if not above.is_dir():
        raise CheckpointError(f"{destination} cannot be written: {above} is not a folder.")
    if not destination.exists() or (destination.is_dir() and not any(destination.iterdir())):
        return
    if not destination.is_dir():
        raise CheckpointError(f"{destination} is a file; name a folder to write to.")
    if strangers := sorted({path.name for path in destination.iterdir()} - _written_names(destination)):
        raise CheckpointError(
            f"{destination} holds files that no conversion wrote ({shortened(strangers)}), so it is never replaced; "
            "name a new folder."
        )
    if not force:
        raise CheckpointError(f"{destination} already holds a converted checkpoint; add --force to replace it.")


def _written_names(folder: Path) -> set[str]:
    if not (folder / DESCRIPTION).is_file():
        return set()
    return {DESCRIPTION, WEIGHTS, *(path.name for path in NativeCheckpoint(folder).files.values())}


def _copy_files(files: Mapping[str, Path], folder: Path) -> dict[str, str]:
    names: dict[str, str] = {}
    for role, path in files.items():
        name = path.name
        if name in (*names.values(), DESCRIPTION, WEIGHTS):
            name = f"{role}-{name}"
        shutil.copyfile(path, folder / name)
        names[role] = name
    return names


def _beside(destination: Path, ending: str) -> Path:
    """A hidden name next to a folder, which fits where the folder's own name does."""
    return destination.with_name(f".{os.fsdecode(os.fsencode(destination.name)[:200])}.{ending}")


def _clear_stale(destination: Path) -> None:
    """Remove what conversions to this destination that were killed left behind."""
    name = _beside(destination, "").name
    for partial in destination.parent.glob(f"{glob.escape(name)}????????.partial"):
        with suppress(OSError):
            if time.time() - max(path.stat().st_mtime for path in (partial, *partial.iterdir())) > _STALE_SECONDS:
                shutil.rmtree(partial)


def _move_into_place(partial: Path, destination: Path) -> None:
    if not destination.exists():
        partial.rename(destination)
        return
    if not any(destination.iterdir()):  # filled, not replaced: somebody's shell may be in it
        for name in sorted({path.name for path in partial.iterdir()}, key=lambda name: name == DESCRIPTION):
            (partial / name).rename(destination / name)
        partial.rmdir()
        return
    old = _beside(destination, f"{uuid4().hex[:8]}.old")
    destination.rename(old)
    try:
        partial.rename(destination)
    except OSError:
        old.rename(destination)
        raise
    shutil.rmtree(old)
