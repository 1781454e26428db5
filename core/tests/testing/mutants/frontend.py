import torch

from oasr.interfaces.frontend import FeatureBatch
from oasr.testing.toys.frontend import ToyFrontend


class LoudestOfAll(ToyFrontend):
    """Normalises by the loudest row of the batch."""

    def extract(self, waveforms, lengths):
        batch = super().extract(waveforms, lengths)
        return FeatureBatch(batch.frames / batch.frames.abs().max().clamp(min=1e-5), batch.lengths)


class Forgetful(ToyFrontend):
    """Takes each piece of live audio for a waveform of its own."""

    def stream(self):
        return None

    def advance(self, streams, samples, last):
        return [self.extract(piece[None], torch.tensor([len(piece)])).frames[0] for piece in samples]
