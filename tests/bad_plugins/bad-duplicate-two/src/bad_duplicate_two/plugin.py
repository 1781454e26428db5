"""Claims the name that bad-duplicate-one claims too, beside one of its own."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [
        ComponentSpec(Kind.DECODER, "disputed", "Sabotaged", "bad_duplicate_two.decoder:Decoder"),
        ComponentSpec(Kind.DECODER, "undisputed-two", "Works", "bad_duplicate_two.decoder:Decoder"),
    ]
