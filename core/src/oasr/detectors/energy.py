"""Speech by its loudness, against a noise floor that follows the recording.

The noise floor is a low quantile of the loudness of the seconds before, as in minimum statistics (Martin 2001, "Noise
power spectral density estimation based on optimal smoothing and minimum statistics"); a quantile does not fall for
the few silent frames that an encoder or a lost packet leaves behind. Decisions have hysteresis: speech starts well
above the noise and ends close to it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from oasr.detectors.config import EnergyConfig
from oasr.detectors.loudness import Meter, Powers
from oasr.interfaces.detector import (
    DetectorStream,
    Span,
    SpeechDetector,
    SpeechEnded,
    SpeechEvent,
    SpeechStarted,
    spans_of,
)

_FLOOR_FRAMES = 10  # the noise floor is measured anew after so many frames
_LEAST_POWER = 1e-12

Flags = np.ndarray[Any, np.dtype[np.bool_]]


class EnergyDetector(SpeechDetector):
    """Takes for speech what is louder than the noise around it."""

    def __init__(self, config: EnergyConfig):
        self._config = config
        self.hop = config.frame_seconds
        # Speech is told once enough frames are loud; between two of these lies less than a pause.
        loud_frames = config.least_speech_seconds / self.hop + 2
        pause = config.least_pause_seconds + self.hop
        self.latency = config.lead_seconds + config.padding_seconds + loud_frames * pause

    def segments(self, samples: torch.Tensor, sample_rate: int) -> list[Span]:
        stream = self.stream(sample_rate)
        return list(spans_of([*stream.push(samples), *stream.finish()]))

    def stream(self, sample_rate: int) -> DetectorStream:
        return _Stream(self._config, sample_rate)


class _Stream(DetectorStream):
    def __init__(self, config: EnergyConfig, sample_rate: int):
        self._sample_rate = sample_rate
        self._heard_samples = 0
        self._meter = Meter(sample_rate, config.frame_seconds)
        self._gate = _Gate(config, self._meter.hop)
        self._bursts = _Bursts(config, self._meter.hop)

    def push(self, samples: torch.Tensor) -> list[SpeechEvent]:
        self._heard_samples += len(samples)
        events: list[SpeechEvent] = []
        for powers in self._meter.push(samples):
            events += self._bursts.push(self._gate.push(powers))
        return events

    def finish(self) -> list[SpeechEvent]:
        events = self._bursts.push(self._gate.finish())
        return events + self._bursts.finish(self._heard_samples / self._sample_rate)


class _Gate:
    """Decides of each frame whether it is louder than the noise."""

    def __init__(self, config: EnergyConfig, hop: float):
        self._config = config
        self._lead_frames = max(1, round(config.lead_seconds / hop))
        self._noise_frames = max(round(config.noise_seconds / hop), self._lead_frames)
        self._levels = np.zeros(0)
        """Of the frames that are waiting, after those the noise is measured in."""
        self._waiting = 0
        self._decided = 0
        self._floor = 0.0
        self._is_open = False

    def push(self, powers: Powers) -> Flags:
        self._levels = np.concatenate([self._levels, 10 * np.log10(powers + _LEAST_POWER)])
        self._waiting += len(powers)
        if self._decided == 0 and self._waiting < self._lead_frames:
            return np.zeros(0, dtype=bool)
        return self._decide()

    def finish(self) -> Flags:
        return self._decide()

    def _decide(self) -> Flags:
        past = len(self._levels) - self._waiting
        levels = self._levels[past:]
        floors = self._floors(past)
        self._levels = self._levels[-self._noise_frames :]
        self._waiting = 0
        self._decided += len(levels)
        return self._latched(
            levels >= floors + self._config.start_decibels, levels < floors + self._config.end_decibels
        )

    def _floors(self, past: int) -> Powers:
        """Noise floor of each waiting frame: that of the seconds before, counted from the start of the stream."""
        floors = np.empty(self._waiting)
        frame = 0
        while frame < self._waiting:
            since_measured = (self._decided + frame) % _FLOOR_FRAMES
            if since_measured == 0 or self._decided + frame == 0:
                end = past + max(frame, self._lead_frames - self._decided)
                before = self._levels[max(0, end - self._noise_frames) : end]
                quantile = np.partition(before, rank := int(self._config.noise_quantile * len(before)))[rank]
                self._floor = max(float(quantile), self._config.silence_decibels)
            until = min(frame + _FLOOR_FRAMES - since_measured, self._waiting)
            floors[frame:until] = self._floor
            frame = until
        return floors

    def _latched(self, opens: Flags, closes: Flags) -> Flags:
        """Open from a frame that opens to one that closes."""
        decisive = np.where(opens | closes, np.arange(1, len(opens) + 1), 0)
        last = np.maximum.accumulate(decisive)
        is_open = np.concatenate([[self._is_open], opens])[last]
        if len(is_open):
            self._is_open = bool(is_open[-1])
        return is_open


class _Bursts:
    """Joins loud frames over short pauses, leaves out what is too short, and tells the rest as events."""

    def __init__(self, config: EnergyConfig, hop: float):
        self._hop = hop
        self._padding = config.padding_seconds
        self._least_loud = config.least_speech_seconds / hop - 1e-6
        self._least_pause = config.least_pause_seconds / hop - 1e-6
        self._frames = 0
        self._loud_since: int | None = None
        self._start: int | None = None
        """Of the burst, when there is one."""
        self._end = 0
        """Of the last loud frame of the burst."""
        self._loud_frames = 0
        """Of the burst, without what is loud now."""
        self._is_told = False
        self._told_until = 0.0
        """Time of the last end."""

    def push(self, loud: Flags) -> list[SpeechEvent]:
        return list(self._events(loud))

    def finish(self, duration: float) -> list[SpeechEvent]:
        """Events at the end of a stream of so many seconds."""
        if not self._is_told:
            return []
        if self._loud_since is not None:
            return [SpeechEnded(duration)]
        return [SpeechEnded(min(self._end * self._hop + self._padding, duration))]

    def _events(self, loud: Flags) -> Iterator[SpeechEvent]:
        before = np.concatenate([[self._loud_since is not None], loud[:-1]])
        for change in np.flatnonzero(loud != before).tolist():
            yield from self._advance(self._frames + change)
            if self._loud_since is None:
                self._rise(self._frames + change)
            else:
                self._fall(self._frames + change)
        self._frames += len(loud)
        yield from self._advance(self._frames)

    def _rise(self, frame: int) -> None:
        self._loud_since = frame
        if self._start is None:
            self._start, self._loud_frames, self._is_told = frame, 0, False

    def _fall(self, frame: int) -> None:
        assert self._loud_since is not None
        self._loud_frames += frame - self._loud_since
        self._loud_since, self._end = None, frame

    def _advance(self, frame: int) -> Iterator[SpeechEvent]:
        """What is known once the frames up to this one have been heard."""
        if self._start is None:
            return
        if self._loud_since is not None:
            if not self._is_told and self._loud_frames + frame - self._loud_since >= self._least_loud:
                self._is_told = True
                yield SpeechStarted(max(self._told_until, self._start * self._hop - self._padding))
        elif frame - self._end >= self._least_pause:
            if self._is_told:
                self._told_until = self._end * self._hop + self._padding
                yield SpeechEnded(self._told_until)
            self._start, self._is_told = None, False
