"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            kind=Kind.DECODER,
            name="no-repeat",
            summary="Greedy search that never repeats an n-gram of tokens",
            target="acme_oasr_decoder_norepeat.decoder:NoRepeatDecoder",
            config="acme_oasr_decoder_norepeat.config:NoRepeatConfig",
            needs=frozenset({"autoregressive-head"}),
        )
    ]
