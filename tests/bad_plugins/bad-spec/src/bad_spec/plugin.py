"""Declares a component whose name is malformed."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.DECODER, "Not_Kebab", "Sabotaged", "bad_spec.decoder:Decoder")]
