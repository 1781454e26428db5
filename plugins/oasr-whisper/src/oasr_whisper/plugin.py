"""What this distribution offers."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            Kind.ARCHITECTURE,
            "whisper",
            "Whisper: transcription and translation of 30-second windows",
            "oasr_whisper.model:Whisper",
            config="oasr_whisper.config:WhisperConfig",
            aliases=("WhisperForConditionalGeneration", "WhisperModel", "WhisperSpec"),
            capabilities=frozenset({"autoregressive-head", "language-detection", "translation"}),
        ),
        ComponentSpec(
            Kind.FORMAT,
            "openai-whisper",
            "openai/whisper's own .pt file",
            "oasr_whisper.openai_format:OpenAIFormat",
        ),
    ]
