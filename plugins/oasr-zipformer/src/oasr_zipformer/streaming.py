"""The encoder on live audio, a batch of streams at once."""

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.streaming import ChunkShape, StreamingEncoder, StreamLayout, StreamView
from oasr_zipformer.config import StackConfig
from oasr_zipformer.encoder import relative_positions
from oasr_zipformer.subsampling import CHANNELS, FEWEST_FRAMES, LOOK_AHEAD, bands
from oasr_zipformer.timeline import StreamPast, chunk_timeline

if TYPE_CHECKING:
    from oasr_zipformer.model import Zipformer

SILENCE = math.log(1e-10)
"""Features of no sound at all, which icefall pads with."""
_TAIL = 30
"""Feature frames of silence that icefall adds behind an input, so that the last token comes out."""
_STRIDE = 2
"""Of the front end."""
_FRONT = "front"
_HELD = ("keys", "gated", "values1", "values2", "convolution1", "convolution2")
"""What a layer holds of the frames before."""


class ZipformerStreams(StreamingEncoder):
    """The encoder at one chunk size and left context, both in encoder frames."""

    def __init__(self, model: "Zipformer", chunk: int, left_context: int):
        config = model.config
        self._model = model
        self._chunk = chunk * config.output_downsampling
        self._left_context = left_context * config.output_downsampling
        look_ahead = FEWEST_FRAMES - _STRIDE + _STRIDE * LOOK_AHEAD
        self.shape = ChunkShape(
            window=_STRIDE * self._chunk + look_ahead,
            hop=_STRIDE * self._chunk,
            frames=chunk,
            tail=look_ahead + _TAIL,
            padding=SILENCE,
        )
        slots: dict[str, tuple[int, ...]] = {_FRONT: (LOOK_AHEAD, CHANNELS[-1], bands(config.mel_bins))}
        self._distances = []
        for index, stack in enumerate(config.stacks):
            frames, left = self._chunk // stack.downsampling, self._left_context // stack.downsampling
            slots |= {f"{name}.{index}": shape for name, shape in _held(stack, left).items()}
            self._distances.append(
                relative_positions(frames, left + frames, config.position_width, model.encoder.downsampling.bias)
            )
        self.layout = StreamLayout(slots)

    def encode_chunk(self, features: FeatureBatch, streams: StreamView) -> EncoderOutput:
        x = self._front(features, streams)
        # Both are counted in frames of the front end here.
        ages = streams.ages * self._model.config.output_downsampling
        timelines, pasts = [], []
        for index, stack in enumerate(self._model.config.stacks):
            factor = stack.downsampling
            timelines.append(chunk_timeline(ages // factor, self._chunk // factor, self._left_context // factor))
            held = {name: streams.load(f"{name}.{index}").unbind(1) for name in _HELD}
            pasts.append([StreamPast({name: held[name][layer] for name in _HELD}) for layer in range(stack.layers)])
        frames = self._model.encoder(x, None, self._distances, timelines, pasts)
        for index, layers in enumerate(pasts):
            for name in _HELD:
                streams.store(f"{name}.{index}", torch.stack([past.newest[name] for past in layers], dim=1))
        return EncoderOutput(frames, torch.full_like(features.lengths, self.shape.frames))

    def encode_whole(self, features: FeatureBatch) -> EncoderOutput:
        return self._model.encode_limited(features, self._chunk, self._left_context)

    def _front(self, features: FeatureBatch, streams: StreamView) -> torch.Tensor:
        """The chunk of each stream, (streams, chunk, width), at the rate of the front end."""
        frames = F.pad(features.frames, (0, 0, 0, self.shape.window - features.frames.shape[1]))
        # A last window ends in silence, and all of it counts, as in icefall's streaming_decode.py.
        heard = torch.arange(self.shape.window, device=frames.device) < features.lengths[:, None]
        frames = frames.masked_fill(~heard[:, :, None], self.shape.padding).to(self._model.dtype)
        past = StreamPast({_FRONT: streams.load(_FRONT)})
        x = self._model.subsampling.advance(frames, past)
        streams.store(_FRONT, past.newest[_FRONT])
        return x


def _held(stack: StackConfig, left_context: int) -> dict[str, tuple[int, int, int]]:
    """Shapes (layers, time, width) of what a stack holds, by name."""
    widths = (
        stack.heads * stack.query_size,
        3 * stack.width // 4,
        stack.heads * stack.value_size,
        stack.heads * stack.value_size,
        stack.width,
        stack.width,
    )
    times = (*[left_context] * 4, *[stack.kernel // 2] * 2)
    return {name: (stack.layers, time, width) for name, time, width in zip(_HELD, times, widths, strict=True)}
