"""Log-mel frames are those of the formula, for audio of any length."""

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from oasr.features.config import LogMelConfig
from oasr.features.log_mel import LogMel
from oasr.interfaces.frontend import Excerpts

RATE, FFT, HOP = 16_000, 400, 160
LENGTHS = [0, 1, 8, 144, 159, 160, 399, 400, 401, 5000, 16_000]


def noise(samples: int, seed: int = 0) -> torch.Tensor:
    return 0.3 * torch.randn(samples, generator=torch.Generator().manual_seed(seed))


def slaney_filters(bins: int) -> np.ndarray:
    """Triangles on Slaney's scale (linear to 1 kHz, logarithmic above), of equal area; (bins, FFT // 2 + 1)."""

    def to_hertz(mel: np.ndarray) -> np.ndarray:
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))

    top = 15 + 27 * np.log(RATE / 2 / 1000) / np.log(6.4)
    edges = to_hertz(np.linspace(0, top, bins + 2))
    frequencies = np.arange(FFT // 2 + 1) * RATE / FFT
    filters = np.zeros((bins, len(frequencies)))
    for band, (low, centre, high) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        rising = (frequencies - low) / (centre - low)
        falling = (high - frequencies) / (high - centre)
        filters[band] = np.maximum(0, np.minimum(rising, falling)) * 2 / (high - low)
    return filters


def by_formula(samples: np.ndarray, window_seconds: float, bins: int) -> np.ndarray:
    """Whisper's features in double precision, frame by frame; (frames, bins)."""
    total = round(window_seconds * RATE)
    padded = np.pad(np.pad(samples, (0, total - len(samples))), FFT // 2, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)
    frames = np.stack([padded[start : start + FFT] * window for start in range(0, total, HOP)])
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    decades = np.log10(np.maximum(power @ slaney_filters(bins).T, 1e-10))
    return (np.maximum(decades, decades.max() - 8) + 4) / 4


@pytest.mark.parametrize("samples", LENGTHS)
@pytest.mark.parametrize("bins", [80, 128])
def test_frames_are_those_of_the_formula(samples: int, bins: int) -> None:
    frontend = LogMel(LogMelConfig(mel_bins=bins, window_seconds=1.0))
    batch = frontend.extract(noise(samples)[None], torch.tensor([samples]))
    expected = by_formula(noise(samples).double().numpy(), 1.0, bins)
    assert np.abs(batch.frames[0].numpy() - expected).max() < 1e-4


@pytest.mark.parametrize(("samples", "frames"), [(0, 0), (1, 1), (159, 1), (160, 1), (161, 2), (400, 3), (16_000, 100)])
def test_every_hop_that_was_begun_is_a_valid_frame(samples: int, frames: int) -> None:
    frontend = LogMel(LogMelConfig(window_seconds=1.0))
    assert frontend.extract(noise(samples)[None], torch.tensor([samples])).lengths.tolist() == [frames]


@pytest.mark.parametrize("samples", LENGTHS)
def test_all_audio_is_padded_to_one_window(samples: int) -> None:
    frontend = LogMel(LogMelConfig(window_seconds=2.0))
    batch = frontend.extract(noise(samples)[None], torch.tensor([samples]))
    assert batch.frames.shape == (1, 200, 80)
    assert frontend.frames(samples) == 200


def test_the_window_is_30_seconds_unless_the_checkpoint_says_otherwise() -> None:
    assert LogMel(LogMelConfig()).frames(1) == 3000


def test_rows_of_a_batch_are_as_they_are_alone() -> None:
    frontend = LogMel(LogMelConfig(window_seconds=1.0))
    waveforms = [noise(samples, seed) for seed, samples in enumerate(LENGTHS)]
    together = frontend.extract(pad_sequence(waveforms, batch_first=True), torch.tensor(LENGTHS))
    for row, waveform in enumerate(waveforms):
        alone = frontend.extract(waveform[None], torch.tensor([len(waveform)]))
        torch.testing.assert_close(alone.frames[0], together.frames[row], atol=1e-5, rtol=0)


def test_the_loudest_point_of_one_row_does_not_raise_the_floor_of_another() -> None:
    frontend = LogMel(LogMelConfig(window_seconds=1.0))
    quiet, loud = 1e-4 * noise(16_000), noise(16_000, seed=1)
    together = frontend.extract(torch.stack((quiet, loud)), torch.tensor([16_000, 16_000]))
    alone = frontend.extract(quiet[None], torch.tensor([16_000]))
    torch.testing.assert_close(alone.frames[0], together.frames[0], atol=1e-5, rtol=0)


def test_silence_is_the_floor_everywhere() -> None:
    frontend = LogMel(LogMelConfig(window_seconds=1.0))
    frames = frontend.extract(torch.zeros(1, 16_000), torch.tensor([16_000])).frames
    assert frames.eq(-1.5).all()


WHOLE = 32_100
"""Samples of an input of two windows of a second and a bit."""


def excerpt(
    frontend: LogMel, audio: torch.Tensor, start: int, known: int, loudest: float
) -> tuple[torch.Tensor, float]:
    """Features of the window of `audio` that begins at `start`, and what was loudest with it."""
    margin = frontend.margin_samples
    around = torch.nn.functional.pad(audio, (margin, margin + RATE))[start : start + RATE + 2 * margin]
    features, heard = frontend.extract_excerpts(
        Excerpts(around[None], torch.tensor([known]), torch.tensor([start == 0]), torch.tensor([loudest]))
    )
    return features.frames[0], float(heard[0])


@pytest.mark.parametrize("start", [0, 1600, 8000, 15_840, 16_000])
def test_windows_are_parts_of_the_features_of_the_whole(start: int) -> None:
    audio = noise(WHOLE)
    audio[20_000:28_000] *= 1e-5  # silence that only what is loudest elsewhere tells from speech
    whole = LogMel(LogMelConfig(window_seconds=3.0))
    expected = whole.extract(audio[None], torch.tensor([WHOLE])).frames[0]
    frontend = LogMel(LogMelConfig(window_seconds=1.0))
    frames, _ = excerpt(frontend, audio, start, RATE, float(frontend.loudest(audio)))
    torch.testing.assert_close(frames, expected[start // HOP : start // HOP + 100], atol=1e-5, rtol=0)


@pytest.mark.parametrize("samples", LENGTHS)
def test_behind_the_input_features_are_zeros(samples: int) -> None:
    frontend = LogMel(LogMelConfig(window_seconds=1.0))
    frames, _ = excerpt(frontend, noise(samples), 0, samples, -torch.inf)
    assert frames.isfinite().all()
    assert frames[samples // HOP :].eq(0).all()
    assert frames[: samples // HOP].ne(0).any(dim=1).all()


def test_silence_that_belongs_to_the_input_is_none_of_these() -> None:
    frontend = LogMel(LogMelConfig(window_seconds=1.0))
    frames, _ = excerpt(frontend, noise(5000), 0, RATE, -torch.inf)
    expected = frontend.extract(noise(5000)[None], torch.tensor([5000])).frames[0]
    torch.testing.assert_close(frames, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("samples", [RATE, RATE + 1, WHOLE])
def test_the_loudest_of_an_input_is_that_of_its_windows(samples: int) -> None:
    frontend = LogMel(LogMelConfig(window_seconds=1.0))
    audio = noise(samples)
    heard = -torch.inf
    for start in range(0, samples, RATE):
        _, heard = excerpt(frontend, audio, start, RATE, heard)
    assert float(frontend.loudest(audio)) == pytest.approx(heard, abs=1e-5)
