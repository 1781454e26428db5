"""One input, decoded as it is read: limits, resampling, notes."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch

from oasr.audio.pcm import Float32Array, is_sound
from oasr.audio.resample import Resampler
from oasr.audio.waveform import LOUDEST, Audio
from oasr.config import AudioConfig
from oasr.errors import AudioLimitError, EmptyAudioError, InvalidSamplesError

Blocks = Generator[tuple[Float32Array, int]]
"""Mono blocks (time,) and their rates in Hz. Nobody else writes to the blocks; the rate may change between them."""


@dataclass(slots=True)
class Findings:
    """What is learnt about one input while it is decoded."""

    source: str
    notes: list[str] = field(default_factory=list)
    """Sentences for the user about what is odd."""
    truncated: bool = False
    """Some of the input is missing."""
    seconds: float = 0.0
    """Decoded so far."""

    def note(self, text: str) -> None:
        """Tell the user something odd about the input."""
        self.notes.append(text)

    def cut(self, text: str) -> None:
        """Tell the user that some of the input is missing."""
        self.truncated = True
        self.note(text)


class AudioStream:
    """One input from its start to its end, in memory that does not grow with it.

    Not thread-safe, but free to move between threads.
    """

    def __init__(self, findings: Findings, blocks: Generator[torch.Tensor], sample_rate: int):
        """`blocks` are (time,) float32 at `sample_rate`. The first is decoded at once, and raises what is wrong there.

        Raises `EmptyAudioError` when there is none.
        """
        self.findings = findings
        self.sample_rate = sample_rate
        self._blocks = blocks
        # One block ahead, so that a stream knows when it has come to its end.
        self._next: torch.Tensor | None = next(blocks, None)
        if self._next is None:
            raise EmptyAudioError(findings.source, "holds no samples")

    @classmethod
    def of(cls, audio: Audio) -> Self:
        """Samples that are in memory: read in one piece, and not copied."""
        findings = Findings(audio.source, list(audio.notes), audio.truncated)
        return cls(findings, (block for block in [audio.samples]), audio.sample_rate)

    @property
    def ended(self) -> bool:
        """Whether all has been read."""
        return self._next is None

    def read(self, least: int) -> torch.Tensor:
        """The next samples: `least` or some more, fewer only at the end.

        Raises the `AudioError` of what is wrong with them; the stream is closed then.
        """
        held = []
        missing = least
        while missing > 0 and self._next is not None:
            block, self._next = self._next, None
            held.append(block)
            missing -= len(block)
            self._next = next(self._blocks, None)
        return held[0] if len(held) == 1 else torch.cat([torch.empty(0), *held])

    def read_all(self) -> Audio:
        """All that has not been read."""
        samples = self.read(2**63)
        found = self.findings
        return Audio(samples, self.sample_rate, found.source, found.truncated, tuple(found.notes))

    def close(self) -> None:
        """Let go of the file; nothing more can be read."""
        self._next = None
        self._blocks.close()


def resampled(decoded: Blocks, target_rate: int, limits: AudioConfig, findings: Findings) -> Generator[torch.Tensor]:
    """Blocks (time,) at `target_rate`.

    Raises `InvalidSamplesError` on numbers that are no samples, `AudioLimitError` past the limit.
    """
    source_rate, resampler = target_rate, Resampler(target_rate, target_rate)
    with closing(decoded):
        for mono, rate in decoded:
            if not mono.size:
                continue
            _check(mono, rate, limits, findings)
            if rate != source_rate:
                yield from resampler.finish()
                source_rate, resampler = rate, Resampler(rate, target_rate)
            yield from resampler.push(torch.from_numpy(mono))
    yield from resampler.finish()


def _check(mono: Float32Array, rate: int, limits: AudioConfig, findings: Findings) -> None:
    if not is_sound(mono):
        first = int(np.argmin(np.abs(mono) <= LOUDEST))
        found = f"sample at {findings.seconds + first / rate:.3f} s is {mono[first]}"
        raise InvalidSamplesError(findings.source, f"{found}; all must be finite and within ±{LOUDEST:g}")
    findings.seconds += mono.size / rate
    if findings.seconds > limits.max_seconds:
        raise AudioLimitError(
            findings.source,
            f"holds at least {findings.seconds:.1f} s of audio; "
            f"the limit is {limits.max_seconds:g} s (audio.max_seconds)",
        )
