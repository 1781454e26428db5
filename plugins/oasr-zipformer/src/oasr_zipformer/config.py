"""What makes one Zipformer different from another."""

from typing import Literal

from pydantic import NonNegativeInt, PositiveInt

from oasr.interfaces.component import ComponentConfig


class StackConfig(ComponentConfig):
    """Layers that run at one frame rate."""

    downsampling: PositiveInt
    """Frames of the front end, 20 ms apart, in one frame of this stack."""
    layers: PositiveInt
    width: PositiveInt
    heads: PositiveInt
    query_size: PositiveInt
    """Size of the queries and keys of one head."""
    value_size: PositiveInt
    position_size: PositiveInt
    """Size of what one head asks of relative positions."""
    feed_forward: PositiveInt
    """Hidden width of the second of three feed-forward modules; the first has 3/4 of it, the third 5/4."""
    kernel: PositiveInt
    """Frames of the depthwise convolutions."""


class TransducerConfig(ComponentConfig):
    """A stateless prediction network and a joiner."""

    width: PositiveInt
    context: PositiveInt
    """Tokens the prediction network sees."""
    joiner_width: PositiveInt


class ZipformerConfig(ComponentConfig):
    """Sizes of the network, and the chunks it was trained for."""

    mel_bins: PositiveInt
    stacks: tuple[StackConfig, ...]
    position_width: PositiveInt
    """Size of the encoding of relative positions, before the projection of each layer."""
    output_downsampling: PositiveInt
    vocabulary_size: PositiveInt
    blank: NonNegativeInt
    ctc: bool
    transducer: TransducerConfig | None
    causal: bool
    chunks: tuple[PositiveInt, ...]
    """Chunk sizes, in encoder frames, that live audio may be read in; empty when it cannot be."""
    left_contexts: tuple[PositiveInt, ...]
    tokenizer: Literal["sentencepiece", "symbols"]

    @property
    def width(self) -> int:
        """Width of the encoder output."""
        return max(stack.width for stack in self.stacks)
