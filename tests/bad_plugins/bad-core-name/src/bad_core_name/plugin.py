"""Claims a name that belongs to core."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.BATCHING, "bucketed", "Sabotaged", "bad_core_name.batching:Policy")]
