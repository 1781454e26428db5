"""Builds an architecture without memory, then fills it strictly from a checkpoint, one tensor at a time."""

import logging
from collections.abc import Iterator, Mapping

import torch
from pydantic import ValidationError
from torch import nn

from oasr.checkpoint.damage import blaming, shortened
from oasr.checkpoint.renaming import Placement, place, zero_part
from oasr.errors import CheckpointError
from oasr.interfaces.architecture import Architecture, Rename, WeightRules
from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.format import Checkpoint
from oasr.plugin import Kind
from oasr.registry import Registry

OWN_NAMING = "oasr"
"""The naming of checkpoints whose tensors carry an architecture's own names."""

_OWN_NAMES = WeightRules(renames=(Rename("(.*)", r"\1"),))
_log = logging.getLogger("oasr")


def outline(checkpoint: Checkpoint, registry: Registry) -> Architecture:
    """The architecture a checkpoint names, configured, with tensors that have shapes and no memory.

    Raises `CheckpointError` for a variant that is not supported and `ComponentError` when no installed plugin provides
    the architecture.
    """
    architecture: type[Architecture] = registry.load(Kind.ARCHITECTURE, checkpoint.architecture)
    return on_meta(architecture, configuration(architecture, checkpoint))


def load(checkpoint: Checkpoint, registry: Registry, dtype: torch.dtype, device: torch.device | str) -> Architecture:
    """The same for inference, with its weights: floating-point tensors as `dtype` on `device`.

    Logs what was done beyond copying tensors. Raises what `outline` raises, and `CheckpointError` for a damaged file
    and for tensors that do not fit, all of them listed.
    """
    module = outline(checkpoint, registry)
    plan = Plan(checkpoint, module)
    converted = _fill(module, plan, dtype, torch.device(device))
    for what, names in (
        ("missing and zero", list(plan.zeros)),
        ("unexpected and not needed", plan.ignored),
        (f"converted to {dtype}", converted),
    ):
        if names:
            _log.debug("%s: %d %s: %s", checkpoint.path, len(names), what, shortened(names))
    return module.eval().requires_grad_(False)


def configuration(architecture: type[Architecture], checkpoint: Checkpoint) -> ComponentConfig:
    """The configuration of a checkpoint, read from the toolkit's own or validated when it is OASR's."""
    if checkpoint.naming != OWN_NAMING:
        with blaming(checkpoint.path, f"does not hold the settings of {checkpoint.architecture} as they should be"):
            return architecture.read_config(checkpoint)
    try:
        return architecture.Config.model_validate(dict(checkpoint.config))
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise CheckpointError(
            f"{checkpoint.path}: the stored configuration does not fit {architecture.__name__}: {shortened(faults)}."
        ) from error


def on_meta(architecture: type[Architecture], config: ComponentConfig) -> Architecture:
    """A module whose tensors have shapes and no memory."""
    with torch.device("meta"):
        return architecture(config)


