"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.FORMAT,
            "icefall",
            "icefall: exp/*.pt, and data/lang_* with tokens.txt or bpe.model",
            "oasr_format_icefall.format:IcefallFormat",
        )
    ]
