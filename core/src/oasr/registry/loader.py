"""Imports plugins, each by itself: whatever one does, the others load and it becomes a record with a reason."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from importlib import import_module
from inspect import isfunction
from time import perf_counter
from types import ModuleType

import pluggy

from oasr import __version__
from oasr.plugin import SUPPORTED_API, ComponentSpec
from oasr.registry import hooks
from oasr.registry.claims import mark_conflicts
from oasr.registry.hints import did_you_mean
from oasr.registry.records import Entry, PluginRecord, Status, missing_modules
from oasr.registry.sources import Selection, Source

_HOOKS = sorted(name for name in vars(hooks) if name.startswith("oasr_"))


class _IncompatibleError(Exception):
    """The plugin speaks another version of the contract."""


def load_all(
    sources: Iterable[Source], selection: Selection | None = None
) -> tuple[list[PluginRecord], pluggy.PluginManager]:
    """A record for every source, and a manager holding the hooks of those that loaded.

    Raises nothing that a plugin raises, except `KeyboardInterrupt`. pluggy's own entry-point loader is not used
    because it stops at the first plugin that fails.
    """
    manager = pluggy.PluginManager("oasr")
    manager.add_hookspecs(hooks)
    records = []
    for source in sources:
        refusal = selection.refusal(source) if selection else ""
        if refusal:
            records.append(_record_of(source)(status=Status.DISABLED, reason=refusal))
        else:
            records.append(_load(source, manager))
    return mark_conflicts(records), manager


def _load(source: Source, manager: pluggy.PluginManager) -> PluginRecord:
    name = f"{source.distribution}:{source.name}"
    record = _record_of(source)
    started = perf_counter()
    seconds = 0.0
    try:
        if source.problem:
            raise ValueError(source.problem)
        # Standard output belongs to the program, which may be writing transcripts or JSON to it.
        with contextlib.redirect_stdout(sys.stderr):
            module = source.imported or import_module(source.module)
        seconds = perf_counter() - started
        _check_api(source, module)
        _check_hooks(module)
        manager.register(module, name)
        specs = _declared(name, manager)
    # Not only ImportError: a syntax error, OSError from a native library and sys.exit() at import all happen.
    except (Exception, SystemExit) as error:
        if manager.has_plugin(name):
            manager.unregister(name=name)
        incompatible = isinstance(error, _IncompatibleError)
        return record(
            status=Status.INCOMPATIBLE if incompatible else Status.BROKEN,
            reason=str(error) if incompatible else _one_line(error),
            traceback="" if incompatible else "".join(traceback.format_exception(error)),
            import_seconds=seconds or perf_counter() - started,
        )
    absent = "; ".join(
        f'{spec.kind} "{spec.name}" needs the module "{missing}", which is not installed'
        for spec in specs
        for missing in missing_modules(spec)
    )
    status = Status.UNAVAILABLE if absent else Status.OK
    return record(status=status, reason=absent, specs=specs, import_seconds=seconds)


def _record_of(source: Source) -> Callable[..., PluginRecord]:
    return partial(PluginRecord, **{field.name: getattr(source, field.name) for field in fields(Entry)})


def _check_api(source: Source, module: ModuleType) -> None:
    api = getattr(module, "OASR_API", None)
    if api in SUPPORTED_API:
        return
    supported = ", ".join(map(str, sorted(SUPPORTED_API)))
    this, core = f"{source.distribution} {source.version}".strip(), f"oasr-core {__version__}"
    if not isinstance(api, int):
        raise _IncompatibleError(
            f"{this} does not say which plugin API it was written for (OASR_API = {api!r}); {core} supports "
            f"{supported}. Upgrade {source.distribution}, or, if it is yours, set OASR_API = {max(SUPPORTED_API)} "
            f"in {source.module}."
        )
    behind = "oasr-core" if api > max(SUPPORTED_API) else source.distribution
    raise _IncompatibleError(f"{this} was written for plugin API {api}; {core} supports {supported}. Upgrade {behind}.")


def _check_hooks(module: ModuleType) -> None:
    """Raises `TypeError` for a misspelt, unmarked or wrapping hook, and for none at all: pluggy lets those pass."""
    implemented = 0
    for name, function in vars(module).items():
        if not isfunction(function):
            continue
        options = getattr(function, "oasr_impl", None)
        if options is None and not (name.startswith("oasr_") and function.__module__ == module.__name__):
            continue
        hook = (options or {}).get("specname") or name
        if hook not in _HOOKS:
            advice = did_you_mean(hook, _HOOKS) or f" There are: {', '.join(_HOOKS)}."
            raise TypeError(f"there is no hook {hook}.{advice}")
        if options is None:
            raise TypeError(f"{hook} is not marked with @hookimpl")
        if options.get("wrapper") or options.get("hookwrapper"):
            raise TypeError(
                f"{hook} is a wrapper; every implementation is called by itself, so there is nothing to wrap"
            )
        implemented += 1
    if not implemented:
        raise TypeError(f"{module.__name__} implements no hook; implement oasr_components")


def _declared(plugin: str, manager: pluggy.PluginManager) -> tuple[ComponentSpec, ...]:
    """What one registered plugin declares. Raises `TypeError` or `ValueError` when that is malformed."""
    declare = [each.function for each in manager.hook.oasr_components.get_hookimpls() if each.plugin_name == plugin]
    if not declare:
        return ()
    specs = declare[0]()
    if not isinstance(specs, list | tuple):
        raise TypeError(f"oasr_components returned {type(specs).__name__}, not a list of ComponentSpec")
    seen = set()
    for spec in specs:
        if not isinstance(spec, ComponentSpec):
            raise TypeError(f"oasr_components returned a list with {spec!r}, which is not a ComponentSpec")
        for word in {spec.name, *spec.aliases}:
            if (spec.kind, word) in seen:
                raise ValueError(f'{spec.kind} "{word}" is declared twice')
            seen.add((spec.kind, word))
    return tuple(specs)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