class Plan:
    """Which stored tensor fills which part of which own tensor.

    Raises `CheckpointError` listing every tensor that is missing, unexpected or of another shape.
    """

    def __init__(self, checkpoint: Checkpoint, module: Architecture):
        self.checkpoint = checkpoint
        self.targets: Mapping[str, torch.Tensor] = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        """The module's tensors, without memory, by own name."""
        self.zeros: dict[str, tuple[int, int]] = {}
        """Part to leave zero, as `(part, parts)`, by own name."""
        self.ignored: list[str] = []
        self._placements: dict[str, Placement] = {}
        is_own = checkpoint.naming == OWN_NAMING
        self._rules = _OWN_NAMES if is_own else type(module).rename(checkpoint.naming)
        self._check()

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor, Placement]]:
        """Each needed stored tensor with its name and place, read one at a time."""
        left = dict(self._placements)
        for name, tensor in self.checkpoint.tensors():
            if placement := left.pop(name, None):
                yield name, tensor, placement
        if left:
            raise CheckpointError(f"{self.checkpoint.path}: could not read {shortened(sorted(left))}.")

    def _check(self) -> None:
        unexpected: list[str] = []
        mismatched: list[str] = []
        filled: dict[str, dict[tuple[int, int], str]] = {}
        for name, shape in self.checkpoint.shapes().items():
            placement = place(self._rules, name)
            if placement is None or (placement.target is not None and placement.target not in self.targets):
                unexpected.append(name)
                continue
            if placement.target is None:
                self.ignored.append(name)
                continue
            expected = _part_shape(self.targets[placement.target], placement.parts)
            if tuple(shape) != expected:
                mismatched.append(f"{name} is {_by(shape)} where {_by(expected)} is expected")
            parts = filled.setdefault(placement.target, {})
            if other := parts.get((placement.part, placement.parts)):
                mismatched.append(f"{name} and {other} are the same tensor")
            parts[placement.part, placement.parts] = name
            self._placements[name] = placement
        missing = [name for name in self.targets if not self._is_covered(name, set(filled.get(name, ())))]
        self._refuse(missing, unexpected, mismatched)

    def _is_covered(self, name: str, parts: set[tuple[int, int]]) -> bool:
        zero = zero_part(self._rules, name)
        if zero and zero not in parts:
            parts.add(zero)
            self.zeros[name] = zero
        counts = {count for _, count in parts}
        return len(counts) == 1 and len(parts) == counts.pop()

    def _refuse(self, missing: list[str], unexpected: list[str], mismatched: list[str]) -> None:
        faults = [
            f"{len(names)} {what}: {shortened(names)}"
            for what, names in (("missing", missing), ("unexpected", unexpected), ("of another shape", mismatched))
            if names
        ]
        if faults:
            raise CheckpointError(
                f"{self.checkpoint.path}: the weights do not fit {self.checkpoint.architecture}. {'; '.join(faults)}. "
                "The files may be of another model or release, or incomplete."
            )


def _fill(module: Architecture, plan: Plan, dtype: torch.dtype, device: torch.device) -> list[str]:
    state = {}
    for name, meta in plan.targets.items():
        kind = dtype if meta.is_floating_point() else meta.dtype
        state[name] = torch.empty(meta.shape, dtype=kind, device=device)
        if zero := plan.zeros.get(name):
            part_of(state[name], *zero).zero_()
    converted = []
    for name, tensor, placement in plan:
        assert placement.target is not None
        own = state[placement.target]
        if tensor.is_floating_point() != own.is_floating_point():
            raise CheckpointError(
                f"{plan.checkpoint.path}: {name} is stored as {tensor.dtype} where {own.dtype} is expected; "
                "packed or quantized weights of this kind are not supported."
            )
        if tensor.dtype != own.dtype:
            converted.append(name)
        part_of(own, placement.part, placement.parts).copy_(tensor)
    _assign(module, plan.targets, state)
    return converted


def _assign(module: Architecture, targets: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor]) -> None:
    # By identity, because a parameter shared by two modules is one target and has two places.
    parameters = {
        id(targets[name]): nn.Parameter(tensor, requires_grad=False)
        for name, tensor in state.items()
        if isinstance(targets[name], nn.Parameter)
    }
    buffers = {id(targets[name]): tensor for name, tensor in state.items()}
    for holder in module.modules():
        for leaf, old in list(holder.named_parameters(recurse=False, remove_duplicate=False)):
            setattr(holder, leaf, parameters[id(old)])
        for leaf, old_buffer in list(holder.named_buffers(recurse=False, remove_duplicate=False)):
            setattr(holder, leaf, buffers[id(old_buffer)])


def part_of(tensor: torch.Tensor, part: int, parts: int) -> torch.Tensor:
    """A view of one of equal parts along the first dimension."""
    return tensor if parts == 1 else tensor.chunk(parts)[part]


def _part_shape(tensor: torch.Tensor, parts: int) -> tuple[int, ...]:
    if parts == 1 or not tensor.shape or tensor.shape[0] % parts:
        return tuple(tensor.shape)
    return (tensor.shape[0] // parts, *tensor.shape[1:])


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a single number"
