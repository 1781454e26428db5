"""Claims the name that bad-duplicate-two claims too, beside one of its own."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [
        ComponentSpec(Kind.DECODER, "disputed", "Sabotaged", "bad_duplicate_one.decoder:Decoder"),
        ComponentSpec(Kind.DECODER, "undisputed-one", "Works", "bad_duplicate_one.decoder:Decoder"),
    ]
