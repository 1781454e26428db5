"""Calls hook implementations one at a time, so that none can harm its neighbours or the engine."""

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pluggy

_log = logging.getLogger("oasr")
_MUTE_AFTER = 3


@dataclass(frozen=True, slots=True)
class HookResult:
    """What one plugin's implementation returned, or the exception it raised."""

    plugin: str
    """`distribution:entry`."""
    value: Any = None
    error: BaseException | None = None


class HookCalls:
    """The hooks of one registry.

    An implementation that raises is logged once and muted after three failures. `KeyboardInterrupt` passes.
    """

    def __init__(self, manager: pluggy.PluginManager):
        self._manager = manager
        self._failures: Counter[tuple[str, str]] = Counter()

    def implements(self, hook: str) -> bool:
        """Whether any plugin implements `hook`. Cheap; ask once, before a loop."""
        return bool(getattr(self._manager.hook, hook).get_hookimpls())

    def call(self, hook: str, **arguments: Any) -> None:
        """Call every implementation of `hook`, in the order of distribution names. Raises nothing of theirs."""
        for each in self._audible(hook):
            self._call_one(hook, each, arguments, None)

    def collect(self, hook: str, item: type) -> list[HookResult]:
        """Call a hook that returns a list of `item`; a value of any other form counts as an error of that plugin."""
        return [self._call_one(hook, each, {}, item) for each in self._audible(hook)]

    def _audible(self, hook: str) -> list[pluggy.HookImpl]:
        implementations = getattr(self._manager.hook, hook).get_hookimpls()
        return [
            each
            for each in sorted(implementations, key=lambda each: each.plugin_name)
            if self._failures[hook, each.plugin_name] < _MUTE_AFTER
        ]

    def _call_one(self, hook: str, each: pluggy.HookImpl, arguments: dict[str, Any], item: type | None) -> HookResult:
        plugin = each.plugin_name
        try:
            value: Any = each.function(*(arguments[name] for name in each.argnames))
            if item and not (isinstance(value, list | tuple) and all(isinstance(member, item) for member in value)):
                raise TypeError(f"returned {value!r}, not a list of {item.__name__}")
            return HookResult(plugin, value)
        except (Exception, SystemExit) as error:
            self._failures[hook, plugin] += 1
            if self._failures[hook, plugin] == 1:
                _log.warning("%s of plugin %s raised %r", hook, plugin, error)
                _log.debug("traceback", exc_info=error)
            elif self._failures[hook, plugin] == _MUTE_AFTER:
                _log.warning("%s of plugin %s raised %d times and is now muted", hook, plugin, _MUTE_AFTER)
            return HookResult(plugin, error=error)
