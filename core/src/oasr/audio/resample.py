"""Sample rate conversion, one block at a time.

The filter is a Hann-windowed sinc, the default of `torchaudio.transforms.Resample`, so features equal those of
toolkits that call torchaudio on the whole file. Blocks overlap by more than the filter's reach: the joins are exact.
"""

import math
from functools import lru_cache

import torch
from torchaudio.transforms import Resample

_ZERO_CROSSINGS = 6
_ROLLOFF = 0.99
_BLOCK_SAMPLES = 1 << 18
# torchaudio tabulates the filter for every phase: 76 thousand numbers for 44.1 to 16 kHz, but 700 million for
# 44101 Hz. Past this many numbers the filter is evaluated where it is needed instead.
_MAX_TABLE = 1 << 22
_DIRECT_TAPS = 1 << 20


class Resampler:
    """Converts one signal; `push` blocks of any size in order, then `finish` once."""

    def __init__(self, source_rate: int, target_rate: int):
        common = math.gcd(source_rate, target_rate)
        self._source, self._target = source_rate // common, target_rate // common
        # All three are multiples of `source`, so that every window starts at phase zero of the filter.
        self._reach = self._source * (math.ceil(_half_width(self._source, self._target) / self._source) + 1)
        self._block = self._source * max(1, _BLOCK_SAMPLES // self._source)
        self._window = 2 * self._reach + self._block
        self._pending = [torch.zeros(self._reach)]
        self._pending_samples = self._reach
        self._received = 0
        self._returned = 0

    def push(self, samples: torch.Tensor) -> list[torch.Tensor]:
        """Take (time,) float32 at the source rate; return the blocks at the target rate that became ready."""
        self._received += samples.numel()
        if self._source == self._target:
            return [samples]
        self._pending.append(samples)
        self._pending_samples += samples.numel()
        if self._pending_samples < self._window:
            return []
        held = torch.cat(self._pending)
        ready = []
        while held.numel() >= self._window:
            ready.append(self._convert(held[: self._window]))
            held = held[self._block :]
        self._pending, self._pending_samples = [held.clone()], held.numel()
        self._returned += sum(block.numel() for block in ready)
        return ready

    def finish(self) -> list[torch.Tensor]:
        """The rest. In total ceil(received * target / source) samples have been returned."""
        if self._source == self._target or not self._received:
            return []
        missing = -(-self._received * self._target // self._source) - self._returned
        # Zeros up to a whole number of source periods, then the filter's reach.
        rest = self._pending_samples - self._reach
        padding = torch.zeros(self._reach + -rest % self._source)
        return [self._convert(torch.cat([*self._pending, padding]))[:missing].clone()]

    def _convert(self, window: torch.Tensor) -> torch.Tensor:
        """Outputs for the middle of `window`, which extends `reach` samples to both sides of it."""
        if _table_size(self._source, self._target) > _MAX_TABLE:
            return _evaluate(window, self._source, self._target, self._reach)
        skipped = self._reach // self._source * self._target
        count = (window.numel() - 2 * self._reach) // self._source * self._target
        with torch.no_grad():
            converted: torch.Tensor = _tabulated(self._source, self._target)(window)
        return converted[skipped : skipped + count]


def _half_width(source: int, target: int) -> int:
    return math.ceil(_ZERO_CROSSINGS * source / (min(source, target) * _ROLLOFF))


def _table_size(source: int, target: int) -> int:
    return target * (source + 2 * _half_width(source, target))


@lru_cache(maxsize=32)
def _tabulated(source: int, target: int) -> Resample:
    return Resample(source, target, lowpass_filter_width=_ZERO_CROSSINGS, rolloff=_ROLLOFF)


def _evaluate(window: torch.Tensor, source: int, target: int, reach: int) -> torch.Tensor:
    """The same filter without a table: slower, exact for any pair of rates, memory independent of both."""
    scale = min(source, target) * _ROLLOFF / source
    half = _half_width(source, target)
    taps = torch.arange(-half, half + 1)
    count = (window.numel() - 2 * reach) // source * target
    step = max(1, _DIRECT_TAPS // taps.numel())
    blocks = []
    for first in range(0, count, step):
        # Output n lies at source position n * source / target, split in integers into a sample and a fraction.
        position = torch.arange(first, min(first + step, count)) * source
        sample, fraction = position // target, (position % target).double() / target
        phase = ((taps - fraction[:, None]) * scale).clamp(-_ZERO_CROSSINGS, _ZERO_CROSSINGS)
        weights = torch.sinc(phase) * torch.cos(phase * (math.pi / _ZERO_CROSSINGS / 2)) ** 2 * scale
        blocks.append((window[sample[:, None] + taps + reach] * weights.float()).sum(1))
    return torch.cat(blocks)
