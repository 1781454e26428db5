"""The typed lookup: from a kind and a name to the class that a plugin offers under it."""

import logging
import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from inspect import isabstract
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from oasr.errors import AmbiguousComponentError, ComponentLoadError, OasrError, UnknownComponentError
from oasr.plugin import ComponentSpec, Kind
from oasr.registry import claims, sources
from oasr.registry.hints import unknown_component
from oasr.registry.loader import load_all
from oasr.registry.observers import HookCalls
from oasr.registry.records import PluginRecord, missing_modules, normalized

if TYPE_CHECKING:
    from oasr.interfaces.component import ComponentConfig

_log = logging.getLogger("oasr")
_discovery = RLock()

# Strings, because most interfaces import torch.
_INTERFACES = {
    Kind.ARCHITECTURE: "oasr.interfaces.architecture:Architecture",
    Kind.FORMAT: "oasr.interfaces.format:CheckpointFormat",
    Kind.FRONTEND: "oasr.interfaces.frontend:Frontend",
    Kind.TOKENIZER: "oasr.interfaces.tokenizer:Tokenizer",
    Kind.DECODER: "oasr.interfaces.decoder:Decoder",
    Kind.DETECTOR: "oasr.interfaces.detector:SpeechDetector",
    Kind.BATCHING: "oasr.interfaces.batching:BatchingPolicy",
    Kind.MODEL: "oasr.interfaces.model:PackagedModel",
}
_CONFIG = "oasr.interfaces.component:ComponentConfig"


