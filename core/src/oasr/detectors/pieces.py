"""Cutting audio at pauses into pieces that a model can take at once, while it is being heard."""

import math
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from oasr.detectors.loudness import Powers
from oasr.errors import ModelError
from oasr.interfaces.detector import Span, SpeechEvent, SpeechStarted

_SLACK = 1e-6  # seconds, far less than a sample: what sums of times may be off by
_SEARCHED = 1 / 3  # the part of the longest piece, before its end, in which a pause is looked for
_LEAST_REST = 1 / 10  # of the longest piece, so that hardly a word is left alone
_PAUSE_SECONDS = 0.2  # a pause is as quiet as so much audio around its middle


class PieceStream:
    """Pieces of at most `longest` seconds that hold all speech: in order, apart, and within the audio.

    Neighbours come into one piece, with the pause between them, as long as they fit. Speech that is itself too long is
    cut at its quietest pause in the last third before the limit. Pieces do not depend on how the audio is cut into
    pushes, and come as soon as nothing to come can change them: memory does not grow.
    """

    def __init__(self, longest: float, hop: float, latency: float):
        """`hop` is the seconds between two powers, `latency` how late the detector may tell, in seconds."""
        if not longest > 0:
            raise ValueError(f"longest must be above 0 seconds, not {longest}")
        self._longest = longest
        self._hop = hop
        self._latency = latency
        self._told: deque[SpeechEvent] = deque()
        """Not settled yet."""
        self._powers: Powers = np.zeros(0)
        self._first_frame = 0
        """Of the powers held."""
        self._settled = 0.0
        """All speech before this time has been told."""
        self._start: float | None = None
        """Where speech begins that is in no piece yet."""
        self._end: float | None = None
        """Where it ends, once that is told."""
        self._piece: Span | None = None
        """The last one, which may still grow."""

    @property
    def position(self) -> float:
        """No piece to come begins before this time, in seconds."""
        if self._piece is not None:
            return self._piece.start
        return self._settled if self._start is None else self._start

    def push(self, heard: float, events: Sequence[SpeechEvent], powers: Powers) -> list[Span]:
        """Pieces that are certain once so many seconds have been heard; `events` and `powers` are the new ones.

        Raises `ModelError` when a detector tells of speech later than it says it does.
        """
        self._hear(events, powers)
        # The pauses that speech is cut at reach past it.
        self._settled = max(0.0, heard - self._latency - _PAUSE_SECONDS)
        found = list(self._settle())
        self._forget()
        return found

    def finish(self, duration: float, events: Sequence[SpeechEvent]) -> list[Span]:
        """The rest, at the end of audio of so many seconds."""
        self._hear(events, np.zeros(0))
        self._settled = duration
        found = list(self._settle())
        if self._start is not None:
            found += self._close(duration)
        if self._piece is not None:
            found.append(self._piece)
        return found

    def _hear(self, events: Sequence[SpeechEvent], powers: Powers) -> None:
        for event in events:
            if event.at < self._settled:
                raise ModelError(
                    f"The detector told of what is at {event.at:.2f} s when the audio before {self._settled:.2f} s was "
                    f"already cut; its latency must be more than {self._latency:g} s"
                )
        self._told.extend(events)
        self._powers = np.concatenate([self._powers, powers])

    def _settle(self) -> Iterator[Span]:
        while self._told and self._told[0].at <= self._settled:
            event = self._told.popleft()
            if not isinstance(event, SpeechStarted):
                self._end = event.at
            elif self._start is None:
                self._start, self._end = event.at, None
            elif self._end is not None and event.at > self._end:
                yield from self._close(self._end)
                self._start, self._end = event.at, None
            else:  # it goes on where it ended
                self._end = None
        if self._start is None:
            # What is to come ends later than what is settled, so it does not fit.
            if self._piece is not None and self._settled - self._piece.start > self._longest + _SLACK:
                yield self._piece
                self._piece = None
        elif self._end is not None:
            yield from self._close(self._end)
        else:
            # However long the speech goes on, so much of it is cut like this.
            while self._settled - _LEAST_REST * self._longest >= self._start + self._longest:
                yield from self._cut(math.inf)

    def _close(self, end: float) -> Iterator[Span]:
        """Take up speech to its end."""
        assert self._start is not None
        while end - self._start > self._longest + _SLACK:
            yield from self._cut(end)
        if end > self._start:
            yield from self._join(Span(self._start, end))
        self._start = None

    def _cut(self, end: float) -> Iterator[Span]:
        """Take up the beginning of speech that is too long."""
        assert self._start is not None
        earliest = self._start + (1 - _SEARCHED) * self._longest
        latest = min(self._start + self._longest, max(earliest, end - _LEAST_REST * self._longest))
        cut = self._quietest(earliest, latest)
        yield from self._join(Span(self._start, cut))
        self._start = cut

    def _join(self, part: Span) -> Iterator[Span]:
        """Let the last piece grow if it can; else it is done."""
        if self._piece is not None:
            whole = Span(self._piece.start, part.end)
            if whole.duration <= self._longest + _SLACK:
                self._piece = whole
                return
            yield self._piece
        self._piece = part

    def _quietest(self, earliest: float, latest: float) -> float:
        """The middle of the quietest pause between two times, the later of equals."""
        width = max(1, round(_PAUSE_SECONDS / self._hop))
        first = max(math.ceil(earliest / self._hop - width / 2), self._first_frame)
        last = math.floor(latest / self._hop - width / 2)
        powers = self._powers[first - self._first_frame : max(last + width - self._first_frame, 0)]
        if len(powers) < width:
            return latest
        means = np.convolve(powers, np.full(width, 1 / width), mode="valid")
        quietest = first + len(means) - 1 - int(np.argmin(means[::-1]))
        return min(max((quietest + width / 2) * self._hop, earliest), latest)

    def _forget(self) -> None:
        """Let go of powers before all that can still be cut."""
        before = min(int(self.position / self._hop) - self._first_frame, len(self._powers))
        if before > 0:
            self._powers = self._powers[before:]
            self._first_frame += before
