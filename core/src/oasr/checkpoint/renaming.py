"""Applies an architecture's weight rules: from stored names to its own names and the parts they fill."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oasr.interfaces.architecture import Rename, WeightRules


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one stored tensor goes: part `part` of `parts` equal ones along the first dimension of `target`."""

    target: str | None
    """The architecture's own name; None when the tensor is known and not needed."""
    part: int = 0
    parts: int = 1


def place(rules: WeightRules, name: str) -> Placement | None:
    """Where the first rule that matches puts a stored tensor; None when no rule does."""
    for rename in rules.renames:
        if match := _compiled(rename.pattern).fullmatch(name):
            target = None if rename.target is None else match.expand(rename.target)
            return Placement(target, *rename.part)
    return None


def zero_part(rules: WeightRules, own_name: str) -> tuple[int, int] | None:
    """Which part of an own tensor this naming leaves out because it is zero, as `(part, parts)`."""
    rename = _first(rules.zeros, own_name)
    return rename.part if rename else None


def own_shapes(rules: WeightRules, stored: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Shapes under the architecture's own names, as far as the rules know the stored ones.

    A tensor of several parts is as long as any one part says, so that one look at a fused name is enough.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in stored.items():
        placement = place(rules, name)
        if placement is None or placement.target is None:
            continue
        whole = (shape[0] * placement.parts, *shape[1:]) if shape and placement.parts > 1 else shape
        shapes.setdefault(placement.target, whole)
    return shapes


def _first(renames: Iterable[Rename], name: str) -> Rename | None:
    return next((rename for rename in renames if _compiled(rename.pattern).fullmatch(name)), None)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
