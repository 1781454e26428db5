"""The data that crosses OASR's public surface: frozen, with units in seconds.

Frames and samples are counted only inside, in names that end in `_frames` or `_samples`.
"""

from dataclasses import dataclass
from typing import Literal

from oasr.errors import OasrError, RequestError

Task = Literal["transcribe", "translate"]

_TASKS = ("transcribe", "translate")
_HOTTEST = 100  # all tokens are about equally likely by then


@dataclass(frozen=True, slots=True)
class Word:
    """A word and when it was said. Times in seconds from the start of the audio."""

    text: str
    """As it stands in the text of its segment, without spaces around it."""
    start: float
    end: float
    confidence: float | None = None
    """Probability from 0 to 1 that the word is right; None when the model does not tell."""
    interpolated: bool = False
    """The times lie between those of its neighbours, as the word itself could not be aligned."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the audio and what was said in it. Times in seconds from the start of the audio."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...] = ()
    avg_logprob: float = 0.0
    """Mean natural log-probability of the tokens, the end token included."""
    compression_ratio: float = 1.0
    """Bytes of the text over its bytes when compressed; high when it repeats itself."""
    no_speech_prob: float | None = None
    """Probability from 0 to 1 that nobody speaks; None when the model does not tell."""
    temperature: float = 0.0
    """The one the tokens were drawn at; 0 took the likeliest."""
    words: tuple[Word, ...] = ()
    """In the order of the text; empty when words were not timed."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """The result of one audio input."""

    text: str
    segments: tuple[Segment, ...]
    language: str | None
    """Code such as `en`: the one asked for or detected; None when the model does not tell."""
    duration: float
    """Seconds of audio read."""
    language_probability: float | None = None
    """How sure the model is of the language, among those allowed; None when it was asked for or is the only one."""
    truncated: bool = False
    """The audio was damaged or cut short; the text covers what could be decoded."""
    notes: tuple[str, ...] = ()
    """What a user should know about this result, such as a trimmed prompt."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one input ended: exactly one of `transcript` and `error` is set."""

    source: str
    """The input by name: a path, or what stands for it, such as `<array>`."""
    transcript: Transcript | None
    error: OasrError | None


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine runs."""

    model: str
    """Path of the checkpoint."""
    architecture: str
    device: str
    dtype: str
    rows: int
    """Most windows decoded at once."""


@dataclass(frozen=True, slots=True)
class StepStats:
    """How busy an engine is after a step, in windows of audio."""

    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """What one request asks for. An option the model cannot honour is refused, never ignored.

    Raises `RequestError` when a value is out of range.
    """

    language: str | None = None
    """Language spoken, such as `en`; None, `""` and `"auto"` detect it."""
    languages: tuple[str, ...] = ()
    """Detect among these only; empty means all the model knows."""
    task: Task = "transcribe"
    """`translate` writes English whatever is spoken."""
    prompt: str | None = None
    """Text the model takes as said just before, for spelling and style."""
    temperature: float = 0.0
    """0 takes the likeliest token; above it, tokens are drawn from the softmax at that temperature."""
    seed: int = 0
    """Seed of the draws; the same seed gives the same text, whatever else runs."""
    max_new_tokens: int | None = None
    """Upper bound for each window of audio; None leaves it to the model."""
    suppress_tokens: tuple[int, ...] | None = None
    """Token ids never to produce; None takes the checkpoint's own list, an empty tuple none."""

    def __post_init__(self) -> None:
        if self.task not in _TASKS:
            raise RequestError(f"task {self.task!r} is unknown; tasks are {' and '.join(_TASKS)}")
        if self.prompt is not None and not _is_text(self.prompt):
            raise RequestError(f"prompt must be text that can be written as UTF-8, not {self.prompt!r}")
        if not _is_number(self.temperature) or not 0 <= self.temperature <= _HOTTEST:
            raise RequestError(f"temperature must be a number from 0 to {_HOTTEST}, not {self.temperature!r}")
        if not _is_whole(self.seed, least=0):
            raise RequestError(f"seed must be a whole number from 0 to 2**63 - 1, not {self.seed!r}")
        if self.max_new_tokens is not None and not _is_whole(self.max_new_tokens, least=1):
            raise RequestError(f"max_new_tokens must be a whole number of at least 1, not {self.max_new_tokens!r}")
        self._check_languages()
        if self.suppress_tokens is not None:
            self._check_suppressed()

    def _check_languages(self) -> None:
        if self.language is not None and not isinstance(self.language, str):
            raise RequestError(f"language must be a code such as 'en', not {self.language!r}")
        if self.language is None or self.language.strip().lower() in ("", "auto"):
            object.__setattr__(self, "language", None)
        if not isinstance(self.languages, list | tuple) or not all(isinstance(code, str) for code in self.languages):
            raise RequestError(f"languages must be a list of codes such as 'en', not {self.languages!r}")
        object.__setattr__(self, "languages", tuple(self.languages))
        if self.language is not None and self.languages:
            raise RequestError("language and languages exclude each other: set one")

    def _check_suppressed(self) -> None:
        tokens = self.suppress_tokens
        if not isinstance(tokens, list | tuple) or not all(_is_whole(token, least=0) for token in tokens):
            raise RequestError(f"suppress_tokens must be a list of token ids, not {tokens!r}")
        object.__setattr__(self, "suppress_tokens", tuple(tokens))


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:  # bytes of a command line that are not UTF-8 arrive as surrogates
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63
