"""What a plugin author imports: the whole contract between a distribution and core.

A distribution declares one entry point in the group `oasr.plugins` whose value is a module like this one:

    from oasr.plugin import ComponentSpec, Kind, hookimpl

    OASR_API = 1

    @hookimpl
    def oasr_components():
        return [ComponentSpec(Kind.DECODER, "greedy", "Arg-max search", "oasr_x.decoder:Greedy")]

That module imports only `oasr.plugin` and the standard library: it is imported to list plugins, so it must be
cheap. Targets are strings, imported when the component is first used.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import pluggy

ENTRY_POINT_GROUP = "oasr.plugins"
SUPPORTED_API = frozenset({1})

hookspec = pluggy.HookspecMarker("oasr")
hookimpl = pluggy.HookimplMarker("oasr")


class Kind(StrEnum):
    """The kinds of component core knows how to use."""

    ARCHITECTURE = "architecture"
    FORMAT = "format"
    FRONTEND = "frontend"
    TOKENIZER = "tokenizer"
    DECODER = "decoder"
    LOGITS_RULE = "logits-rule"
    DETECTOR = "detector"
    QUANTIZER = "quantizer"
    KERNELS = "kernels"
    BATCHING = "batching"
    POSTPROCESSOR = "postprocessor"
    SERVER = "server"
    MODEL = "model"


_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_WORDS: dict[str, type[tuple[str, ...]] | type[frozenset[str]]] = {
    "aliases": tuple,
    "capabilities": frozenset,
    "needs": frozenset,
    "requires": tuple,
}


def _check_target(field: str, value: object, owner: str) -> None:
    if not isinstance(value, str) or not _TARGET.fullmatch(value):
        raise ValueError(f'{field} {value!r} of {owner!r} is not of the form "package.module:Name"')


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """One component that a distribution offers. Declaring it imports nothing.

    Raises `ValueError` when a field is malformed; core reports the plugin as broken with that text.
    """

    kind: Kind
    name: str
    """Kebab-case noun, unique within its kind."""
    summary: str
    """One line for tables."""
    target: str
    """`"package.module:Class"`, imported on first use."""
    config: str | None = None
    """`"package.config:Model"`, a `ComponentConfig` importable without torch; None when there is nothing to set."""
    aliases: tuple[str, ...] = ()
    """Other names that mean this component, such as the architecture ids found in checkpoints."""
    capabilities: frozenset[str] = frozenset()
    """Words other components may need: `autoregressive-head`, `translation`, `sampling`, ..."""
    needs: frozenset[str] = frozenset()
    """Capabilities the architecture must offer for this component to work with it."""
    requires: tuple[str, ...] = ()
    """Top-level modules that must be installed; when one is absent the plugin is `unavailable`, not broken."""
    stability: str = "stable"
    """`stable` or `experimental`."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, Kind):
            raise ValueError(f"kind {self.kind!r} is not an oasr.plugin.Kind")
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ValueError(f"component name {self.name!r} is not kebab-case")
        if not isinstance(self.summary, str) or not self.summary.strip():
            raise ValueError(f"component {self.name!r} has no summary")
        _check_target("target", self.target, self.name)
        if self.config is not None:
            _check_target("config", self.config, self.name)
        for field, collection in _WORDS.items():
            value = getattr(self, field)
            # A lone string is a collection of its letters: the usual slip is a forgotten comma in ("word",).
            if isinstance(value, str) or not all(isinstance(word, str) and word for word in value):
                raise ValueError(f"{field} of component {self.name!r} must be a collection of words, not {value!r}")
            object.__setattr__(self, field, collection(value))
        for alias in self.aliases:
            if "@" in alias:
                raise ValueError(f'aliases of component {self.name!r} may not contain "@", as {alias!r} does')
        for module in self.requires:
            if "." in module:  # looking for a submodule would import its parent
                raise ValueError(f"requires {module!r} of component {self.name!r} is not a top-level module")
        if self.stability not in ("stable", "experimental"):
            raise ValueError(f"stability {self.stability!r} of component {self.name!r} is not stable or experimental")


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command added to `oasr`, returned by the hook `oasr_commands`. Its module is imported when it runs.

    Raises `ValueError` when a field is malformed.
    """

    name: str
    """The word after `oasr`."""
    summary: str
    """One line for `oasr --help`."""
    target: str
    """`"package.module:app"`, a `typer.Typer` or a function with typer annotations."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ValueError(f"command name {self.name!r} is not kebab-case")
        _check_target("target", self.target, self.name)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `oasr doctor`, returned by the hook `oasr_doctor`."""

    level: Literal["ok", "warn", "fail"]
    """`fail` makes `oasr doctor` exit 1."""
    subject: str
    """What was looked at."""
    finding: str
    advice: str = ""
    """What to do; required of `warn` and `fail` by good manners."""
