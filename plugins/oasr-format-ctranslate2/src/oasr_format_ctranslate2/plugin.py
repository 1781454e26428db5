"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.FORMAT,
            "ctranslate2",
            "CTranslate2: model.bin and config.json",
            "oasr_format_ctranslate2.format:CTranslate2Format",
        )
    ]
