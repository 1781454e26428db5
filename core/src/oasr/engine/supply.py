"""The audio of one input on its way in: decoded a little ahead of need, and cut into what is read independently."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
import torch

from oasr.audio import AudioStream
from oasr.detectors.loudness import Meter
from oasr.detectors.pieces import PieceStream
from oasr.errors import AudioError, OasrError
from oasr.interfaces.detector import Span, SpeechDetector

_NOTHING = torch.empty(0)
SHORTEST_SECONDS = 0.1  # of a rest of audio after the last window; models invent words in less


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """A stretch of the audio."""

    start: int
    """Where it begins, in samples."""
    samples: torch.Tensor
    """float32 (samples,) on the CPU."""


class Backlog:
    """Samples that have been decoded and are still needed, by their place in the audio."""

    def __init__(self) -> None:
        self._blocks: deque[torch.Tensor] = deque()
        self.start = 0
        """What lies before has been dropped."""
        self.end = 0

    def add(self, samples: torch.Tensor) -> None:
        self._blocks.append(samples)
        self.end += len(samples)

    def drop(self, before: int) -> None:
        """Let go of the samples before a place."""
        while self._blocks and before > self.start:
            block = self._blocks.popleft()
            gone = min(before - self.start, len(block))
            self.start += gone
            if gone < len(block):
                self._blocks.appendleft(block[gone:])

    def between(self, start: int, end: int) -> torch.Tensor:
        """Samples that are held; fewer when the audio ends before `end`."""
        parts = []
        at = self.start
        for block in self._blocks if end > start else ():
            size = block.shape[0]
            if at < end and at + size > start:
                parts.append(block[max(start - at, 0) : end - at])
            at += size
        if not parts:
            return _NOTHING
        return parts[0] if len(parts) == 1 else torch.cat(parts)


class Cutter(ABC):
    """Cuts audio into pieces while it is decoded."""

    @abstractmethod
    def push(self, samples: torch.Tensor) -> list[Piece]:
        """Take the next samples; return the pieces that are certain now."""

    @abstractmethod
    def finish(self) -> list[Piece]:
        """The audio has ended: return the rest."""


class Continuous(Cutter):
    """Everything, as it comes: pieces that go on from each other."""

    def __init__(self) -> None:
        self._end = 0

    def push(self, samples: torch.Tensor) -> list[Piece]:
        start, self._end = self._end, self._end + len(samples)
        return [Piece(start, samples)]

    def finish(self) -> list[Piece]:
        return []


class Consecutive(Cutter):
    """Whole windows: without timestamps nothing says where one may be left."""

    def __init__(self, longest: int, shortest: int, unread: Callable[[int], None]):
        """`longest` and `shortest` are in samples; `unread` is told how many at the end are too few."""
        self._longest = longest
        self._shortest = shortest
        self._unread = unread
        self._backlog = Backlog()
        self._start = 0

    def push(self, samples: torch.Tensor) -> list[Piece]:
        self._backlog.add(samples)
        return [self._piece() for _ in range((self._backlog.end - self._start) // self._longest)]

    def finish(self) -> list[Piece]:
        rest = self._backlog.end - self._start
        if rest and self._start and rest < self._shortest:
            self._unread(rest)
            return []
        return [self._piece()] if rest else []

    def _piece(self) -> Piece:
        start, self._start = self._start, self._start + self._longest
        piece = Piece(start, self._backlog.between(start, self._start))
        self._backlog.drop(self._start)
        return piece


class Spoken(Cutter):
    """Stretches with speech, cut at pauses: each a window of its own."""

    def __init__(self, detector: SpeechDetector, sample_rate: int, longest: int):
        self._rate = sample_rate
        self._longest = longest
        self._backlog = Backlog()
        self._detector = detector.stream(sample_rate)
        self._meter = Meter(sample_rate, 0.02)
        self._pieces = PieceStream(longest / sample_rate, self._meter.hop, detector.latency)

    def push(self, samples: torch.Tensor) -> list[Piece]:
        self._backlog.add(samples)
        powers = np.concatenate([np.zeros(0), *self._meter.push(samples)])
        spans = self._pieces.push(self._backlog.end / self._rate, self._detector.push(samples), powers)
        pieces = [self._piece(span) for span in spans]
        self._backlog.drop(int(self._pieces.position * self._rate))
        return pieces

    def finish(self) -> list[Piece]:
        spans = self._pieces.finish(self._backlog.end / self._rate, self._detector.finish())
        return [self._piece(span) for span in spans]

    def _piece(self, span: Span) -> Piece:
        start, end = round(span.start * self._rate), round(span.end * self._rate)
        return Piece(start, self._backlog.between(start, min(end, start + self._longest)))


class Supply:
    """Decodes and cuts one input as far as it is asked to."""

    def __init__(self, stream: AudioStream, cutter: Cutter, block: int):
        """`block` is how many samples are decoded at a time."""
        self.source = stream.findings.source
        self._stream = stream
        self._cutter = cutter
        self._block = block
        self._heard = 0
        self.ended = False
        """Whether all pieces have been given."""

    @property
    def duration(self) -> float:
        """Seconds of audio; infinite until its end is known."""
        return self._heard / self._stream.sample_rate if self.ended else inf

    @property
    def notes(self) -> list[str]:
        """What is odd about the input."""
        return self._stream.findings.notes

    @property
    def truncated(self) -> bool:
        """Whether some of the input is missing."""
        return self._stream.findings.truncated

    def begin(self, samples: int) -> list[Piece]:
        """The pieces in so many samples or some more, and at least one. Raises as `read_on`."""
        pieces: list[Piece] = []
        while not self.ended and (not pieces or self._heard < samples):
            pieces += self.read_on()
        return pieces

    def read_on(self) -> list[Piece]:
        """Decode some more, and return the pieces found in it. Raises the `AudioError` of what is wrong there."""
        try:
            samples = self._stream.read(self._block)
        except OasrError:
            raise
        except Exception as error:  # of a file object or a library
            raise unreadable(self.source, error) from error
        self._heard += len(samples)
        pieces = self._cutter.push(samples)
        if self._stream.ended:
            pieces += self._cutter.finish()
            self.ended = True
        return pieces

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()


def unreadable(source: str, error: Exception) -> AudioError:
    """What one input failed of whose reading raised what nobody foresaw."""
    return AudioError(source, f"could not be read ({type(error).__name__}: {error})")
