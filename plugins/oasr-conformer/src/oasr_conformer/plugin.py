"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.ARCHITECTURE,
            "conformer",
            "Conformer (U2, U2++): CTC and attention rescoring, also of live audio",
            "oasr_conformer.model:Conformer",
            config="oasr_conformer.config:ConformerConfig",
            capabilities=frozenset({"ctc-head", "rescoring-head"}),
        )
    ]
