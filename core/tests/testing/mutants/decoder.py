import torch

from oasr.interfaces.decoder import LabelSynchronousDecoder


class Neighbourly(LabelSynchronousDecoder):
    """Looks at the other rows."""

    def __init__(self, config):
        pass

    def advance(self, logits, generated, counts, states):
        return (logits - 0.9 * logits.mean(dim=0)).argmax(dim=-1)


class InPlace(LabelSynchronousDecoder):
    """Alters what it was given, and does not say which head it needs."""

    def __init__(self, config):
        pass

    def advance(self, logits, generated, counts, states):
        return logits.sub_(logits.amax()).argmax(dim=-1)


class SharedDice(LabelSynchronousDecoder):
    """Draws all rows from one generator."""

    def __init__(self, config):
        pass

    def start(self, options, device):
        return options.temperature

    def advance(self, logits, generated, counts, states):
        if not any(states):
            return logits.argmax(dim=-1)
        return torch.multinomial(logits.softmax(dim=-1), 1)[:, 0]
