"""Points to a module that raises."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.BATCHING, "raising-target", "Sabotaged", "bad_target_import.batching:Policy")]
