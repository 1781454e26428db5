"""Prints at import, which must not end up in JSON."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1

print("hello from a chatty plugin")


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.DECODER, "chatty", "Sabotaged", "bad_prints.decoder:Decoder")]
