"""Laws of speech detectors, with audio whose speech is known."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oasr.interfaces.detector import Span, SpeechDetector, SpeechEvent, SpeechStarted, spans_of
from oasr.plugin import Kind
from oasr.testing.suite import LAW, ComponentSuite

_ROUNDING = 1e-6  # seconds


@dataclass(frozen=True, eq=False, slots=True)
class Recording:
    """Audio, and where somebody speaks in it."""

    samples: torch.Tensor
    sample_rate: int
    speech: tuple[Span, ...]

    @property
    def duration(self) -> float:
        """Seconds."""
        return len(self.samples) / self.sample_rate


class DetectorSuite(ComponentSuite):
    """A detector finds speech, and a stream tells the same however it is cut.

    The speech is a buzz in syllables; override `recording` with a real one for a detector that is not deceived.
    """

    kind: ClassVar[Kind] = Kind.DETECTOR
    sample_rate: ClassVar[int] = 16_000
    """Hertz."""
    missed: ClassVar[float] = 0.1
    """Seconds of a stretch of speech that may be missed at its ends."""
    added: ClassVar[float] = 0.4
    """Seconds that may be added at the ends of a stretch of speech."""

    @pytest.fixture
    def detector(self, created: SpeechDetector) -> SpeechDetector:
        """The detector, made from `options`."""
        return created

    @pytest.fixture
    def recording(self) -> Recording:
        """Audio of a few seconds with pauses of more than a second."""
        return toy_recording(self.sample_rate)

    def test_speech_is_found(self, detector: SpeechDetector, recording: Recording) -> None:
        found = detector.segments(recording.samples, recording.sample_rate)
        for spoken in recording.speech:
            assert spoken.duration - sum(_shared(spoken, each) for each in found) <= self.missed, found

    def test_pauses_are_left_out(self, detector: SpeechDetector, recording: Recording) -> None:
        found = detector.segments(recording.samples, recording.sample_rate)
        if found == [Span(0.0, recording.duration)]:
            pytest.skip("it takes everything for speech")
        for each in found:
            spoken = [one for one in recording.speech if _shared(one, each) > 0]
            assert spoken, f"nobody speaks in {each}"
            assert each.start >= spoken[0].start - self.added
            assert each.end <= spoken[-1].end + self.added

    def test_segments_are_in_order_and_within_the_audio(self, detector: SpeechDetector, recording: Recording) -> None:
        for samples in (recording.samples, recording.samples[self.sample_rate // 2 :], _noise(9.0, self.sample_rate)):
            found = detector.segments(samples, self.sample_rate)
            times = [time for each in found for time in (each.start, each.end)]
            assert times == sorted(times)
            assert all(each.duration > 0 for each in found)
            assert all(0 <= time <= len(samples) / self.sample_rate + _ROUNDING for time in times)

    def test_no_audio_has_no_speech(self, detector: SpeechDetector) -> None:
        assert detector.segments(torch.zeros(0), self.sample_rate) == []
        stream = detector.stream(self.sample_rate)
        assert [*stream.push(torch.zeros(0)), *stream.finish()] == []
        assert detector.stream(self.sample_rate).finish() == []

    @pytest.mark.parametrize("samples", [1, 8, 144, 159, 160, 161, 399, 400, 401, 512])
    def test_a_few_samples_do_no_harm(self, detector: SpeechDetector, samples: int) -> None:
        audio = _noise(1.0, self.sample_rate)[:samples]
        for each in detector.segments(audio, self.sample_rate):
            assert 0 <= each.start < each.end <= samples / self.sample_rate + _ROUNDING

    def test_silence_and_full_scale_do_no_harm(self, detector: SpeechDetector) -> None:
        square = torch.ones(3 * self.sample_rate)
        square[::2] = -1
        for samples in (torch.zeros_like(square), torch.ones_like(square), square):
            for each in detector.segments(samples, self.sample_rate):
                assert 0 <= each.start < each.end <= 3 + _ROUNDING

    def test_it_leaves_the_samples_as_they_were(self, detector: SpeechDetector, recording: Recording) -> None:
        before = recording.samples.clone()
        detector.segments(recording.samples, recording.sample_rate)
        _listen(detector, recording, [len(before) // 3])
        assert torch.equal(recording.samples, before)

    def test_it_remembers_nothing(self, detector: SpeechDetector, recording: Recording) -> None:
        first = detector.segments(recording.samples, recording.sample_rate)
        detector.segments(_noise(3.0, self.sample_rate), self.sample_rate)
        assert detector.segments(recording.samples, recording.sample_rate) == first

    @pytest.mark.parametrize("milliseconds", [1, 10, 20, 25, 40])
    def test_a_stream_of_packets_tells_the_same(
        self, detector: SpeechDetector, recording: Recording, milliseconds: int
    ) -> None:
        packet = round(milliseconds * recording.sample_rate / 1000)
        told = _listen(detector, recording, range(packet, len(recording.samples), packet))
        _assert_same(detector, told, recording)

    @LAW
    @given(cuts=st.lists(st.floats(0, 1), max_size=20))
    def test_a_stream_cut_anywhere_tells_the_same(
        self, detector: SpeechDetector, recording: Recording, cuts: list[float]
    ) -> None:
        told = _listen(detector, recording, sorted(int(cut * len(recording.samples)) for cut in cuts))
        _assert_same(detector, told, recording)

    def test_a_stream_that_ends_early_ends_its_speech(self, detector: SpeechDetector, recording: Recording) -> None:
        middle = (recording.speech[0].start + recording.speech[0].end) / 2
        part = Recording(recording.samples[: round(middle * recording.sample_rate)], recording.sample_rate, ())
        _assert_same(detector, _listen(detector, part, [len(part.samples) // 2]), part)

    def test_events_alternate_and_never_run_ahead(self, detector: SpeechDetector, recording: Recording) -> None:
        stream = detector.stream(recording.sample_rate)
        events: list[SpeechEvent] = []
        for start in range(0, len(recording.samples), 640):
            packet = recording.samples[start : start + 640]
            new = stream.push(packet)
            heard = (start + len(packet)) / recording.sample_rate
            assert all(event.at <= heard + _ROUNDING for event in new)
            events += new
        events += stream.finish()
        assert [isinstance(event, SpeechStarted) for event in events] == [True, False] * (len(events) // 2)
        assert all(one.at <= other.at for one, other in pairwise(events))
        assert all(event.at <= recording.duration + _ROUNDING for event in events)

    def test_events_are_told_in_time(self, detector: SpeechDetector, recording: Recording) -> None:
        stream, packet = detector.stream(recording.sample_rate), recording.sample_rate // 50
        for start in range(0, len(recording.samples), packet):
            heard = start / recording.sample_rate  # before this packet
            events = stream.push(recording.samples[start : start + packet])
            assert all(heard - event.at <= detector.latency + _ROUNDING for event in events), events
        assert all(recording.duration - event.at <= detector.latency + _ROUNDING for event in stream.finish())

    def test_streams_do_not_disturb_each_other(self, detector: SpeechDetector, recording: Recording) -> None:
        backward = Recording(recording.samples.flip(0), recording.sample_rate, ())
        one, other = detector.stream(recording.sample_rate), detector.stream(recording.sample_rate)
        told, told_backward = [], []
        for start in range(0, len(recording.samples), 1000):
            told += one.push(recording.samples[start : start + 1000])
            told_backward += other.push(backward.samples[start : start + 1000])
        _assert_same(detector, [*told, *one.finish()], recording)
        _assert_same(detector, [*told_backward, *other.finish()], backward)


def toy_recording(
    sample_rate: int, speech: Sequence[Span] = (Span(1.2, 2.7), Span(4.3, 4.8), Span(6.5, 8.0)), seconds: float = 9.0
) -> Recording:
    """A buzz of 140 Hz with the formants of a vowel, in four syllables a second, over quiet noise."""
    samples = _noise(seconds, sample_rate, loudness=0.0005)
    for span in speech:
        first, last = round(span.start * sample_rate), round(span.end * sample_rate)
        time = torch.arange(last - first) / sample_rate
        buzz = torch.zeros(last - first)
        for harmonic in range(1, 25):
            pitch = 140.0 * harmonic
            if pitch < sample_rate / 2:
                weight = sum(1 / (1 + ((pitch - formant) / 120) ** 2) for formant in (700.0, 1220.0, 2600.0))
                buzz += weight * torch.sin(2 * math.pi * pitch * time)
        syllables = 0.6 - 0.4 * torch.cos(2 * math.pi * 4 * time)
        samples[first:last] += 0.05 * syllables * buzz
    return Recording(samples, sample_rate, tuple(speech))


def _noise(seconds: float, sample_rate: int, loudness: float = 0.01) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return loudness * torch.randn(round(seconds * sample_rate), generator=generator)


def _shared(one: Span, other: Span) -> float:
    """Seconds that two spans have in common."""
    return max(0.0, min(one.end, other.end) - max(one.start, other.start))


def _listen(detector: SpeechDetector, recording: Recording, cuts: Sequence[int]) -> list[SpeechEvent]:
    """Events of a recording that arrives in pieces."""
    stream = detector.stream(recording.sample_rate)
    bounds = [0, *cuts, len(recording.samples)]
    events = [event for start, end in pairwise(bounds) for event in stream.push(recording.samples[start:end])]
    return events + stream.finish()


def _assert_same(detector: SpeechDetector, events: Sequence[SpeechEvent], recording: Recording) -> None:
    offline = detector.segments(recording.samples, recording.sample_rate)
    streamed = list(spans_of(events))
    assert len(events) == 2 * len(offline), f"{events} for {offline}"
    for one, other in zip(streamed, offline, strict=True):
        assert one.start == pytest.approx(other.start, abs=detector.hop + _ROUNDING)
        assert one.end == pytest.approx(other.end, abs=detector.hop + _ROUNDING)
