"""Layers: nested dicts from different sources, merged before anything is validated.

Every leaf remembers where it came from. A layer that names another component than the layer below drops the options
that were meant for the other one; options without a name go to whichever component is chosen in the end.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from oasr.config.slots import Slot, as_table
from oasr.errors import ComponentError
from oasr.registry import Registry

DEFAULT = "component default"
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

Layer = dict[str, Any]
"""Dicts whose leaves are `Leaf`."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value and the name of its source."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Layering:
    """How layers of one schema combine."""

    slots: Mapping[str, Slot]
    synonyms: Mapping[str, str]
    """Keys that mean another key."""

    def layer(self, written: Mapping[str, Any], origin: str, registry: Registry) -> Layer:
        """What one source wrote, with slots as tables, aliases replaced and top-level None taken as not written."""
        layer = {}
        for key, value in written.items():
            if value is None:
                continue
            meant = self.synonyms.get(key, key)
            if meant in written:
                meant = key  # both: left to validation, which refuses it
            layer[meant] = _leaves(self._as_table(meant, value, registry), origin)
        return layer

    def _as_table(self, key: str, value: Any, registry: Registry) -> Any:
        if key not in self.slots:
            return value
        table = as_table(value)
        if isinstance(table, dict) and isinstance(table.get("name"), str):
            with suppress(ComponentError):  # which validation reports, with everything else
                table["name"] = self.slots[key].canonical(table["name"], registry)
        return table

    def closed(self, layer: Layer) -> Layer:
        """The layer with the default name in each table that has options and no name."""
        named = {
            key: {"name": Leaf(slot.default, DEFAULT)} | layer[key]
            for key, slot in self.slots.items()
            if slot.default and isinstance(layer.get(key), dict) and layer[key]
        }
        return layer | named

    def merge(self, lower: Layer, higher: Layer) -> Layer:
        """Both layers; where they disagree, `higher` wins."""
        kept = {key: value for key, value in lower.items() if not self._is_of_another(key, value, higher.get(key))}
        return _merge(kept, higher)

    def _is_of_another(self, key: str, below: Any, above: Any) -> bool:
        names = [table["name"] for table in (below, above) if isinstance(table, dict) and "name" in table]
        return key in self.slots and len(names) == 2 and _values(names[0]) != _values(names[1])


def values(layer: Layer) -> dict[str, Any]:
    """The layer without its origins."""
    return {key: _values(value) for key, value in layer.items()}


def origin_at(layer: Layer, path: tuple[str | int, ...]) -> str | None:
    """Source of the value at `path`: of the leaf on the way to it, or of the first leaf below it."""
    at: Any = layer
    for part in path:
        if isinstance(at, dict):
            at = at.get(part)
    while isinstance(at, dict):
        at = next(iter(at.values()), None)
    return at.origin if isinstance(at, Leaf) else None


def flattened(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Path and value of every leaf; an empty dict is a leaf."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from flattened(value, (*above, str(key)))
        else:
            yield (*above, str(key)), value


def dotted(path: tuple[str, ...]) -> str:
    """A path as TOML and `--set` write it."""
    return ".".join(part if BARE_KEY.fullmatch(part) else json.dumps(part) for part in path)


def _leaves(value: Any, origin: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _leaves(below, origin) for key, below in value.items()}
    return Leaf(value, origin)


def _values(tree: Any) -> Any:
    return {key: _values(value) for key, value in tree.items()} if isinstance(tree, dict) else tree.value


def _merge(lower: Layer, higher: Layer) -> Layer:
    merged = dict(lower)
    for key, above in higher.items():
        below = merged.get(key)
        merged[key] = _merge(below, above) if isinstance(below, dict) and isinstance(above, dict) else above
    return merged
