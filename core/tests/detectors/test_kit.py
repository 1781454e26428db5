"""The detectors of core pass the kit that plugins are held to, and the kit sees broken ones."""

from typing import ClassVar

import pytest
import torch

from oasr.detectors.config import EnergyConfig
from oasr.detectors.energy import EnergyDetector
from oasr.interfaces.detector import DetectorStream, Span, SpeechDetector, SpeechEnded, SpeechEvent, SpeechStarted
from oasr.registry import Registry
from oasr.testing import DetectorSuite
from oasr.testing.detector_suite import toy_recording

_REGISTRY = Registry.from_modules()


class Sealed:
    @pytest.fixture
    def registry(self) -> Registry:
        return _REGISTRY


class TestNone(Sealed, DetectorSuite):
    component = "none"


class TestEnergy(Sealed, DetectorSuite):
    component = "energy"


class TestEnergyOnTheTelephone(TestEnergy):
    sample_rate = 8000


class TestEnergyAtAnOddRate(TestEnergy):
    sample_rate = 11_025


class TestEnergyAtItsLimits(TestEnergy):
    options: ClassVar = {"padding_seconds": 0.25, "least_speech_seconds": 0.0, "frame_seconds": 0.03}


class TestEnergyWithoutPadding(TestEnergy):
    missed = 0.2
    options: ClassVar = {"padding_seconds": 0.0, "lead_seconds": 3.0}


class _Mutant(EnergyDetector):
    def __init__(self) -> None:
        super().__init__(EnergyConfig())


class Deaf(_Mutant):
    def segments(self, samples: torch.Tensor, sample_rate: int) -> list[Span]:
        return []


class TakesPauses(_Mutant):
    def segments(self, samples: torch.Tensor, sample_rate: int) -> list[Span]:
        return [Span(0.5, len(samples) / sample_rate)]


class SharesOneStream(_Mutant):
    def __init__(self) -> None:
        super().__init__()
        self.only = super().stream(16_000)

    def stream(self, sample_rate: int) -> DetectorStream:
        return self.only


class RunsAhead(_Mutant):
    def stream(self, sample_rate: int) -> DetectorStream:
        return _Ahead(super().stream(sample_rate))


class _Ahead(DetectorStream):
    def __init__(self, stream: DetectorStream):
        self.stream = stream

    def push(self, samples: torch.Tensor) -> list[SpeechEvent]:
        return [type(event)(event.at + 1.0) for event in self.stream.push(samples)]

    def finish(self) -> list[SpeechEvent]:
        return self.stream.finish()


class TellsLate(_Mutant):
    def __init__(self) -> None:
        super().__init__()
        self.latency = 0.1


class HearsPackets(_Mutant):
    def stream(self, sample_rate: int) -> DetectorStream:
        return _Packets(sample_rate)


class _Packets(DetectorStream):
    def __init__(self, sample_rate: int):
        self.sample_rate, self.heard, self.speaks = sample_rate, 0, False

    def push(self, samples: torch.Tensor) -> list[SpeechEvent]:
        at = self.heard / self.sample_rate
        self.heard += len(samples)
        is_loud = bool(samples.abs().max() > 0.1)
        if is_loud == self.speaks:
            return []
        self.speaks = is_loud
        return [SpeechStarted(at) if is_loud else SpeechEnded(at)]

    def finish(self) -> list[SpeechEvent]:
        return []


@pytest.mark.parametrize(
    ("mutant", "law", "arguments"),
    [
        (Deaf, "test_speech_is_found", ()),
        (TakesPauses, "test_pauses_are_left_out", ()),
        (SharesOneStream, "test_streams_do_not_disturb_each_other", ()),
        (RunsAhead, "test_events_alternate_and_never_run_ahead", ()),
        (TellsLate, "test_events_are_told_in_time", ()),
        (HearsPackets, "test_a_stream_of_packets_tells_the_same", (10,)),
    ],
)
def test_a_broken_law_is_seen(mutant: type[SpeechDetector], law: str, arguments: tuple) -> None:
    with pytest.raises(AssertionError):
        getattr(DetectorSuite(), law)(mutant(), toy_recording(16_000), *arguments)
