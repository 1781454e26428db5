"""Points to a class that is no batching policy."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.BATCHING, "wrong-type", "Sabotaged", "bad_target_type.batching:NotAPolicy")]
