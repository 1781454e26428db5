"""Returns one component instead of a list."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return ComponentSpec(Kind.DECODER, "lonely", "Sabotaged", "bad_return.decoder:Decoder")
