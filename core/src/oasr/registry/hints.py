"""Which distribution provides a component that is not installed, and how to say so.

This table is the only place in core that names first-party components. Architectures are also listed under the ids
that checkpoints carry, since whoever opens a checkpoint never typed the component's name.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from oasr.plugin import Kind
from oasr.registry.records import PluginRecord, Status, normalized

PROVIDERS: dict[Kind, dict[str, str]] = {
    Kind.ARCHITECTURE: {
        "whisper": "oasr-whisper",
        "WhisperForConditionalGeneration": "oasr-whisper",
        "WhisperModel": "oasr-whisper",
        "WhisperSpec": "oasr-whisper",
        "zipformer": "oasr-zipformer",
        "conformer": "oasr-conformer",
        "paraformer": "oasr-paraformer",
        "qwen2-audio": "oasr-qwen2audio",
        "Qwen2AudioForConditionalGeneration": "oasr-qwen2audio",
        "fastconformer": "oasr-nemotron",
    },
    Kind.DECODER: {
        "attention": "oasr-decoder-attention",
        "attention-rescoring": "oasr-decoder-attention",
        "ctc-greedy": "oasr-decoder-ctc",
        "ctc-prefix-beam": "oasr-decoder-ctc",
        "transducer": "oasr-decoder-transducer",
        "transducer-greedy": "oasr-decoder-transducer",
        "transducer-beam": "oasr-decoder-transducer",
    },
    Kind.FORMAT: {
        "openai-whisper": "oasr-whisper",
        "huggingface": "oasr-format-huggingface",
        "icefall": "oasr-format-icefall",
        "wenet": "oasr-format-wenet",
        "funasr": "oasr-format-funasr",
        "nemo": "oasr-format-nemo",
        "ctranslate2": "oasr-format-ctranslate2",
    },
    Kind.DETECTOR: {"silero": "oasr-vad-silero"},
    Kind.QUANTIZER: {"w8a8": "oasr-quant-w8a8"},
    Kind.KERNELS: {"triton": "oasr-kernels"},
    Kind.MODEL: {"tiny-en": "oasr-model-tiny-en", "tiny.en": "oasr-model-tiny-en"},
    Kind.SERVER: {"http": "oasr-server", "grpc": "oasr-server-grpc"},
}


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """` Did you mean "beam"?`, or nothing when no candidate is close."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    close = get_close_matches(word.lower(), by_lower, n=1)
    return f' Did you mean "{by_lower[close[0]]}"?' if close else ""


def unknown_component(
    kind: Kind, name: str, usable: Sequence[str], words: Iterable[str], records: Sequence[PluginRecord]
) -> str:
    """The message for a name that nobody provides. `usable` names are listed; `words` include aliases."""
    message = f'No {kind} named "{name}".'
    provider = PROVIDERS.get(kind, {}).get(name.partition("@")[0])
    if provider and "@" not in name:
        message += f" It is provided by {provider}{_how_to_get(provider, records)}"
    else:
        listing = ", ".join(usable) if usable else "none"
        message += f" Installed: {listing}.{did_you_mean(name, words)}"
    failed = [record for record in records if record.status in (Status.BROKEN, Status.INCOMPATIBLE)]
    if failed:
        reasons = "; ".join(f"{record.name}: {record.reason}" for record in failed)
        message += f" {len(failed)} plugin{'s'[: len(failed) > 1]} failed to load ({reasons}). Run: oasr plugins"
    return message


def _how_to_get(provider: str, records: Sequence[PluginRecord]) -> str:
    for record in records:
        if normalized(record.distribution) != provider:
            continue
        if record.status is Status.DISABLED:
            return f", which is installed but disabled: {record.reason}."
        if record.status in (Status.BROKEN, Status.INCOMPATIBLE):
            return f", which is installed but {record.status}. Run: oasr plugins show {record.name}."
        return f", but the installed version {record.version} does not have it: pip install --upgrade {provider}"
    return f": pip install {provider}"
