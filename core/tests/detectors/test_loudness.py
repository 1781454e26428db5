"""Power of frames, however the audio arrives."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oasr.detectors.loudness import Meter, loudness


def samples(count: int) -> torch.Tensor:
    return 0.1 * torch.randn(count, generator=torch.Generator().manual_seed(0))


def test_a_tone_has_half_the_square_of_its_amplitude() -> None:
    tone = 0.5 * torch.sin(2 * torch.pi * 1000 * torch.arange(16_000) / 16_000)
    measured = loudness(tone, 16_000)
    assert (len(measured.powers), measured.hop) == (50, 0.02)
    assert measured.powers == pytest.approx(np.full(50, 0.125), rel=0.01)


def test_offsets_and_slopes_are_not_loud() -> None:
    assert loudness(torch.linspace(-1, 1, 1600), 16_000).powers == pytest.approx(np.zeros(5), abs=1e-12)


@given(cuts=st.lists(st.integers(0, 5000), max_size=12))
def test_the_way_a_stream_is_cut_changes_no_bit(cuts: list[int]) -> None:
    meter, audio = Meter(16_000, 0.02), samples(5000)
    parts = torch.tensor_split(audio, sorted(cuts))
    streamed = [power for part in parts for block in meter.push(part) for power in block]
    assert streamed == loudness(audio, 16_000).powers.tolist()


def test_blocks_change_no_bit() -> None:
    audio = samples(9000 * 8)
    whole = loudness(audio, 400, 0.02).powers
    assert len(whole) == 9000
    assert whole.tolist() == [power for part in audio.split(8) for power in loudness(part, 400, 0.02).powers]


@pytest.mark.parametrize("count", [0, 1, 8, 319])
def test_less_than_a_frame_has_no_power(count: int) -> None:
    assert loudness(samples(count), 16_000).powers.tolist() == []


def test_a_rate_with_one_sample_a_frame_is_silent() -> None:
    assert loudness(samples(10), 10).powers.tolist() == [0.0] * 10
