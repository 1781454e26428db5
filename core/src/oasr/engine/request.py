"""One audio input on its way through the engine: read window by window, and joined."""

import math
import zlib
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import count, starmap
from operator import attrgetter

import torch

from oasr.audio import AudioStream
from oasr.detectors.loudness import loudness
from oasr.engine.frames import FrameRunner
from oasr.engine.joining import joined
from oasr.engine.loops import without_loop
from oasr.engine.runner import Runner
from oasr.engine.supply import SHORTEST_SECONDS, Backlog, Consecutive, Continuous, Cutter, Piece, Spoken, Supply
from oasr.engine.window import Decoded, Excerpt, Window, as_error
from oasr.errors import OasrError
from oasr.interfaces.architecture import ModelFacts
from oasr.interfaces.detector import SpeechDetector
from oasr.interfaces.heads import WindowReading
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import Alternative, DecodingOptions, NBest, Outcome, Segment, Transcript

_HISS = 10 ** (-50 / 10)  # as power; full scale is 1
_OPENING_SECONDS = 300  # held at once of each input that is read as excerpts
_SENTENCE_SECONDS = 3.0  # shorter rests are mostly breath and noise
_ids = count(1)  # of requests and live streams alike
_keys = count(1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the audio is to be read on."""

    start: int
    """In samples."""
    options: DecodingOptions
    context: tuple[int, ...] = ()
    """Text tokens read just before."""
    is_after_whole: bool = False
    """The window before was as long as the model takes, so that more may follow it."""
    loudest: torch.Tensor | None = None
    """See `Excerpt`."""


@dataclass(eq=False, slots=True)
class Request:
    """What has been read of one input, and what is to be read next.

    The audio is read in pieces, independently of each other, or as a single one. In each, the next window starts where
    the last complete segment of the one before ended. Held are the windows to be read and, of a single piece, the
    samples behind the one that is being read.
    """

    id: int
    supply: Supply
    options: DecodingOptions
    runner: Runner | FrameRunner
    language: str | None
    ahead: Backlog | None
    """Of a single piece: what has been decoded from the window that is being read on. None where pieces are many."""
    waiter: "Future[Outcome] | None" = None
    """Who gets the outcome; None leaves it to `step`."""
    cut: bool = False
    """Of many pieces: whether there has been one."""
    place: Place | None = None
    """Of a single piece: where the next window starts, when too few samples have been decoded for it."""
    reading: "Future[list[Piece]] | None" = None
    """What is being decoded now."""
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
        return self.supply.source

    @property
    def facts(self) -> ModelFacts:
        return self.runner.model.facts

    @property
    def ended(self) -> bool:
        """Whether all of the audio has been decoded, and taken."""
        return self.supply.ended and self.reading is None

    @property
    def complete(self) -> bool:
        return not self.waiting and not self.open and self.ended

    @property
    def is_short(self) -> bool:
        """Whether the window behind the one that is being read has not been decoded."""
        if self.ahead is None:
            return not self.waiting and not self.open
        return self.ahead.end - self.ahead.start < 2 * self.facts.max_input_samples

    def hear(self, pieces: Sequence[Piece]) -> None:
        """Take what has been decoded."""
        if self.ahead is None:
            for piece in pieces:
                options = self._behind_the_first() if self.cut else self.options
                self.waiting.append(self._window(piece.start, piece.samples, (), options))
                self.cut = True
            return
        for piece in pieces:
            self.ahead.add(piece.samples)
        self._go_to(self.place)

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

    def accept(self, window: Window, decoded: Decoded, tokenizer: Tokenizer) -> None:
        """Take what was read in a window, or have it read again at the next temperature; then go on behind it."""
        self.open.remove(window)
        self.notes += [note for note in decoded.notes if note not in self.notes]
        text = tokenizer.decode([token for token in decoded.tokens if token < self.facts.text_tokens])
        repetition = compression_ratio(text)
        options = window.options
        improbable = decoded.avg_logprob < options.least_logprob
        nobody = decoded.silence is not None and decoded.silence > options.most_silence
        silent = nobody and (improbable or is_quiet(window.samples, self.facts.sample_rate))
        repetitive = self.runner.writes and repetition > options.most_compression
        steps = options.fallback if self.runner.writes else ()
        hotter = [temperature for temperature in steps if temperature > options.temperature]
        if hotter and not silent and (improbable or repetitive):
            again = replace(options, temperature=hotter[0])
            place = (window.start_samples, window.samples, window.context)
            self.waiting.insert(0, self._window(*place, again, window.excerpt))
            return
        rate = self.facts.sample_rate
        seconds = len(window.samples) / rate
        reading = WindowReading((), seconds) if silent else self.runner.read(decoded, seconds)
        looped = None
        if repetitive:
            reading, looped = without_loop(reading)
        if looped is not None:
            at = window.start_samples / rate + looped
            self.notes.append(f"the text repeated itself from {at:.2f} s on, and was cut there")
        resume = reading.resume if looped is not None else _heard_to(reading, window.samples, rate)
        if options.n_best > 1 and reading.segments:
            self.n_best.append(self._alternatives(window, decoded, tokenizer))
        context: tuple[int, ...] = ()
        timed = self.runner.words(window, decoded, reading.segments)
        for spoken, words in zip(reading.segments, timed, strict=True):
            said = tokenizer.decode(spoken.tokens)
            if not said.strip() or spoken.start == spoken.end:
                continue
            context += spoken.context or spoken.tokens
            offset = window.start_samples / rate
            segment = Segment(
                start=offset + spoken.start,
                end=min(offset + spoken.end, self.supply.duration),
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
        # Loops are no good context, nor is what was drawn at a high temperature (openai/whisper resets it above 0.5).
        sane = looped is None and options.temperature <= 0.5
        remembered = silent or (options.condition_on_previous and sane)
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
        options = self.options
        prompt = options.prompt if options.carry_prompt else prompt
        if (prompt, prefix) == (options.prompt, options.prefix):
            return options
        return replace(options, prompt=prompt, prefix=prefix)

    def _go_on(self, window: Window, resume: float, context: tuple[int, ...], options: DecodingOptions) -> None:
        shortest = SHORTEST_SECONDS * self.facts.sample_rate
        read_samples = round(resume * self.facts.sample_rate)
        if read_samples < shortest:
            read_samples = len(window.samples)  # a window that starts where it did would never end
        start = window.start_samples + read_samples
        if self.ahead is not None:
            self.ahead.drop(start - self.runner.margin_samples)
            loudest = window.excerpt.loudest if window.excerpt else None
            is_after_whole = len(window.samples) == self.facts.max_input_samples
            self._go_to(Place(start, options, context, is_after_whole, loudest))
        elif len(window.samples) - read_samples >= shortest:
            self.waiting.insert(0, self._window(start, window.samples[read_samples:], context, options))

    def _go_to(self, place: Place | None) -> None:
        """Let the next window of a single piece wait its turn, once there are samples for it."""
        self.place = place
        if place is None or self.ahead is None:
            return
        longest = self.facts.max_input_samples
        rest = self.ahead.end - place.start
        if rest < longest + self.runner.margin_samples and not self.ended:
            return
        self.place = None
        if rest >= SHORTEST_SECONDS * self.facts.sample_rate or (rest and not place.start):
            samples = self.ahead.between(place.start, place.start + longest)
            excerpt = self._excerpt(self.ahead, place, place.start + len(samples))
            self.waiting.insert(0, self._window(place.start, samples, place.context, place.options, excerpt))
        elif rest and place.is_after_whole:
            self.notes.append(_unread(rest / self.facts.sample_rate))

    def _excerpt(self, ahead: Backlog, place: Place, end: int) -> Excerpt | None:
        if self.facts.excerpts == "never" or not self.options.timestamps:
            return None
        longest = self.facts.max_input_samples
        fits = self.ended and ahead.end <= longest
        known = (longest if self.facts.excerpts == "long" and fits else end) - place.start
        margin = self.runner.margin_samples
        before, after = ahead.between(place.start - margin, place.start), ahead.between(end, end + margin)
        opening = None
        if place.start == 0 and ahead.end > end:
            opening = ahead.between(0, _OPENING_SECONDS * self.facts.sample_rate)
        return Excerpt(before, after, known, place.loudest, opening)

    def _window(
        self,
        start: int,
        samples: torch.Tensor,
        context: tuple[int, ...],
        options: DecodingOptions,
        excerpt: Excerpt | None = None,
    ) -> Window:
        frames = self.runner.frames(len(samples))
        return Window(next(_keys), start, samples, frames, options, self.language, context, excerpt=excerpt)

    def transcript(self) -> Transcript:
        """Join what was read."""
        ordered = sorted(self.segments, key=lambda each: (each[2].start, each[0]))
        texts = [text for _, text, _ in ordered]
        return Transcript(
            text="".join(texts).strip() if self.runner.writes else joined(texts),
            segments=tuple(segment for _, _, segment in ordered),
            language=self.language,
            duration=self.supply.duration,
            task=self.options.task,
            language_probability=self.language_probability,
            truncated=self.supply.truncated,
            notes=(*self.supply.notes, *self.notes),
            n_best=tuple(sorted(self.n_best, key=attrgetter("start"))),
        )


def new_id() -> int:
    """An id that no other request and no live stream has."""
    return next(_ids)


def new_request(
    stream: AudioStream,
    options: DecodingOptions,
    runner: Runner | FrameRunner,
    detector: SpeechDetector | None,
) -> Request:
    """A request for an input whose start has been decoded. All of it is taken for speech without a detector.

    Raises what is wrong with the start.
    """
    facts = runner.model.facts
    language = options.language or (facts.languages[0] if len(facts.languages) == 1 else None)
    rate, longest = facts.sample_rate, facts.max_input_samples
    ahead: Backlog | None = None
    cutter: Cutter
    if detector is not None:
        cutter = Spoken(detector, rate, longest)
    elif options.timestamps or options.condition_on_previous:
        cutter, ahead = Continuous(), Backlog()
    else:
        shortest = math.ceil(SHORTEST_SECONDS * rate)
        cutter = Consecutive(longest, shortest, lambda rest: stream.findings.note(_unread(rest / rate)))
    supply = Supply(stream, cutter, longest)
    request = Request(new_id(), supply, options, runner, language, ahead)
    request.place = Place(0, options)
    # A window to read, and another in the meantime; of excerpts as much as says how loud the input gets.
    listened = ahead is not None and options.timestamps and facts.excerpts != "never"
    try:
        request.hear(supply.begin(_OPENING_SECONDS * rate if listened else 2 * longest))
    except OasrError:
        raise
    except Exception as error:  # of a detector
        stream.close()
        raise as_error(error) from error
    return request


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
