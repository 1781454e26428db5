"""A registry that does not see what happens to be installed."""

from types import ModuleType

from oasr.registry import Registry
from oasr.testing.toys import plugin as toys


def sealed_registry(*plugins: ModuleType) -> Registry:
    """Core's built-ins and these plugin modules; the toys when none is given."""
    return Registry.from_modules(*(plugins or (toys,)))
