"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.ARCHITECTURE,
            "zipformer",
            "Zipformer: offline and streaming CTC",
            "oasr_zipformer.model:Zipformer",
            config="oasr_zipformer.config:ZipformerConfig",
            capabilities=frozenset({"ctc-head", "streaming"}),
        )
    ]
