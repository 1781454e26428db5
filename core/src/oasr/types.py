"""The data that crosses OASR's public surface: frozen, with units in seconds.

Frames and samples are counted only inside, in names that end in `_frames` or `_samples`.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from oasr.errors import OasrError, RequestError
from oasr.languages import match, unspecified

Task = Literal["transcribe", "translate"]

_TASKS = ("transcribe", "translate")
_HOTTEST = 100  # all tokens are about equally likely by then
_BROADEST = 256  # hypotheses of a window; more find nothing new, and take gigabytes
_MOST_PATIENT = 16
_STRICTEST = 10  # the tenth power of a length decides everything else already
_LONGEST = 24 * 60 * 60  # seconds


@dataclass(frozen=True, slots=True)
class Word:
    """One word as it stands in the text, punctuation included. Times in seconds from the start of the audio."""

    text: str
    start: float
    end: float
    confidence: float | None = None
    """Mean probability of its tokens, from 0 to 1; None when the model does not tell."""
    interpolated: bool = False
    """No stretch of the audio belongs to the word: its times are taken from its neighbours."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the audio and what was said in it. Times in seconds from the start of the audio."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...] = ()
    avg_logprob: float = 0.0
    """Mean natural log-probability of the tokens of its window, the end token included.

    Of greedy text and draws among what the model may say there; of beams, which are compared, among all tokens.
    """
    compression_ratio: float = 1.0
    """Of the text of its window as UTF-8, by zlib: repetition makes it large."""
    no_speech_prob: float | None = None
    """Probability that nobody speaks in its window; None when the model does not tell."""
    temperature: float = 0.0
    """At which its window was read in the end."""
    words: tuple[Word, ...] = ()
    """Empty unless word timestamps were asked for."""
    window_start: float = 0.0
    """When its window begins."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the texts a stretch of audio may say, with the mean natural log-probability of its tokens."""

    text: str
    avg_logprob: float


