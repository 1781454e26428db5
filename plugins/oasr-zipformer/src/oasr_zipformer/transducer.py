"""The networks of a transducer with a stateless prediction network (Ghodsi et al., 2020), as icefall builds them."""

from torch import nn

from oasr.nn import Embedding, Linear
from oasr_zipformer.config import TransducerConfig

_GROUP = 4
"""Channels that a group of the convolution reads."""


class Prediction(nn.Module):
    """Sees the last tokens and nothing else; of a single token only its embedding."""

    def __init__(self, config: TransducerConfig, vocabulary_size: int):
        super().__init__()
        width = config.width
        self.tokens = Embedding(vocabulary_size, width)
        if config.context > 1:
            self.conv = nn.Conv1d(width, width, config.context, groups=width // _GROUP, bias=False)


class Joiner(nn.Module):
    """Scores of the next token from a frame and the tokens so far."""

    def __init__(self, config: TransducerConfig, encoder_width: int, vocabulary_size: int):
        super().__init__()
        self.encoder = Linear(encoder_width, config.joiner_width)
        self.prediction = Linear(config.width, config.joiner_width)
        self.out = Linear(config.joiner_width, vocabulary_size)
