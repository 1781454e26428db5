"""What makes one Conformer different from another."""

from typing import Literal

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from oasr.interfaces.component import ComponentConfig

Activation = Literal["relu", "gelu", "swish"]


class FeatureConfig(ComponentConfig):
    """The filter bank the network was trained on."""

    sample_rate: PositiveInt = 16_000
    """Hertz."""
    mel_bins: PositiveInt = 80
    frame_length_ms: PositiveFloat = 25.0
    frame_shift_ms: PositiveFloat = 10.0


class ConvolutionConfig(ComponentConfig):
    """The convolution module of each block."""

    kernel: PositiveInt
    causal: bool
    """Looks back only, so that a chunk can be read before the next one is there."""
    norm: Literal["batch", "layer"]


class DecoderConfig(ComponentConfig):
    """The attention decoders that score hypotheses."""

    layers: PositiveInt
    """Of the decoder that reads left to right."""
    reverse_layers: NonNegativeInt
    """Of the decoder that reads right to left; 0 without one."""
    heads: PositiveInt
    feed_forward: PositiveInt
    activation: Activation
    normalize_before: bool
    norm_epsilon: PositiveFloat
    start: NonNegativeInt
    """The token each hypothesis begins with."""
    end: NonNegativeInt
    reverse_weight: float
    """Weight of the right-to-left score."""


class ConformerConfig(ComponentConfig):
    """Sizes of the network and what it was trained for."""

    features: FeatureConfig
    normalized_features: bool
    """The weights hold a mean and a deviation of each mel bin."""
    subsampling: Literal[4, 6, 8]
    """Feature frames of one encoder frame."""
    width: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    feed_forward: PositiveInt
    macaron: bool
    """Each block begins with half a feed-forward layer, and its last one counts half."""
    convolution: ConvolutionConfig | None
    """None for a Transformer."""
    positions: Literal["relative", "absolute"]
    activation: Activation
    normalize_before: bool
    norm_epsilon: PositiveFloat
    dynamic_chunk: bool
    """Trained on chunks of every size."""
    static_chunk: NonNegativeInt
    """The one chunk size it was trained on, in encoder frames; 0 when there is none."""
    vocabulary_size: PositiveInt
    blank: NonNegativeInt
    decoder: DecoderConfig | None
    tokenizer: Literal["symbols", "sentencepiece"]

    @property
    def streams(self) -> bool:
        """Whether a chunk can be read without what follows it."""
        looks_back_only = self.convolution is None or self.convolution.causal
        return looks_back_only and (self.dynamic_chunk or self.static_chunk > 0)
