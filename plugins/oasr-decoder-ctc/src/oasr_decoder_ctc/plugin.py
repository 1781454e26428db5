"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.DECODER,
            "ctc-greedy",
            "The likeliest token of each frame, over a CTC head",
            "oasr_decoder_ctc.greedy:CTCGreedy",
            needs=frozenset({"ctc-head"}),
        ),
        ComponentSpec(
            Kind.DECODER,
            "ctc-prefix-beam",
            "Prefix beam search over a CTC head, with hotwords and an n-gram model",
            "oasr_decoder_ctc.prefix_beam:CTCPrefixBeam",
            config="oasr_decoder_ctc.config:PrefixBeamConfig",
            needs=frozenset({"ctc-head"}),
        ),
    ]
