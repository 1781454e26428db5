"""The toy's features: linear in the samples, so that a test can predict what the network sees."""

import torch
import torch.nn.functional as F

from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.frontend import FeatureBatch, Frontend

SAMPLE_RATE = 16_000
HOP_SAMPLES = 160
FEATURES = 8
"""Four block means and four block means of magnitudes, for each hop."""


class ToyFrontend(Frontend):
    """Frames of one hop without overlap; the last is filled up with silence."""

    sample_rate = SAMPLE_RATE

    def __init__(self, config: ComponentConfig | None):
        super().__init__(config)

    def frames(self, samples: int) -> int:
        return -(-samples // HOP_SAMPLES)

    def extract(self, waveforms: torch.Tensor, lengths: torch.Tensor) -> FeatureBatch:
        hops = max(self.frames(waveforms.shape[1]), 1)
        padded = F.pad(waveforms, (0, hops * HOP_SAMPLES - waveforms.shape[1]))
        blocks = padded.view(len(padded), hops, FEATURES // 2, -1)
        frames = torch.cat((blocks.mean(dim=-1), blocks.abs().mean(dim=-1)), dim=-1)
        return FeatureBatch(frames, (lengths + HOP_SAMPLES - 1) // HOP_SAMPLES)
