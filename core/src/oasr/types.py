"""The data that crosses OASR's public surface: frozen, with units in seconds.

Frames and samples are counted only inside, in names that end in `_frames` or `_samples`.
"""

import math
from dataclasses import dataclass
from typing import Literal

from oasr.errors import OasrError, RequestError

Task = Literal["transcribe", "translate"]

_TASKS = ("transcribe", "translate")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the audio and what was said in it. Times in seconds from the start of the audio."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...] = ()
    avg_logprob: float = 0.0
    """Mean natural log-probability of the tokens, the end token included."""


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
        if self.language is not None and not isinstance(self.language, str):
            raise RequestError(f"language must be a code such as 'en', not {self.language!r}")
        if self.language is None or self.language.strip().lower() in ("", "auto"):
            object.__setattr__(self, "language", None)
        for field in ("languages", "suppress_tokens"):
            value = getattr(self, field)
            if isinstance(value, str):
                raise RequestError(f"{field} must be a list, not the text {value!r}")
            if value is not None:
                object.__setattr__(self, field, tuple(value))
        if self.language is not None and self.languages:
            raise RequestError("language and languages exclude each other: set one")
        if self.prompt is not None and not isinstance(self.prompt, str):
            raise RequestError(f"prompt must be text, not {type(self.prompt).__name__}")
        if not _is_number(self.temperature) or not math.isfinite(self.temperature) or self.temperature < 0:
            raise RequestError(f"temperature must be a number of at least 0, not {self.temperature!r}")
        for field, least in (("seed", 0), ("max_new_tokens", 1)):
            value = getattr(self, field)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise RequestError(f"{field} must be a whole number of at least {least}, not {value!r}")
        if any(not isinstance(token, int) or isinstance(token, bool) for token in self.suppress_tokens or ()):
            raise RequestError(f"suppress_tokens must be token ids, not {self.suppress_tokens!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
