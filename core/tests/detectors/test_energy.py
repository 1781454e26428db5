"""What the energy detector takes for speech, in memory and time that do not depend on the length."""

import csv
import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from oasr.audio import read_audio
from oasr.detectors.config import EnergyConfig
from oasr.detectors.energy import EnergyDetector
from oasr.interfaces.detector import Span, SpeechEnded, SpeechStarted
from oasr.testing.detector_suite import toy_recording

RATE = 16_000


@pytest.fixture
def detector() -> EnergyDetector:
    return EnergyDetector(EnergyConfig())


def silence(seconds: float) -> torch.Tensor:
    return torch.zeros(round(seconds * RATE))


def tone(seconds: float, amplitude: float = 0.3) -> torch.Tensor:
    return amplitude * torch.sin(2 * math.pi * 440 * torch.arange(round(seconds * RATE)) / RATE)


def noise(seconds: float, decibels: float, rate: int = RATE) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return 10 ** (decibels / 20) * torch.randn(round(seconds * rate), generator=generator)


def about(*spans: tuple[float, float]) -> list[Span]:
    return [Span(pytest.approx(start, abs=0.03), pytest.approx(end, abs=0.03)) for start, end in spans]


@pytest.mark.parametrize("seconds", [0, 8 / RATE, 0.01, 1, 5, 30])
def test_silence_is_no_speech(detector: EnergyDetector, seconds: float) -> None:
    assert detector.segments(silence(seconds), RATE) == []


@pytest.mark.parametrize("rate", [8000, 16_000, 44_100, 48_000])
@pytest.mark.parametrize("decibels", [-60, -40, -15])
def test_steady_noise_is_no_speech(detector: EnergyDetector, decibels: float, rate: int) -> None:
    assert detector.segments(noise(30, decibels, rate), rate) == []


def test_a_steady_tone_is_no_speech(detector: EnergyDetector) -> None:
    assert detector.segments(tone(30), RATE) == []


@pytest.mark.parametrize("offset", [0.0, 0.5, -0.3])
def test_a_sound_between_silences_is_found_with_padding(detector: EnergyDetector, offset: float) -> None:
    samples = torch.cat([silence(2), tone(1), silence(2)]) + offset
    assert detector.segments(samples, RATE) == about((1.8, 3.2))


def test_rumble_is_not_loud(detector: EnergyDetector) -> None:
    rumble = 0.1 * torch.sin(2 * math.pi * 3 * torch.arange(5 * RATE) / RATE)
    samples = torch.cat([silence(2), tone(1, 0.05), silence(2)]) + rumble
    assert detector.segments(samples, RATE) == about((1.8, 3.2))


@pytest.mark.parametrize(("pause", "found"), [(0.4, [(0.8, 3.6)]), (0.6, [(0.8, 2.2), (2.4, 3.8)])])
def test_short_pauses_are_part_of_the_speech(
    detector: EnergyDetector, pause: float, found: list[tuple[float, float]]
) -> None:
    samples = torch.cat([silence(1), tone(1), silence(pause), tone(1), silence(1)])
    assert detector.segments(samples, RATE) == about(*found)


def test_a_click_is_no_speech(detector: EnergyDetector) -> None:
    samples = torch.cat([silence(2), tone(0.06), silence(2), tone(0.2), silence(1)])
    assert detector.segments(samples, RATE) == about((3.86, 4.46))


def test_the_noise_is_followed(detector: EnergyDetector) -> None:
    samples = torch.cat([noise(5, -60), noise(60, -30)])
    samples[40 * RATE : 41 * RATE] += tone(1)
    found = detector.segments(samples, RATE)
    assert found[0].end < 25  # the rise itself cannot be told from speech until it lasts
    assert found[1:] == about((39.8, 41.2))


def test_a_few_dead_samples_are_not_the_noise(detector: EnergyDetector) -> None:
    samples = noise(10, -40)
    samples[: round(0.04 * RATE)] = 0
    samples[5 * RATE : round(5.1 * RATE)] = 0
    assert detector.segments(samples, RATE) == []


