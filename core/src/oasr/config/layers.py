"""Layers: what different sources wrote, merged before anything is validated.

Every value remembers where it came from. A layer that names another component than the layer below drops the options
that were meant for the other one; options without a name go to whichever component is chosen in the end.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from oasr.config.slots import Slot, as_table
from oasr.errors import ComponentError, ConfigError
from oasr.registry import Registry

DEFAULT = "component default"
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DEEPEST = 32

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value and the name of its source."""

    value: Any
    origin: str


Layer = dict[Path, Leaf]
"""Values by path."""


@dataclass(frozen=True, slots=True)
class Layering:
    """How layers of one schema combine."""

    slots: Mapping[str, Slot]
    synonyms: Mapping[str, str]
    """Keys that mean another key."""

    def layer(self, written: Mapping[str, Any], origin: str, registry: Registry) -> Layer:
        """What one source wrote, with slots as tables, aliases replaced and top-level None taken as not written."""
        layer: Layer = {}
        for key, value in written.items():
            if value is None:
                continue
            meant = self.synonyms.get(key, key)
            if meant in written:
                meant = key  # both: left to validation, which refuses it
            table = self._as_table(meant, value, registry)
            layer |= {path: Leaf(each, origin) for path, each in flattened({meant: table})}
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
        tables = {path[0] for path in layer if len(path) > 1}
        names = {(key, "name"): slot.default for key, slot in self.slots.items() if slot.default and key in tables}
        return {path: Leaf(name, DEFAULT) for path, name in names.items()} | layer

    def merge(self, lower: Layer, higher: Layer) -> Layer:
        """Both layers; where they disagree, `higher` wins."""
        higher = {path: leaf for path, leaf in higher.items() if leaf.value != {} or not _covered(path, lower)}
        kept = {path: leaf for path, leaf in lower.items() if not self._is_of_another(path[0], lower, higher)}
        return {path: leaf for path, leaf in kept.items() if not _covered(path, higher)} | higher

    def _is_of_another(self, key: str, lower: Layer, higher: Layer) -> bool:
        names = [layer[key, "name"].value for layer in (lower, higher) if (key, "name") in layer]
        return key in self.slots and len(names) == 2 and names[0] != names[1]


def _covered(path: Path, layer: Layer) -> bool:
    """Whether a layer has a value at, above or below the path."""
    return any(other[: len(path)] == path[: len(other)] for other in layer)


def values(layer: Layer) -> dict[str, Any]:
    """The layer as nested dicts, without its origins."""
    tree: dict[str, Any] = {}
    for path, leaf in layer.items():
        at = tree
        for part in path[:-1]:
            at = at.setdefault(part, {})
        at[path[-1]] = leaf.value
    return tree


def origin_at(layer: Layer, path: tuple[str | int, ...]) -> str | None:
    """Source of the value at `path`: of the leaf on the way to it, or of the first leaf below it."""
    return next((leaf.origin for at, leaf in layer.items() if at[: len(path)] == path[: len(at)]), None)


def flattened(tree: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Path and value of every leaf; an empty dict is a leaf. Raises `ConfigError` for a tree deeper than any schema."""
    if len(above) > _DEEPEST:
        raise ConfigError(f"{above[0]}: tables are nested more than {_DEEPEST} deep")
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from flattened(value, (*above, str(key)))
        else:
            yield (*above, str(key)), value


def dotted(path: Path) -> str:
    """A path as TOML and `--set` write it."""
    return ".".join(part if BARE_KEY.fullmatch(part) else json.dumps(part) for part in path)
