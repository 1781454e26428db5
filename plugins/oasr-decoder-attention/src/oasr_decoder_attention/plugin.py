"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.DECODER,
            "attention",
            "Greedy search and sampling over an autoregressive head",
            "oasr_decoder_attention.decoder:AttentionDecoder",
            needs=frozenset({"autoregressive-head"}),
        )
    ]