def test_speech_from_the_first_to_the_last_sample_is_whole(detector: EnergyDetector) -> None:
    spoken = toy_recording(RATE, [Span(0.0, 1.505)], 1.505)
    assert detector.segments(spoken.samples, RATE) == [Span(0.0, 1.505)]


def test_a_short_utterance_is_told_when_the_stream_ends(detector: EnergyDetector) -> None:
    stream = detector.stream(RATE)
    assert stream.push(torch.cat([silence(0.3), tone(0.4)])) == []
    assert stream.finish() == [SpeechStarted(pytest.approx(0.1)), SpeechEnded(pytest.approx(0.7))]


def test_events_come_while_the_stream_goes_on(detector: EnergyDetector) -> None:
    stream = detector.stream(RATE)
    assert stream.push(silence(2)) == []
    assert stream.push(tone(0.15)) == [SpeechStarted(pytest.approx(1.8))]
    assert stream.push(tone(1)) == []
    assert stream.push(silence(0.3)) == []
    assert stream.push(silence(0.3)) == [SpeechEnded(pytest.approx(3.36, abs=0.03))]
    assert stream.finish() == []


def test_a_stream_of_an_hour_takes_no_more_memory_than_a_minute(detector: EnergyDetector) -> None:
    stream = detector.stream(1000)
    minute = noise(60, -40, rate=1000)

    def held() -> int:
        for _ in range(10):
            stream.push(minute)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        first = held()
        for _ in range(5):
            last = held()
    finally:
        tracemalloc.stop()
    assert last < first + 20_000


def test_all_that_is_loud_in_recorded_speech_is_found(detector: EnergyDetector, shared: Callable[[str], Path]) -> None:
    """Within 25 dB of the loudest frames: all of it in most recordings, the most part in the worst."""
    folder = shared("audio")
    with (folder / "manifest.tsv").open(encoding="utf-8", newline="") as lines:
        paths = [row["path"] for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    parts = []
    for path in paths:
        samples = read_audio(folder / path, target_rate=RATE).samples
        frames = samples[: len(samples) // 320 * 320].view(-1, 320).var(dim=1, correction=0)
        loud = frames > frames.quantile(0.95) / 10**2.5
        for signal_to_noise in (60, 20):
            noisy = samples + float(samples.std()) * noise(len(samples) / RATE, -signal_to_noise)
            found = torch.zeros(len(frames), dtype=torch.bool)
            for span in detector.segments(noisy, RATE):
                found[round(span.start / 0.02) : round(span.end / 0.02)] = True
            parts.append(float(found[loud].float().mean()))
    assert min(parts) > 0.9
    assert sum(parts) / len(parts) > 0.995


def test_pauses_of_recorded_speech_are_left_out(detector: EnergyDetector, shared: Callable[[str], Path]) -> None:
    speech = read_audio(shared("audio/misc/jfk.flac"), target_rate=RATE).samples
    samples = torch.cat([noise(4, -60), speech, noise(5, -60), speech, noise(4, -60)])
    found = detector.segments(samples, RATE)
    quiet = [Span(0.0, 3.5), Span(15.5, 19.5), Span(31.5, 35.0)]
    assert [
        (pause, span) for pause in quiet for span in found if span.start < pause.end and span.end > pause.start
    ] == []
    assert sum(span.duration for span in found) > 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"padding_seconds": 0.3}, "half of least_pause_seconds"),
        ({"end_decibels": 8.0}, "speech would end where it starts"),
        ({"lead_seconds": 21.0}, "more than noise_seconds"),
        ({"threshold": 1}, "Extra inputs"),
    ],
)
def test_options_that_contradict_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EnergyConfig(**options)


@pytest.mark.parametrize("rate", [1, 40, 100, 768_000])
def test_no_rate_is_an_error(detector: EnergyDetector, rate: int) -> None:
    for seconds in (0.5, 3):
        assert detector.segments(torch.zeros(int(seconds * rate)), rate) == []
