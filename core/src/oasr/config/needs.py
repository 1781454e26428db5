"""Whether a component works with an architecture, judged by what both declare."""

from oasr.errors import ConfigError
from oasr.plugin import ComponentSpec


def check_needs(component: ComponentSpec, architecture: ComponentSpec) -> None:
    """Raise `ConfigError` when the architecture lacks a capability that the component needs."""
    missing = sorted(component.needs - architecture.capabilities)
    if missing:
        offered = ", ".join(sorted(architecture.capabilities)) or "nothing"
        raise ConfigError(
            f'{component.kind} "{component.name}" needs {", ".join(missing)}; '
            f'{architecture.kind} "{architecture.name}" offers {offered}'
        )
