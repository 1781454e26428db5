"""One audio input on its way through the engine: read window by window, and joined."""

import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import count, starmap
from operator import attrgetter
from os import PathLike

import torch

from oasr.audio import Audio, RawAudio
from oasr.detectors.loudness import loudness
from oasr.detectors.pieces import pieces
from oasr.engine.runner import Runner
from oasr.engine.window import Decoded, Window
from oasr.interfaces.architecture import ModelFacts
from oasr.interfaces.detector import SpeechDetector
from oasr.interfaces.heads import WindowReading
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import Alternative, DecodingOptions, NBest, Outcome, Segment, Transcript

_SHORTEST_SECONDS = 0.1  # of a rest of audio after the last window; models invent words in less
_HISS = 10 ** (-50 / 10)  # as power; full scale is 1
_SENTENCE_SECONDS = 3.0  # shorter rests are mostly breath and noise
_ids = count(1)
_keys = count(1)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the audio that is read from its start to its end, in samples."""

    start: int
    end: int


@dataclass(eq=False, slots=True)
class Request:
    """What has been read of one input, and what is to be read next.

    The audio is read in pieces, independently of each other. In each, the next window starts where the last complete
    segment of the one before ended.
    """

    id: int
    audio: Audio
    options: DecodingOptions
    facts: ModelFacts
    frames: Callable[[int], int]
    waiter: "Future[Outcome] | None"
    """Who gets the outcome; None leaves it to `step`."""
    language: str | None
    language_probability: float | None = None
    notes: list[str] = field(default_factory=list)
    waiting: list[Window] = field(default_factory=list)
    """Not given to the scheduler yet."""
    open: set[Window] = field(default_factory=set)
    """Given to the scheduler, and not read yet."""
    segments: list[tuple[int, str, Segment]] = field(default_factory=list)
    """Start of the window in samples, text as decoded, and segment."""
    n_best: list[NBest] = field(default_factory=list)

    @property
    def source(self) -> str:
        return self.audio.source

    @property
    def complete(self) -> bool:
        return not self.waiting and not self.open

    def take_ready(self, language_known: bool) -> list[Window]:
        """The windows that can be scheduled now: all of them once the language is known, before that only the first."""
        limit = len(self.waiting) if language_known else (0 if self.open else 1)
        ready, self.waiting = self.waiting[:limit], self.waiting[limit:]
        for window in ready:
            window.language = window.language or self.language
        self.open.update(ready)
        return ready

    def named(self, window: Window) -> None:
        """The model has named the language of the input in its first window."""
        if self.language is None and window.language is not None:
            self.language, self.language_probability = window.language, window.language_probability

    def accept(
        self,
        window: Window,
        decoded: Decoded,
        tokenizer: Tokenizer,
        runner: Runner,
    ) -> None:
        """Take what was read in a window, or have it read again at the next temperature; then go on behind it."""
        self.open.remove(window)
        self.notes += [note for note in decoded.notes if note not in self.notes]
        text = tokenizer.decode([token for token in decoded.tokens if token < self.facts.text_tokens])
        repetition = compression_ratio(text)
        options = window.options
        improbable = decoded.avg_logprob < options.least_logprob
        nobody = decoded.silence is not None and decoded.silence > options.most_silence
        silent = nobody and (improbable or is_quiet(window.samples, self.facts.sample_rate))
        hotter = [temperature for temperature in options.fallback if temperature > options.temperature]
        if hotter and not silent and (improbable or repetition > options.most_compression):
            again = replace(options, temperature=hotter[0])
            self.waiting.insert(0, self._window(window.start_samples, window.end_samples, window.context, again))
            return
        rate = self.facts.sample_rate
        seconds = len(window.samples) / rate
        reading = WindowReading((), seconds) if silent else runner.read(decoded.tokens, seconds)
        resume = _heard_to(reading, window.samples, rate)
        if options.n_best > 1 and reading.segments:
            self.n_best.append(self._alternatives(window, decoded, tokenizer))
        context: tuple[int, ...] = ()
        timed = runner.words(window, decoded, reading.segments)
        for spoken, words in zip(reading.segments, timed, strict=True):
            said = tokenizer.decode(spoken.tokens)
            if not said.strip() or spoken.start == spoken.end:
                continue
            context += spoken.tokens
            offset = window.start_samples / rate
            segment = Segment(
                start=offset + spoken.start,
                end=min(offset + spoken.end, self.audio.duration),
                text=said.strip(),
                tokens=spoken.tokens,
                avg_logprob=decoded.avg_logprob,
                compression_ratio=repetition,
                no_speech_prob=decoded.silence,
                temperature=options.temperature,
                words=tuple(replace(word, start=offset + word.start, end=offset + word.end) for word in words),
                window_start=offset,
            )
            self.segments.append((window.start_samples, said, segment))
        # What was drawn at a high temperature is no good context (openai/whisper resets it above 0.5).
        remembered = silent or (options.condition_on_previous and options.temperature <= 0.5)
        following = self._behind_the_first(
            prompt=options.prompt if remembered else None, prefix=options.prefix if silent else None
        )
        self._go_on(window, resume, window.context + context if remembered else (), following)

    def _alternatives(self, window: Window, decoded: Decoded, tokenizer: Tokenizer) -> NBest:
        """The texts of a window; hypotheses that differ in control tokens alone are one."""
        texts: dict[str, float] = {}
        for hypothesis in decoded.hypotheses:
            text = tokenizer.decode([token for token in hypothesis.tokens if token < self.facts.text_tokens]).strip()
            texts.setdefault(text, hypothesis.avg_logprob)
        rate = self.facts.sample_rate
        return NBest(
            start=window.start_samples / rate,
            end=(window.start_samples + len(window.samples)) / rate,
            alternatives=tuple(starmap(Alternative, texts.items()))[: window.options.n_best],
        )

    def _behind_the_first(self, prompt: str | None = None, prefix: str | None = None) -> DecodingOptions:
        """Options of a window behind the first, which has a prompt and a prefix only if they are left from before."""
        return replace(self.options, prompt=self.options.prompt if self.options.carry_prompt else prompt, prefix=prefix)

    def _go_on(self, window: Window, resume: float, context: tuple[int, ...], options: DecodingOptions) -> None:
        read_samples = round(resume * self.facts.sample_rate)
        if read_samples < _SHORTEST_SECONDS * self.facts.sample_rate:
            read_samples = len(window.samples)  # a window that starts where it did would never end
        start = window.start_samples + read_samples
        rest = window.end_samples - start
        if rest >= _SHORTEST_SECONDS * self.facts.sample_rate:
            self.waiting.insert(0, self._window(start, window.end_samples, context, options))
        elif (
            window.end_samples == len(self.audio.samples)
            and rest > 0
            and len(window.samples) == self.facts.max_input_samples
        ):
            self.notes.append(_unread(rest / self.facts.sample_rate))

    def _window(self, start: int, end: int, context: tuple[int, ...], options: DecodingOptions) -> Window:
        samples = self.audio.samples[start : min(start + self.facts.max_input_samples, end)]
        return Window(next(_keys), start, end, samples, self.frames(len(samples)), options, self.language, context)

    def begin(self, pieces: Sequence[Piece]) -> None:
        self.waiting = [
            self._window(piece.start, piece.end, (), self._behind_the_first() if index else self.options)
            for index, piece in enumerate(pieces)
        ]

    def transcript(self) -> Transcript:
        """Join what was read."""
        ordered = sorted(self.segments, key=lambda each: (each[2].start, each[0]))
        return Transcript(
            text="".join(text for _, text, _ in ordered).strip(),
            segments=tuple(segment for _, _, segment in ordered),
            language=self.language,
            duration=self.audio.duration,
            task=self.options.task,
            language_probability=self.language_probability,
            truncated=self.audio.truncated,
            notes=tuple(self.notes),
            n_best=tuple(sorted(self.n_best, key=attrgetter("start"))),
        )


def new_request(
    audio: Audio,
    options: DecodingOptions,
    facts: ModelFacts,
    frames: Callable[[int], int],
    detector: SpeechDetector | None,
    waiter: "Future[Outcome] | None",
) -> Request:
    """A request for an input, all of which is taken for speech without a detector.

    `frames` says how many feature frames so many samples cost.
    """
    if options.timestamps is None:
        options = replace(options, timestamps=facts.timestamps)
    language = options.language or (facts.languages[0] if len(facts.languages) == 1 else None)
    request = Request(next(_ids), audio, options, facts, frames, waiter, language, notes=list(audio.notes))
    if detector is not None:
        request.begin(_spoken(audio, detector, facts.max_input_samples))
    elif options.timestamps or options.condition_on_previous:
        request.begin([Piece(0, len(audio.samples))])
    else:
        request.begin(_consecutive(audio, facts.max_input_samples, request.notes))
    return request


def _spoken(audio: Audio, detector: SpeechDetector, longest: int) -> list[Piece]:
    """Stretches with speech, cut at pauses: each a window of its own."""
    rate = audio.sample_rate
    spans = detector.segments(audio.samples, rate)
    found = pieces(spans, audio.duration, longest / rate, loudness=loudness(audio.samples, rate))
    starts = [round(span.start * rate) for span in found]
    ends = [round(span.end * rate) for span in found]
    return [
        Piece(start, min(end, start + longest, len(audio.samples))) for start, end in zip(starts, ends, strict=True)
    ]


def _consecutive(audio: Audio, longest: int, notes: list[str]) -> list[Piece]:
    """Whole windows: without timestamps nothing says where one may be left."""
    total = len(audio.samples)
    starts = list(range(0, total, longest))
    if len(starts) > 1 and total - starts[-1] < _SHORTEST_SECONDS * audio.sample_rate:
        notes.append(_unread((total - starts.pop()) / audio.sample_rate))
    return [Piece(start, min(start + longest, total)) for start in starts]


def _unread(seconds: float) -> str:
    return f"the last {seconds:.4f} s are too short to hold a word and were not read"


def compression_ratio(text: str) -> float:
    """Bytes of a text over the bytes that zlib makes of it (openai/whisper, utils.py)."""
    encoded = text.encode()
    return len(encoded) / len(zlib.compress(encoded))


def _heard_to(reading: WindowReading, samples: torch.Tensor, rate: int) -> float:
    """Where a window has really been read to, in seconds.

    Models sometimes end their text long before the speech ends. What is left after the last segment is read again, if
    it is long enough for a sentence and not quiet.
    """
    last = max((segment.end for segment in reading.segments), default=0.0)
    rest = samples[round(last * rate) :]
    is_left = reading.segments and len(rest) > _SENTENCE_SECONDS * rate and not is_quiet(rest, rate)
    return last if is_left and reading.resume > last else reading.resume


def is_quiet(samples: torch.Tensor, sample_rate: int) -> bool:
    """Whether nothing is louder than the hiss of a recorder: models invent polite words for digital silence."""
    return bool(loudness(samples, sample_rate).powers.max(initial=0.0) < _HISS)


def source_name(source: object) -> str:
    """How an input is named that could not be read."""
    if isinstance(source, Audio):
        return source.source
    if isinstance(source, RawAudio):
        source = source.content
    return str(source) if isinstance(source, str | PathLike) else f"<{type(source).__name__}>"