@dataclass(frozen=True, slots=True)
class NBest:
    """The texts that a window of audio may say, the best first. Times in seconds from the start of the audio."""

    start: float
    end: float
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The result of one audio input."""

    text: str
    segments: tuple[Segment, ...]
    language: str | None
    """Code such as `en`: the one asked for or detected; None when the model does not tell."""
    duration: float
    """Seconds of audio read."""
    task: Task = "transcribe"
    """Whether the text is what was said or its English translation."""
    language_probability: float | None = None
    """How sure the model is of the language, among those allowed; None when it was asked for or is the only one."""
    truncated: bool = False
    """The audio was damaged or cut short; the text covers what could be decoded."""
    notes: tuple[str, ...] = ()
    """What a user should know about this result, such as a trimmed prompt."""
    n_best: tuple[NBest, ...] = ()
    """One for each window with speech, in order; empty unless `DecodingOptions.n_best` asks for more than one."""


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
    """How busy an engine is after a step."""

    waiting: int
    """Windows of audio that wait."""
    running: int
    """Windows of audio that are being decoded."""
    streams: int = 0
    """Live streams."""
    lag: float = 0.0
    """Seconds for which the audio of the live stream that waits longest could have been read, and was not."""


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """What one request asks for. An option the model cannot honour is refused, never ignored.

    Raises `RequestError` when a value is out of range.
    """

    language: str | None = None
    """Language spoken: a code, tag or name such as `en`, `en-US` or `English`; None, `""` and `"auto"` detect it."""
    languages: tuple[str, ...] = ()
    """Detect among these only, each as in `language`; empty means all the model knows."""
    task: Task = "transcribe"
    """`translate` writes English whatever is spoken."""
    prompt: str | None = None
    """Text the model takes as said just before the audio begins, for spelling and style.

    It stands before the first window with speech, and longer only as part of what `condition_on_previous` keeps.
    """
    carry_prompt: bool = False
    """Let `prompt` stand before every window."""
    prefix: str | None = None
    """Text that the first window with speech begins with; the model goes on from there."""
    hotwords: tuple[str, ...] = ()
    """Words and phrases to expect in every window, the most important first."""
    temperature: float = 0.0
    """0 takes the likeliest token; above it, tokens are drawn from the softmax at that temperature."""
    seed: int = 0
    """Seed of the draws; the same seed gives the same text, whatever else runs."""
    max_new_tokens: int | None = None
    """Upper bound for each window of audio; None leaves it to the model."""
    timestamps: bool | None = None
    """Whether the model says when segments begin and end; None lets it where it can."""
    word_timestamps: bool = False
    """Say when each word begins and ends, and how sure the model is of it."""
    condition_on_previous: bool = False
    """Read each window with the text before it in mind: steadier spelling, but errors spread."""
    fallback: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)
    """Temperatures at which a window is read again whose text is repetitive or improbable; empty to accept it."""
    most_compression: float = 2.4
    """A window whose text has a higher compression ratio is repetitive."""
    least_logprob: float = -1.0
    """A window whose mean log-probability is lower is improbable."""
    most_silence: float = 0.6
    """A window that is improbable and more likely than this without speech is silence."""
    beam: int = 1
    """Hypotheses followed at temperature 0; 1 takes the likeliest token."""
    patience: float = 1.0
    """A beam search ends once `beam * patience` hypotheses have ended (Kasai et al., 2022)."""
    length_penalty: float | None = None
    """Alpha of Wu et al., 2016, by which beams and draws of different lengths are compared; None: mean probability."""
    best_of: int = 1
    """Texts drawn of each window above temperature 0, of which the best is taken."""
    n_best: int = 1
    """Hypotheses to return for each window, in `Transcript.n_best`; 1 returns the text alone."""
    suppress_tokens: tuple[int, ...] | None = None
    """Token ids never to produce; None takes the checkpoint's own list, an empty tuple none."""

    def __post_init__(self) -> None:
        if self.task not in _TASKS:
            raise RequestError(f"task {self.task!r} is unknown; tasks are {' and '.join(_TASKS)}")
        self._check_prompts()
        if not _is_number(self.temperature) or not 0 <= self.temperature <= _HOTTEST:
            raise RequestError(f"temperature must be a number from 0 to {_HOTTEST}, not {self.temperature!r}")
        if not _is_whole(self.seed, least=0):
            raise RequestError(f"seed must be a whole number from 0 to 2**63 - 1, not {self.seed!r}")
        if self.max_new_tokens is not None and not _is_whole(self.max_new_tokens, least=1):
            raise RequestError(f"max_new_tokens must be a whole number of at least 1, not {self.max_new_tokens!r}")
        self._check_search()
        for field in ("most_compression", "least_logprob", "most_silence"):
            if not _is_number(getattr(self, field)):
                raise RequestError(f"{field} must be a number, not {getattr(self, field)!r}")
        for field in ("timestamps", "word_timestamps", "condition_on_previous", "carry_prompt"):
            if getattr(self, field) not in (True, False, None):
                raise RequestError(f"{field} must be True or False, not {getattr(self, field)!r}")
        self._check_fallback()
        self._check_languages()
        if self.suppress_tokens is not None:
            self._check_suppressed()

    def in_codes_of(self, offered: Collection[str]) -> "DecodingOptions":
        """The same request with languages in the codes that a model offers; as it is when the model offers none.

        Raises `RequestError` for a language that is not among them.
        """
        if not offered:
            return self
        language = None if self.language is None else match(self.language, offered)
        codes = dict.fromkeys(match(language, offered) for language in self.languages)
        return replace(self, language=language, languages=tuple(codes))

    def _check_prompts(self) -> None:
        for field in ("prompt", "prefix"):
            text = getattr(self, field)
            if text is not None and not _is_text(text):
                raise RequestError(f"{field} must be text that can be written as UTF-8, not {text!r}")
        words = self.hotwords
        if not isinstance(words, list | tuple) or not all(_is_text(word) and word.strip() for word in words):
            raise RequestError(f"hotwords must be a list of words or phrases, none of them empty, not {words!r}")
        object.__setattr__(self, "hotwords", tuple(words))
        if self.carry_prompt and not (self.prompt or "").strip():
            raise RequestError("carry_prompt needs a prompt to carry")

    def _check_search(self) -> None:
        for field in ("beam", "best_of", "n_best"):
            if not _is_whole(getattr(self, field), least=1) or getattr(self, field) > _BROADEST:
                raise RequestError(
                    f"{field} must be a whole number from 1 to {_BROADEST}, not {getattr(self, field)!r}"
                )
        if not _is_number(self.patience) or not 0 < self.patience <= _MOST_PATIENT:
            raise RequestError(f"patience must be a number above 0, {_MOST_PATIENT} at most, not {self.patience!r}")
        penalty = self.length_penalty
        if penalty is not None and (not _is_number(penalty) or not -_STRICTEST <= penalty <= _STRICTEST):
            raise RequestError(f"length_penalty must be a number from -{_STRICTEST} to {_STRICTEST}, not {penalty!r}")
        if self.n_best > max(self.beam, self.best_of):
            raise RequestError(f"n_best={self.n_best} needs as many hypotheses: raise beam or best_of")
        if self.best_of > 1 and self.temperature == 0 and not self.fallback:
            raise RequestError("best_of chooses among draws: set temperature above 0 or a fallback")

    def _check_fallback(self) -> None:
        steps = self.fallback
        if not isinstance(steps, list | tuple) or not all(_is_number(step) and 0 <= step <= _HOTTEST for step in steps):
            raise RequestError(f"fallback must be a list of temperatures from 0 to {_HOTTEST}, not {steps!r}")
        object.__setattr__(self, "fallback", tuple(sorted(steps)))

    def _check_languages(self) -> None:
        if self.language is not None and not isinstance(self.language, str):
            raise RequestError(f"language must be a code such as 'en', not {self.language!r}")
        if unspecified(self.language):
            object.__setattr__(self, "language", None)
        if not isinstance(self.languages, list | tuple) or not all(isinstance(code, str) for code in self.languages):
            raise RequestError(f"languages must be a list of codes such as 'en', not {self.languages!r}")
        named = tuple(language for language in self.languages if not unspecified(language))
        if named and len(named) < len(self.languages):
            raise RequestError(f"languages must name what to choose from, or nothing at all, not {self.languages!r}")
        object.__setattr__(self, "languages", named)
        if self.language is not None and self.languages:
            raise RequestError("language and languages exclude each other: set one")

    def _check_suppressed(self) -> None:
        tokens = self.suppress_tokens
        if not isinstance(tokens, list | tuple) or not all(_is_whole(token, least=0) for token in tokens):
            raise RequestError(f"suppress_tokens must be a list of token ids, not {tokens!r}")
        object.__setattr__(self, "suppress_tokens", tuple(tokens))


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How a live stream is read. Times in seconds; `RequestError` when one is out of range."""

    chunk: float | None = None
    """Audio read at once: less is sooner, more is better. None takes the checkpoint's own, see `ModelFacts`."""
    left_context: float | None = None
    """How far the encoder looks back, `math.inf` for all the segment; None takes the checkpoint's own."""
    endpoint_silence: float = 0.8
    """A segment ends once so much silence has followed its last token; `math.inf` never ends it so."""
    longest_segment: float = 20.0
    """A segment ends when it has grown so long, wherever it is; `math.inf` for no limit."""

    def __post_init__(self) -> None:
        for field in ("chunk", "left_context", "endpoint_silence", "longest_segment"):
            value = getattr(self, field)
            if value is None and field in ("chunk", "left_context"):
                continue
            if not _is_number(value) or not value > 0:
                raise RequestError(f"{field} must be a number of seconds above 0, not {value!r}")
            if value > _LONGEST and (field == "chunk" or value != math.inf):
                raise RequestError(f"{field} must be {_LONGEST} seconds at most, not {value!r}")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """Something new in a live stream."""

    delta: str
    """What the text of the stream has grown by and will keep; all deltas of a stream join to its final text."""
    text: str
    """The segment that is being spoken as it is heard now; what goes beyond the deltas may change."""
    segment: Segment | None
    """The segment, once it is over."""


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:  # bytes of a command line that are not UTF-8 arrive as surrogates
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63
