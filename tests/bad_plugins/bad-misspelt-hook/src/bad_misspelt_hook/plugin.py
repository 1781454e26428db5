"""Misspells the hook, which pluggy alone would ignore in silence."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_component():
    return [ComponentSpec(Kind.DECODER, "misspelt", "Sabotaged", "bad_misspelt_hook.decoder:Decoder")]
