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
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"component name {self.name!r} is not kebab-case")
        if not self.summary.strip():
            raise ValueError(f"component {self.name!r} has no summary")
        for field in ("target", "config"):
            value = getattr(self, field)
            if value is not None and not _TARGET.fullmatch(value):
                raise ValueError(f'{field} {value!r} of component {self.name!r} is not of the form "package.module:Name"')
        for field in ("capabilities", "needs"):
            object.__setattr__(self, field, frozenset(getattr(self, field)))
        if self.stability not in ("stable", "experimental"):
            raise ValueError(f"stability {self.stability!r} of component {self.name!r} is not stable or experimental")
