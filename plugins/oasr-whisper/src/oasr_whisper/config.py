"""What makes one Whisper different from another, whoever's checkpoint it came from."""

from pydantic import PositiveInt

from oasr.errors import CheckpointError
from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.format import Checkpoint


class ControlTokens(ComponentConfig):
    """Ids of the tokens that steer the decoder. Ids from `end` on are never text."""

    end: int
    start: int
    translate: int
    transcribe: int
    previous: int
    """Stands before text that was said earlier."""
    no_speech: int
    no_timestamps: int
    timestamp_begin: int
    """The time 0.00; the following ids are 0.02 s apart."""
    languages: dict[str, int]
    """By code, in the order of the ids; empty for English-only checkpoints, whose language tokens mean nothing."""


class WhisperConfig(ComponentConfig):
    """Sizes of the network and the ids its prompts are made of."""

    n_mels: PositiveInt
    audio_context: PositiveInt
    """Encoder frames of one window."""
    width: PositiveInt
    encoder_layers: PositiveInt
    encoder_heads: PositiveInt
    encoder_ffn: PositiveInt
    decoder_layers: PositiveInt
    decoder_heads: PositiveInt
    decoder_ffn: PositiveInt
    text_context: PositiveInt
    """Most tokens of one window, the prompt included."""
    vocabulary_size: PositiveInt
    tokens: ControlTokens
    suppress: tuple[int, ...] = ()
    """Tokens never produced unless a request says otherwise."""
    suppress_first: tuple[int, ...] = ()
    """Tokens not produced right after the prompt."""
    alignment_heads: tuple[tuple[int, int], ...] | None = None
    """(layer, head) of the cross-attention that follows the audio; None when the checkpoint does not say."""
    max_initial_timestamp_index: int = 50
    """The first timestamp is at most this many steps of 0.02 s."""

    pads_with_silence: bool = False
    """Whether an input that fits a window is filled up with silence, as transformers does it and not openai/whisper."""

    @property
    def multilingual(self) -> bool:
        """Whether prompts name a language and a task. English-only checkpoints were trained without both."""
        return bool(self.tokens.languages)


def read_config(checkpoint: Checkpoint) -> WhisperConfig:
    """The configuration of a Hugging Face, CTranslate2 or OpenAI checkpoint.

    What the weights fix comes from their shapes; control ids come from the generation settings, the configuration and
    the tokenizer, and are never assumed. Raises `CheckpointError` for a variant that is not supported, for ids found
    nowhere, and for contradictions, all of them listed.
    """
    # Weight rules need torch, and this module is imported to show configurations without it.
    from oasr_whisper.control_tokens import read_control
    from oasr_whisper.weights import read_sizes

    faults: list[str] = []
    sizes = read_sizes(checkpoint, faults)
    control = read_control(checkpoint, sizes, faults)
    if faults:
        raise CheckpointError(f"{checkpoint.path}: this Whisper checkpoint cannot be used: {'; '.join(faults)}.")
    own_toolkit = {"pads_with_silence": checkpoint.naming == "huggingface"}
    return WhisperConfig.model_validate({**sizes, **control, **own_toolkit})
