"""Audio for toys: loud enough to matter, and different for every seed."""

import torch

from oasr.testing.toys.frontend import SAMPLE_RATE


def toy_audio(seed: int, seconds: float = 0.6) -> torch.Tensor:
    """Noise whose loudness and offset wander, float32 (samples,) at the toy's rate."""
    generator = torch.Generator().manual_seed(seed)
    samples = round(seconds * SAMPLE_RATE)
    steps = torch.randn(2, samples // 1600 + 2, generator=generator)
    loudness, offset = steps.repeat_interleave(1600, dim=1)[:, :samples].unbind()
    noise = 0.1 * torch.randn(samples, generator=generator)
    return (noise * loudness + 0.3 * offset).clamp(-1, 1)