class Registry:
    """The plugins of one environment and the components they offer."""

    def __init__(self, found: Iterable[sources.Source], selection: sources.Selection | None = None):
        found = list(found)
        records, manager = load_all(found, selection)
        self.records: tuple[PluginRecord, ...] = tuple(records)
        self.warnings: tuple[str, ...] = tuple(selection.unmatched(found)) if selection else ()
        """Words in OASR_PLUGINS and OASR_PLUGINS_DISABLE that match nothing."""
        self.hooks = HookCalls(manager)
        self._claims = claims.collect(self.records)

    @classmethod
    def discover(cls, environ: Mapping[str, str] = os.environ) -> "Registry":
        """Load what is installed, as far as OASR_PLUGINS and OASR_PLUGINS_DISABLE allow."""
        return cls(sources.installed(), sources.Selection(environ))

    @classmethod
    def from_modules(cls, *modules: ModuleType, builtins: bool = True) -> "Registry":
        """A registry of these plugin modules and core's built-ins, which does not see the machine's plugins."""
        own = [sources.builtin()] if builtins else []
        return cls([*own, *map(sources.of_module, modules)])

    def names(self, kind: Kind) -> list[str]:
        """What may be written for this kind today: bare names, and `name@distribution` where a name is disputed."""
        usable = (self.usable_name(spec, record) for spec, record in self.specs(kind))
        return sorted(name for name in usable if name)

    def usable_name(self, spec: ComponentSpec, record: PluginRecord) -> str | None:
        """What to write for this component; None when a module that it requires is not installed."""
        if missing_modules(spec):
            return None
        is_undisputed = claims.winners(self._claims[spec.kind, spec.name]) == [(spec, record)]
        return spec.name if is_undisputed else f"{spec.name}@{record.distribution}"

    def specs(self, kind: Kind) -> list[tuple[ComponentSpec, PluginRecord]]:
        """Every declared component of a kind with its plugin, usable or not, by name and distribution."""
        declared = [(spec, record) for record in self.records for spec in record.specs if spec.kind == kind]
        return sorted(declared, key=lambda claim: (claim[0].name, claim[1].distribution))

    def spec(self, kind: Kind, name: str) -> ComponentSpec:
        """What was declared under a name, an alias or `name@distribution`.

        Raises `UnknownComponentError`, `AmbiguousComponentError` when distributions dispute the bare name, and
        `ComponentLoadError` when a module that the component requires is not installed.
        """
        return self._claim(kind, name)[0]

    def load(self, kind: Kind, name: str) -> type[Any]:
        """Import the class a name means.

        Raises what `spec` raises, and `ComponentLoadError` when the target cannot be imported, is not a subclass of
        the kind's interface, or leaves abstract methods open.
        """
        spec, record = self._claim(kind, name)
        who = _description(spec, record)
        if spec.kind not in _INTERFACES:
            raise ComponentLoadError(
                f"{who} cannot be used: this version of oasr-core has no use for {kind} components."
            )
        interface = _import_target(_INTERFACES[spec.kind])
        target = import_of_plugin(spec.target, who)
        if not isinstance(target, type) or not issubclass(target, interface):
            raise ComponentLoadError(
                f"{who} cannot be used: {spec.target} is not a subclass of {interface.__module__}.{interface.__name__}."
            )
        if isabstract(target):
            missing = ", ".join(sorted(getattr(target, "__abstractmethods__", ())))
            raise ComponentLoadError(f"{who} cannot be used: {spec.target} does not implement {missing}.")
        return target

    def config_model(self, kind: Kind, name: str) -> "type[ComponentConfig] | None":
        """Import the model of a component's options; None when it has none.

        Raises what `spec` raises, and `ComponentLoadError` when the model cannot be imported or is of another type.
        """
        spec, record = self._claim(kind, name)
        if spec.config is None:
            return None
        who = _description(spec, record)
        parent = _import_target(_CONFIG)
        model = import_of_plugin(spec.config, who)
        if not isinstance(model, type) or not issubclass(model, parent):
            raise ComponentLoadError(f"{who} cannot be used: {spec.config} is not a subclass of ComponentConfig.")
        return model

    def create(self, kind: Kind, name: str, options: Mapping[str, Any]) -> Any:
        """The component a name means, made with these options; for the kinds that are made from a configuration.

        Raises what `load` and `config_model` raise, and pydantic's `ValidationError` for the options.
        """
        model = self.config_model(kind, name)
        return self.construct(kind, name, model.model_validate(dict(options)) if model else None)

    def construct(self, kind: Kind, name: str, argument: Any) -> Any:
        """The component a name means, made from what its kind is made from: options, or files for a tokenizer.

        Raises what `load` raises, and `ComponentLoadError` naming the component whose constructor fails.
        """
        target = self.load(kind, name)
        try:
            return target(argument)
        except OasrError:
            raise
        except Exception as error:
            who = _description(*self._claim(kind, name))
            raise ComponentLoadError(f"{who} could not be made: {type(error).__name__}: {error}") from error

    def _claim(self, kind: Kind, name: str) -> claims.Claim:
        word, at, distribution = name.partition("@")
        found = self._claims.get((kind, word), [])
        if at:
            found = [claim for claim in found if normalized(claim[1].distribution) == normalized(distribution)]
        else:
            found = claims.winners(found)
        if not found:
            words = {word for claimed, word in self._claims if claimed == kind}
            raise UnknownComponentError(unknown_component(kind, name, self.names(kind), words, self.records))
        if len(found) > 1:
            providers = [record.distribution for _, record in found]
            forms = " or ".join(f"{word}@{provider}" for provider in providers)
            raise AmbiguousComponentError(
                f'{kind.capitalize()} "{word}" is provided by {" and ".join(providers)}. Write {forms}.'
            )
        spec, record = found[0]
        if missing := missing_modules(spec):
            raise ComponentLoadError(
                f"{_description(spec, record)} cannot be used: it needs {', '.join(missing)}, which is not installed. "
                f"Try: pip install {' '.join(missing)}"
            )
        return spec, record


def default_registry() -> Registry:
    """The registry of this process, discovered on the first call, which also warns of plugins that need repair."""
    with _discovery:
        return _discover_once()


@cache
def _discover_once() -> Registry:
    registry = Registry.discover()
    faults = [record for record in registry.records if record.status.is_fault]
    if faults:
        listing = "; ".join(f"{record.name} is {record.status}: {record.reason}" for record in faults)
        # One line on stderr when the application has not configured logging, and its own affair when it has.
        _log.warning("%s. Run: oasr plugins", listing)
    return registry


def _description(spec: ComponentSpec, record: PluginRecord) -> str:
    return f'{spec.kind.capitalize()} "{spec.name}" of {record.distribution}'


def import_of_plugin(target: str, who: str) -> Any:
    """What `package.module:name` means. Raises `ComponentLoadError` in the name of `who` when it cannot be had."""
    try:
        return _import_target(target)
    except (Exception, SystemExit) as error:
        raise ComponentLoadError(
            f"{who} cannot be loaded: importing {target} raised {type(error).__name__}: {error}"
        ) from error


def _import_target(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
