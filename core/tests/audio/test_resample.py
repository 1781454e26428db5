"""Rate conversion: torchaudio's filter, in blocks that leave no trace."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchaudio.transforms import Resample

from oasr.audio import resample
from oasr.audio.resample import Resampler


def convert(samples, source, target, sizes=None):
    resampler = Resampler(source, target)
    pieces = samples.split(sizes if sizes else samples.numel())
    return torch.cat([block for piece in pieces for block in resampler.push(piece)] + resampler.finish())


@pytest.mark.parametrize(
    ("source", "target"),
    [(44100, 16000), (48000, 16000), (8000, 16000), (11025, 16000), (22050, 16000), (16000, 44100)],
)
def test_blocks_equal_torchaudio_on_the_whole(source, target):
    samples = torch.randn(13 * source, generator=torch.Generator().manual_seed(0))
    whole = Resample(source, target)(samples)
    torch.testing.assert_close(convert(samples, source, target), whole, rtol=0, atol=5e-6)


@pytest.mark.parametrize(("source", "target"), [(44100, 16000), (8000, 16000), (16000, 8000)])
def test_the_filter_without_a_table_equals_the_one_with(monkeypatch, source, target):
    samples = torch.randn(2 * source, generator=torch.Generator().manual_seed(0))
    whole = Resample(source, target)(samples)
    monkeypatch.setattr(resample, "_MAX_TABLE", 0)
    # torchaudio computes the phases of its table in float32.
    torch.testing.assert_close(convert(samples, source, target), whole, rtol=0, atol=3e-5)


@pytest.mark.parametrize("source", [44101, 15999, 191_999, 7])
def test_rates_without_a_common_divisor_are_converted(snr, source):
    hertz = source / 50
    time = torch.arange(4 * source, dtype=torch.float64) / source
    tone = (0.5 * torch.sin(2 * math.pi * hertz * time)).float()
    converted = convert(tone, source, 16000)
    assert converted.numel() == 64000
    assert snr(converted[8000:-8000], 16000, hertz) > 40


@settings(max_examples=40, deadline=None)
@given(
    rates=st.sampled_from([(44100, 16000), (8000, 16000), (16000, 16000), (3, 7), (16001, 8000)]),
    count=st.integers(1, 60_000),
    size=st.integers(1, 70_000),
)
def test_any_cutting_gives_the_same_samples_and_the_right_number(rates, count, size):
    samples = torch.randn(count, generator=torch.Generator().manual_seed(count))
    whole = convert(samples, *rates)
    assert whole.numel() == -(-count * rates[1] // rates[0])
    torch.testing.assert_close(convert(samples, *rates, sizes=max(size, count // 50)), whole, rtol=0, atol=1e-5)


def test_a_long_signal_has_no_seams(snr):
    time = torch.arange(40 * 44100, dtype=torch.float64) / 44100
    tone = (0.5 * torch.sin(2 * math.pi * 440 * time)).float()
    converted = convert(tone, 44100, 16000, sizes=1152)
    assert snr(converted, 16000) > 80
