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

    def call(self, hook: str, **arguments: Any) -> list[HookResult]:
        """Call every implementation of `hook`, in the order of distribution names. Raises nothing of theirs."""
        implementations = getattr(self._manager.hook, hook).get_hookimpls()
        return [
            self._call_one(hook, implementation, arguments)
            for implementation in sorted(implementations, key=lambda each: each.plugin_name)
            if self._failures[hook, implementation.plugin_name] < _MUTE_AFTER
        ]

    def _call_one(self, hook: str, implementation: Any, arguments: dict[str, Any]) -> HookResult:
        plugin = implementation.plugin_name
        try:
            return HookResult(plugin, implementation.function(*(arguments[name] for name in implementation.argnames)))
        except (Exception, SystemExit) as error:
            self._failures[hook, plugin] += 1
            if self._failures[hook, plugin] == 1:
                _log.warning("%s of plugin %s raised %r", hook, plugin, error)
                _log.debug("traceback", exc_info=error)
            elif self._failures[hook, plugin] == _MUTE_AFTER:
                _log.warning("%s of plugin %s raised %d times and is now muted", hook, plugin, _MUTE_AFTER)
            return HookResult(plugin, error=error)
