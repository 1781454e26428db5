"""Points to a module that ends the process."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.BATCHING, "exiting-target", "Sabotaged", "bad_target_exit.batching:Policy")]
