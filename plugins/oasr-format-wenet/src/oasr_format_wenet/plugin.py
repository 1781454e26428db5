"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.FORMAT,
            "wenet",
            "WeNet: train.yaml, final.pt or training checkpoints, units.txt",
            "oasr_format_wenet.format:WeNetFormat",
            requires=("yaml",),
        )
    ]
