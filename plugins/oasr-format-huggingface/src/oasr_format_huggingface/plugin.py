"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.FORMAT,
            "huggingface",
            "Hugging Face: config.json and safetensors",
            "oasr_format_huggingface.format:HuggingFaceFormat",
        )
    ]
