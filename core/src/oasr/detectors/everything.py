"""The detector that does not choose: everything is speech."""

import torch

from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.detector import DetectorStream, Span, SpeechDetector, SpeechEnded, SpeechEvent, SpeechStarted


class Everything(SpeechDetector):
    """Takes all audio for speech."""

    hop = 0.0
    latency = 0.0

    def __init__(self, config: ComponentConfig | None = None):
        pass

    def segments(self, samples: torch.Tensor, sample_rate: int) -> list[Span]:
        return [Span(0.0, len(samples) / sample_rate)] if len(samples) else []

    def stream(self, sample_rate: int) -> DetectorStream:
        return _Stream(sample_rate)


class _Stream(DetectorStream):
    def __init__(self, sample_rate: int):
        self._sample_rate = sample_rate
        self._heard_samples = 0

    def push(self, samples: torch.Tensor) -> list[SpeechEvent]:
        starts = self._heard_samples == 0 and len(samples) > 0
        self._heard_samples += len(samples)
        return [SpeechStarted(0.0)] if starts else []

    def finish(self) -> list[SpeechEvent]:
        return [SpeechEnded(self._heard_samples / self._sample_rate)] if self._heard_samples else []
