"""Points to a class that does not exist."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.BATCHING, "absent-target", "Sabotaged", "bad_absent_target.batching:Absent")]
