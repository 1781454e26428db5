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
        ),
        ComponentSpec(
            Kind.DECODER,
            "attention-rescoring",
            "CTC prefix beam search, rescored by attention decoders in both directions",
            "oasr_decoder_attention.rescoring:AttentionRescoring",
            config="oasr_decoder_attention.config:RescoringConfig",
            needs=frozenset({"rescoring-head"}),
        ),
    ]
