"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            kind=Kind.ARCHITECTURE,
            name="acme-running",
            summary="A causal convolution and a CTC head, for live audio",
            target="acme_oasr_running.model:Running",
            config="acme_oasr_running.config:RunningConfig",
            capabilities=frozenset({"ctc-head"}),
        )
    ]
