"""Collects one input's decoded blocks into an `Audio`: limits, resampling, notes."""

import numpy as np
import torch

from oasr.audio.pcm import Float32Array, is_sound
from oasr.audio.resample import Resampler
from oasr.audio.waveform import LOUDEST, Audio
from oasr.config import AudioConfig
from oasr.errors import AudioLimitError, InvalidSamplesError


class AudioBuilder:
    """Every decoder feeds one of these with mono blocks; only audio at the target rate is held."""

    def __init__(self, source: str, target_rate: int, limits: AudioConfig):
        self.source = source
        self._target_rate = target_rate
        self._max_seconds = limits.max_seconds
        self._seconds = 0.0
        self._rate = target_rate
        self._resampler = Resampler(target_rate, target_rate)
        self._blocks: list[torch.Tensor] = []
        self._notes: list[str] = []
        self._truncated = False

    @property
    def seconds(self) -> float:
        """Decoded so far."""
        return self._seconds

    def add(self, mono: Float32Array, rate: int) -> None:
        """Append (time,) samples at `rate` Hz. The rate may differ from the last block's.

        Raises `InvalidSamplesError` on numbers that are no samples, `AudioLimitError` past the limit. Keeps `mono`:
        pass a block that nobody else writes to.
        """
        if not mono.size:
            return
        if not is_sound(mono):
            first = int(np.argmin(np.abs(mono) <= LOUDEST))
            found = f"sample at {self._seconds + first / rate:.3f} s is {mono[first]}"
            raise InvalidSamplesError(self.source, f"{found}; all must be finite and within ±{LOUDEST:g}")
        self._seconds += mono.size / rate
        if self._seconds > self._max_seconds:
            raise AudioLimitError(
                self.source,
                f"holds at least {self._seconds:.1f} s of audio; "
                f"the limit is {self._max_seconds:g} s (audio.max_seconds)",
            )
        if rate != self._rate:
            self._blocks += self._resampler.finish()
            self._rate, self._resampler = rate, Resampler(rate, self._target_rate)
        self._blocks += self._resampler.push(torch.from_numpy(mono))

    def note(self, text: str) -> None:
        """Tell the user something odd about the input."""
        self._notes.append(text)

    def cut(self, text: str) -> None:
        """Tell the user that some of the input is missing."""
        self._truncated = True
        self.note(text)

    def build(self) -> Audio:
        """The whole input; `EmptyAudioError` when no sample came."""
        self._blocks += self._resampler.finish()
        samples = torch.cat(self._blocks) if self._blocks else torch.empty(0)
        return Audio(samples, self._target_rate, self.source, self._truncated, tuple(self._notes))
