"""Live streams: what one has heard and said so far."""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from oasr.cache.paged import Lease
from oasr.engine.frames import hypothesis_of
from oasr.engine.joining import Growth
from oasr.engine.words import spelled_words
from oasr.interfaces.architecture import ModelFacts
from oasr.interfaces.decoder import Spelling
from oasr.interfaces.streaming import ChunkShape
from oasr.interfaces.tokenizer import TextStream, Tokenizer
from oasr.types import DecodingOptions, LiveOptions, Outcome, Segment, StreamEvent, Transcript


@dataclass(eq=False, slots=True)
class LiveStream:
    """One stream on its way through the engine: samples in, windows of features, encoder frames, events out."""

    id: int
    options: DecodingOptions
    live: LiveOptions
    facts: ModelFacts
    shape: ChunkShape
    tokenizer: Tokenizer
    slot: int
    frontend: Any
    """State of the features, see `Frontend.stream`."""
    search: Any
    """State of the search in the segment that is being spoken, see `FrameSynchronousDecoder.start`."""
    pieces: list[torch.Tensor] = field(default_factory=list)
    """Samples that the frontend has not taken."""
    pushed_samples: int = 0
    """How many there are of them."""
    samples: int = 0
    """Samples heard in all."""
    ended: bool = False
    """No samples will follow."""
    drained: bool = False
    """The frontend has been told so."""
    features: torch.Tensor | None = None
    """(time, feature): from the start of the next window on."""
    due: float | None = None
    """Since when the next window could be read, on the clock of `time.monotonic`."""
    age: int = 0
    """Encoder frames of the segment that is being spoken."""
    offset: int = 0
    """Encoder frames before that segment."""
    lease: Lease = field(default_factory=lambda: Lease(()))
    kept: list[torch.Tensor] = field(default_factory=list)
    """Encoder frames of the segment, (time, feature) each, where it will be looked at a second time."""
    said: tuple[int, ...] = ()
    """Tokens of the segment whose text has been handed out: those that will not change."""
    text: TextStream | None = None
    grown: Growth = field(default_factory=Growth)
    segments: list[Segment] = field(default_factory=list)
    events: list[StreamEvent] = field(default_factory=list)
    """Not handed out yet."""
    waiter: "Future[Outcome] | None" = None
    """Who gets the outcome; None leaves it to `step`."""
    shown: str = ""

    def push(self, samples: torch.Tensor, last: bool) -> None:
        """Take more samples, (samples,) float32 on the CPU; what comes behind the last ones is left alone."""
        if self.ended:
            return
        if len(samples):
            self.pieces.append(samples)
            self.pushed_samples += len(samples)
            self.samples += len(samples)
        self.ended = self.ended or last

    @property
    def source(self) -> str:
        return f"<stream {self.id}>"

    @property
    def is_due(self) -> bool:
        """Whether an engine has anything to do for it."""
        return self.wants_features or self.has_window or self.complete

    @property
    def wants_features(self) -> bool:
        """Whether enough samples came for the frontend to be worth asking."""
        hop_samples = self.shape.hop * self._feature_seconds * self.facts.sample_rate
        return self.pushed_samples >= hop_samples or (self.ended and not self.drained)

    @property
    def _feature_seconds(self) -> float:
        return self.facts.frame_shift * self.shape.frames / self.shape.hop

    def pushed(self) -> torch.Tensor:
        """The samples that the frontend has not taken, (samples,)."""
        if len(self.pieces) != 1:
            self.pieces = [torch.cat(self.pieces) if self.pieces else torch.zeros(0)]
        return self.pieces[0]

    def add_features(self, frames: torch.Tensor) -> None:
        """The frontend has taken what was pushed and made these features of it, (time, feature)."""
        self.pieces.clear()
        self.pushed_samples = 0
        parts = [frames] if self.features is None else [self.features, frames]
        if self.ended and not self.drained and self.shape.tail:
            parts.append(frames.new_full((self.shape.tail, frames.shape[1]), self.shape.padding))
        self.drained = self.ended
        self.features = torch.cat(parts) if len(parts) > 1 else frames
        if self.due is None and self.has_window:
            self.due = time.monotonic()

    @property
    def has_window(self) -> bool:
        """Whether the next window can be read."""
        frames = 0 if self.features is None else len(self.features)
        return frames >= self.shape.window or (self.drained and frames >= self.shape.least)

    @property
    def complete(self) -> bool:
        """Whether all that came has been read, and no more will come."""
        return self.drained and not self.has_window

    def window(self) -> torch.Tensor:
        """Features of the next window, (time, feature), shorter than a whole one only at the end."""
        assert self.features is not None
        return self.features[: self.shape.window]

    def leave_window(self) -> None:
        """The window has been read; the next one overlaps it."""
        assert self.features is not None
        self.features = self.features[self.shape.hop :].clone()
        self.due = time.monotonic() if self.has_window else None

    def hear(self, spellings: Sequence[Spelling], frames: int) -> None:
        """The search has read so many encoder frames more, and these are its hypotheses by now."""
        self.age += frames
        stable = _common([spelling.tokens for spelling in spellings])
        delta = self._say(stable) if len(stable) > len(self.said) else ""
        shown = self.tokenizer.decode(list(spellings[0].tokens)).strip()
        if delta or shown != self.shown:
            self.shown = shown
            self.events.append(StreamEvent(delta, shown, None))

    def has_paused(self, best: Spelling) -> bool:
        """Whether the segment ends here: after speech and enough silence, or because it has grown too long."""
        shift = self.facts.frame_shift
        if self.age * shift >= self.live.longest_segment:
            return True
        silence = self.age - 1 - best.frames[-1] if best.frames else 0
        return bool(best.frames) and silence * shift >= self.live.endpoint_silence

    def end_segment(self, best: Spelling) -> None:
        """The segment that was being spoken is over, and this is its text."""
        delta = self._say(best.tokens)
        if self.text is not None:
            delta += self.grown.add(self.text.finish())
        text = self.tokenizer.decode(list(best.tokens)).strip()
        if text:
            segment = self._segment(best, text)
            self.segments.append(segment)
            self.events.append(StreamEvent(delta, text, segment))
        elif delta or self.shown:
            self.events.append(StreamEvent(delta, "", None))
        self.grown.pause()
        self.offset += self.age
        self.age, self.said, self.text, self.shown = 0, (), None, ""
        self.kept.clear()

    def _say(self, tokens: tuple[int, ...]) -> str:
        """Hand out the text of tokens that continue those said before."""
        self.text = self.text or self.tokenizer.stream()
        delta = self.grown.add(self.text.push(tokens[len(self.said) :]))
        self.said = tokens
        return delta

    def _segment(self, best: Spelling, text: str) -> Segment:
        shift, duration = self.facts.frame_shift, self.duration
        start = self.offset * shift
        words = []
        if self.options.word_timestamps:
            words = spelled_words(hypothesis_of(best), self.tokenizer, shift, max(0.0, duration - start))
        return Segment(
            start=min(start + best.frames[0] * shift, duration),
            end=min(start + (best.frames[-1] + 1) * shift, duration),
            text=text,
            tokens=best.tokens,
            avg_logprob=hypothesis_of(best).avg_logprob,
            words=tuple(replace(word, start=start + word.start, end=start + word.end) for word in words),
        )

    @property
    def duration(self) -> float:
        return self.samples / self.facts.sample_rate

    def transcript(self) -> Transcript:
        """All that was said."""
        return Transcript(
            text=self.grown.text, segments=tuple(self.segments), language=self.options.language, duration=self.duration
        )


def _common(texts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The tokens that all begin with."""
    first, last = min(texts), max(texts)
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:length]
