"""How loud audio is, frame by frame."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Powers = np.ndarray[Any, np.dtype[np.float64]]

_BLOCK_FRAMES = 4096


@dataclass(frozen=True, eq=False, slots=True)
class Loudness:
    """Power of consecutive frames, full scale 1, and the seconds from one to the next."""

    powers: Powers
    hop: float


def loudness(samples: torch.Tensor, sample_rate: int, frame_seconds: float = 0.02) -> Loudness:
    """Of samples (samples,) in memory that does not grow with them; less than a frame at the end is left out."""
    meter = Meter(sample_rate, frame_seconds)
    return Loudness(np.concatenate([np.zeros(0), *meter.push(samples)]), meter.hop)


class Meter:
    """Measures a stream. However it is cut into pushes, the powers are the same to the bit."""

    def __init__(self, sample_rate: int, frame_seconds: float):
        self._frame_samples = max(1, round(frame_seconds * sample_rate))
        self.hop = self._frame_samples / sample_rate
        self._rest = torch.zeros(0)

    def push(self, samples: torch.Tensor) -> Iterator[Powers]:
        """Powers of the frames that are complete now, in blocks."""
        block_samples = _BLOCK_FRAMES * self._frame_samples
        for start in range(0, len(samples), block_samples):
            heard = torch.cat([self._rest, samples[start : start + block_samples]])
            frames = len(heard) // self._frame_samples
            self._rest = heard[frames * self._frame_samples :].clone()
            if frames:
                yield _powers(heard[: frames * self._frame_samples].numpy().reshape(frames, -1))


def _powers(frames: np.ndarray[Any, np.dtype[np.float32]]) -> Powers:
    """Mean square around the straight line through each frame: offsets and rumble are not loud."""
    exact = frames.astype(np.float64)
    exact -= exact.mean(axis=1, keepdims=True)
    energies: Powers = np.einsum("ij,ij->i", exact, exact)
    ramp = np.arange(exact.shape[1]) - (exact.shape[1] - 1) / 2
    if ramp.any():
        energies -= np.einsum("ij,j->i", exact, ramp) ** 2 / (ramp @ ramp)
    powers: Powers = np.maximum(energies, 0.0) / exact.shape[1]
    return powers
