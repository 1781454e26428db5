"""What reading an audio input returns."""

import operator
from dataclasses import dataclass
from typing import SupportsIndex

import torch

from oasr.errors import EmptyAudioError, InvalidSamplesError, RequestError

MAX_SAMPLE_RATE = 768_000
"""Hz. The highest rate that audio hardware offers; a larger number in a header is damage."""

LOUDEST = 1e4
"""80 dB above full scale. Larger numbers are no samples, or integers that nobody scaled."""


@dataclass(frozen=True, eq=False)
class Audio:
    """One decoded input, downmixed and resampled.

    `samples` is (time,) float32 on the CPU, full scale ±1, shared with nobody. `truncated` is True when part of
    the input could not be decoded, so that the end or some of the middle is missing. `notes` are sentences for the
    user about what was odd. Raises `EmptyAudioError`, `InvalidSamplesError` or `RequestError` for anything else.
    """

    samples: torch.Tensor
    sample_rate: int
    source: str
    truncated: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked_rate("sample_rate", self.sample_rate)
        held = self.samples
        if not isinstance(held, torch.Tensor):
            raise InvalidSamplesError(self.source, f"samples are of type {type(held).__name__}; pass a torch tensor")
        if held.dtype != torch.float32 or held.dim() != 1 or held.device.type != "cpu" or held.layout != torch.strided:
            found = f"{held.dtype} of shape {tuple(held.shape)} on {held.device}, {held.layout}"
            raise InvalidSamplesError(self.source, f"samples are {found}; pass dense float32 (time,) on the CPU")
        if not held.numel():
            raise EmptyAudioError(self.source, "holds no samples")
        lowest, highest = (bound.item() for bound in held.aminmax())  # in one pass, which NaN goes through
        if not -LOUDEST <= lowest <= highest <= LOUDEST:
            raise InvalidSamplesError(self.source, f"samples must be finite and within ±{LOUDEST:g}; full scale is ±1")

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
