"""An `Audio` is sound from the start, whoever makes it."""

from typing import Any

import numpy as np
import pytest
import torch

from oasr.audio import Audio, read_audio
from oasr.errors import EmptyAudioError, InvalidSamplesError, RequestError

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    "samples",
    [
        torch.zeros(8, dtype=torch.int16),
        torch.zeros(8, dtype=torch.float64),
        torch.zeros(2, 8),
        torch.tensor(0.5),
        torch.zeros(8).to_sparse(),
        torch.zeros(8, device="meta"),
        np.zeros(8, np.float32),
        [0.0],
        None,
        *(torch.tensor([0.0, value, 0.0]) for value in (NAN, INFINITE, -INFINITE, 1e5, -1e30)),
    ],
    ids=str,
)
def test_what_is_no_mono_float32_on_the_cpu_is_refused(samples: Any) -> None:
    with pytest.raises(InvalidSamplesError, match="mine: samples"):
        Audio(samples, 16_000, "mine")


def test_no_samples_are_refused() -> None:
    with pytest.raises(EmptyAudioError, match="mine: holds no samples"):
        Audio(torch.empty(0), 16_000, "mine")


@pytest.mark.parametrize("rate", [0, -1, 10**6, 16_000.0, True, "16000", None])
def test_a_rate_that_is_none_is_refused(rate: Any) -> None:
    with pytest.raises(RequestError, match="sample_rate"):
        Audio(torch.zeros(8), rate, "mine")


@pytest.mark.parametrize("value", [NAN, INFINITE, 1.1e4, -1.1e4, 1e30])
def test_numbers_that_are_no_samples_are_refused_with_their_place(value: float) -> None:
    samples = np.zeros(16_000, np.float32)
    samples[8_000] = value
    with pytest.raises(InvalidSamplesError, match=r"sample at 0\.500 s is .*; all must be finite and within ±10000"):
        read_audio((samples, 16_000), target_rate=16_000)


def test_samples_far_beyond_full_scale_are_taken() -> None:
    loud = torch.tensor([9_999.0, -9_999.0])
    assert torch.equal(Audio(loud, 16_000, "loud").samples, loud)
