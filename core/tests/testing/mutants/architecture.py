from dataclasses import replace

from oasr.interfaces.architecture import EncoderOutput
from oasr.testing.toys.model import ToyArchitecture, ToyHead


class PaddingMatters(ToyArchitecture):
    """Subtracts the mean over all frames, the padding included."""

    def encode(self, features):
        encoded = super().encode(features)
        return EncoderOutput(encoded.frames - encoded.frames.mean(dim=1, keepdim=True), encoded.lengths)


class NeighboursMatter(ToyArchitecture):
    """Mixes the rows of a step."""

    def decode(self, tokens, cache):
        logits = super().decode(tokens, cache)
        return logits + 0.1 * logits.mean(dim=0)


class ForgetsItsCache(ToyArchitecture):
    """Looks at the new tokens alone."""

    def decode(self, tokens, cache):
        logits = super().decode(tokens, cache)
        return logits + self.tokens(tokens).mean(dim=1, keepdim=True).sum(dim=-1, keepdim=True)


class DeafToHotwords(ToyArchitecture):
    """Takes hotwords and does nothing with them."""

    def head(self, name):
        return DeafHead(self)


class DeafHead(ToyHead):
    def check(self, options):
        super().check(replace(options, hotwords=()))
