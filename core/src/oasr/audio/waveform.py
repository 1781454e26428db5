"""What reading an audio input returns."""

import operator
from dataclasses import dataclass
from typing import SupportsIndex

import torch

from oasr.errors import RequestError

MAX_SAMPLE_RATE = 768_000
"""Hz. The highest rate that audio hardware offers; a larger number in a header is damage."""


@dataclass(frozen=True, eq=False)
class Audio:
    """One decoded input, downmixed and resampled.

    `samples` is (time,) float32 on the CPU, full scale ±1, shared with nobody. `truncated` is True when part of
    the input could not be decoded, so that the end or some of the middle is missing. `notes` are sentences for the
    user about what was odd.
    """

    samples: torch.Tensor
    sample_rate: int
    source: str
    truncated: bool = False
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.samples.numel() / self.sample_rate


def checked_rate(name: str, value: SupportsIndex) -> int:
    """`value` as an int in Hz, or a `RequestError` that calls it `name`."""
    try:
        rate = operator.index(value)
    except TypeError:
        rate = 0
    if isinstance(value, bool) or not 1 <= rate <= MAX_SAMPLE_RATE:
        raise RequestError(f"{name} must be a whole number of Hz from 1 to {MAX_SAMPLE_RATE}, not {value!r}")
    return rate
