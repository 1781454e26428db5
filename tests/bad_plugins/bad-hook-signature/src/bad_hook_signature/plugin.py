"""Asks for an argument that the hook does not have."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components(registry):
    return [ComponentSpec(Kind.DECODER, "signature", "Sabotaged", "bad_hook_signature.decoder:Decoder")]
