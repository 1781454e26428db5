"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.ARCHITECTURE,
            "conformer",
            "Conformer (U2, U2++): whole recordings and live audio, CTC with attention rescoring",
            "oasr_conformer.model:Conformer",
            config="oasr_conformer.config:ConformerConfig",
            capabilities=frozenset({"ctc-head", "rescoring-head"}),
        )
    ]
