"""What is known about one plugin after the attempt to load it."""

from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec

from oasr.plugin import ComponentSpec

CORE = "oasr-core"


class Status(StrEnum):
    """How loading a plugin ended."""

    OK = "ok"
    DISABLED = "disabled"
    """Switched off by OASR_PLUGINS or OASR_PLUGINS_DISABLE; its code was not run."""
    INCOMPATIBLE = "incompatible"
    """Written for a plugin API this core does not speak."""
    CONFLICT = "conflict"
    """Another distribution claims one of its names; the disputed component needs `name@distribution`."""
    UNAVAILABLE = "unavailable"
    """A module that one of its components requires is not installed."""
    BROKEN = "broken"
    """It raised, or declared something malformed."""

    @property
    def is_fault(self) -> bool:
        """Whether somebody has to repair something, as opposed to having chosen it."""
        return self in (Status.BROKEN, Status.CONFLICT, Status.INCOMPATIBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry point of the group `oasr.plugins`."""

    name: str
    """Entry-point name."""
    distribution: str
    version: str
    module: str
    """The entry point's value."""
    location: str = ""
    """The folder its metadata was found in; a phantom entry is recognised by it."""
    note: str = ""
    """Something odd that does no harm, such as a second copy that was ignored."""

    def answers_to(self, word: str) -> bool:
        """Whether `word` means this plugin: users may write its entry name or its distribution."""
        return word == self.name or normalized(word) == normalized(self.distribution)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRecord(Entry):
    """What became of it."""

    status: Status
    reason: str = ""
    """One line; empty only when the status is ok."""
    traceback: str = ""
    """Of the exception that broke it."""
    import_seconds: float = 0.0
    specs: tuple[ComponentSpec, ...] = ()


def normalized(distribution: str) -> str:
    """Distribution names compare without regard to case and separators (PEP 503)."""
    return distribution.lower().replace("_", "-").replace(".", "-")


def missing_modules(spec: ComponentSpec) -> list[str]:
    """The required modules of a component that are not installed."""
    return [module for module in spec.requires if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # already imported, but by a loader that left no __spec__
        return True
