"""Speech detectors: where in the audio somebody speaks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from oasr.interfaces.component import ComponentConfig


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of audio, in seconds from its start."""

    start: float
    end: float

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """Speech begins."""

    at: float
    """Seconds from the start of the stream; may lie before what was pushed last."""


@dataclass(frozen=True, slots=True)
class SpeechEnded:
    """Speech that was reported as started is over."""

    at: float
    """Seconds from the start of the stream; may lie before what was pushed last."""


SpeechEvent = SpeechStarted | SpeechEnded


class DetectorStream(ABC):
    """Listens to one stream of audio, of any length, in memory that does not grow.

    Events alternate, a start first; their times never decrease and never lie ahead of the audio pushed.
    """

    @abstractmethod
    def push(self, samples: torch.Tensor) -> list[SpeechEvent]:
        """Take the next samples, float32 (samples,) on the CPU, as many or few as there are; tell what is new."""

    @abstractmethod
    def finish(self) -> list[SpeechEvent]:
        """The stream has ended: tell what was held back, which ends speech that is still going on."""


class SpeechDetector(ABC):
    """Finds speech. One instance serves any number of inputs and streams, also at a time.

    The engine listens through `stream`, since it never has the whole of an input; `segments` is for whoever does.
    Law: however a stream is cut into pushes, its events are the ends of the offline spans, within `hop`.
    """

    hop: float
    """Seconds between two decisions."""
    latency: float = 30.0
    """An event is told before so many seconds have been heard past it: the audio in which it may lie is held."""

    @abstractmethod
    def __init__(self, config: ComponentConfig | None):
        """Take the options; None for a component that declares no configuration."""

    @abstractmethod
    def segments(self, samples: torch.Tensor, sample_rate: int) -> list[Span]:
        """Stretches of speech in samples, float32 (samples,) on the CPU: in order, apart, and within the audio.

        Raises `RequestError` for a rate it cannot work at.
        """

    @abstractmethod
    def stream(self, sample_rate: int) -> DetectorStream:
        """A new stream. Raises `RequestError` for a rate it cannot work at."""


def spans_of(events: Iterable[SpeechEvent]) -> Iterator[Span]:
    """The stretches of speech between starts and ends; one that has not ended is left out."""
    start = None
    for event in events:
        if isinstance(event, SpeechStarted):
            start = event.at
        elif start is not None:
            yield Span(start, event.at)
            start = None
