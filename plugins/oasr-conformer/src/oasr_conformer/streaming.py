"""Live audio: the encoder reads a chunk at a time and keeps what the next one needs.

A limited left context lies in slots: the last keys and values of each layer, and the last inputs of its convolution.
Without a limit keys and values grow in pages. Keys carry their absolute positions, so they are kept as they are.
"""

import torch

from oasr.interfaces.architecture import EncoderOutput, PagedLayout
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.streaming import ChunkShape, StreamingEncoder, StreamLayout, StreamView
from oasr.nn import attention
from oasr_conformer.config import ConformerConfig
from oasr_conformer.encoder import LOOK_AHEAD, Context, Encoder, WholePass
from oasr_conformer.positions import sinusoids

_LONGEST_STREAM_SECONDS = 3600


class ChunkEncoder(StreamingEncoder):
    """The encoder at one chunk size and left context, in encoder frames."""

    def __init__(self, encoder: Encoder, chunk: int, left_context: int | None):
        config = encoder.config
        look_ahead = LOOK_AHEAD[config.subsampling]
        self.shape = ChunkShape(
            window=(chunk - 1) * config.subsampling + look_ahead + 1,
            hop=chunk * config.subsampling,
            frames=chunk,
            least=look_ahead + 1,
        )
        self.layout = _layout(config, left_context)
        self._encoder = encoder
        self._chunk = chunk
        self._left_context = left_context
        self._scores = encoder.position_scores()

    def encode_chunk(self, features: FeatureBatch, streams: StreamView) -> EncoderOutput:
        x, lengths = self._encoder.embed(features.frames, features.lengths)
        context: ChunkPass
        if self._left_context is None:
            context = UnlimitedPass(self._encoder, self._scores, x, lengths, streams)
        else:
            context = LimitedPass(self._encoder, self._scores, x, lengths, streams, self._left_context)
        frames = self._encoder(x, context)
        context.store()
        return EncoderOutput(frames, lengths)

    def encode_whole(self, features: FeatureBatch) -> EncoderOutput:
        x, lengths = self._encoder.embed(features.frames, features.lengths)
        context = WholePass(self._encoder, x, lengths, self._chunk, self._left_context)
        return EncoderOutput(self._encoder(x, context), lengths)


class ChunkPass(Context):
    """A chunk of each of several streams, which may be of different ages."""

    def __init__(
        self,
        encoder: Encoder,
        scores: torch.Tensor | None,
        frames: torch.Tensor,
        lengths: torch.Tensor,
        streams: StreamView,
    ):
        self._encoder = encoder
        self._scores = scores
        self._streams = streams
        self._places = torch.arange(frames.shape[1], device=frames.device)
        self.valid = self._places < lengths[:, None]
        self.positions = sinusoids(streams.ages[:, None] + self._places, encoder.config.width).to(frames.dtype)
        self._past = streams.load("convolution") if _convolution_reach(encoder.config) else None
        self._pasts: list[torch.Tensor] = []

    def with_past(self, layer: int, x: torch.Tensor, reach: int) -> torch.Tensor:
        if self._past is None:
            return x
        x = torch.cat((self._past[:, layer], x), dim=1)
        self._pasts.append(x[:, -reach:])
        return x

    def store(self) -> None:
        """Write what the next chunk needs. Of a stream that has ended it does not matter."""
        if self._pasts:
            self._streams.store("convolution", torch.stack(self._pasts, dim=1))


class LimitedPass(ChunkPass):
    """Attends to the chunk and to the last frames before it, which lie in slots."""

    def __init__(
        self,
        encoder: Encoder,
        scores: torch.Tensor | None,
        frames: torch.Tensor,
        lengths: torch.Tensor,
        streams: StreamView,
        left_context: int,
    ):
        super().__init__(encoder, scores, frames, lengths, streams)
        self._left_context = left_context
        if left_context:
            self._old = streams.load("keys"), streams.load("values")
        self._new: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])
        places = torch.arange(-left_context, frames.shape[1], device=frames.device)
        at = streams.ages[:, None] + places
        seen = (at >= 0) & (places < lengths.clamp(min=1)[:, None])
        self._masks = encoder.masks(sinusoids(at, encoder.config.width), seen, scores)

    def attend(self, layer: int, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        if self._left_context:
            keys, values = (
                torch.cat((old[:, layer], new), dim=1) for old, new in zip(self._old, (keys, values), strict=True)
            )
            for kept, seen in zip(self._new, (keys, values), strict=True):
                kept.append(seen[:, -self._left_context :])
        return attention(query, keys, values, self._masks[layer % len(self._masks)])

    def store(self) -> None:
        super().store()
        if self._left_context:
            for name, kept in zip(("keys", "values"), self._new, strict=True):
                self._streams.store(name, torch.stack(kept, dim=1))


class UnlimitedPass(ChunkPass):
    """Attends to all that was said, which lies in the paged cache."""

    _masks: torch.Tensor | None = None

    def attend(self, layer: int, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        keys, values, counted = self._streams.append(layer, keys, values)
        if self._masks is None:
            self._masks = self._masks_of(counted)
        return attention(query, keys, values, self._masks[layer % len(self._masks)])

    def _masks_of(self, counted: torch.Tensor) -> torch.Tensor:
        """counted bool (streams, keys); the key at place i stands at position i."""
        at = torch.arange(counted.shape[1], device=counted.device)[None]
        ends = self._streams.ages + self.valid.sum(dim=1).clamp(min=1)
        seen = counted & (at < ends[:, None])
        return self._encoder.masks(sinusoids(at, self._encoder.config.width), seen, self._scores)


def _layout(config: ConformerConfig, left_context: int | None) -> StreamLayout:
    slots: dict[str, tuple[int, ...]] = {}
    if reach := _convolution_reach(config):
        slots["convolution"] = (config.layers, reach, config.width)
    size = config.width // config.heads
    if left_context is None:
        frames_per_second = 1000 / (config.features.frame_shift_ms * config.subsampling)
        most = round(_LONGEST_STREAM_SECONDS * frames_per_second)
        return StreamLayout(slots, PagedLayout(config.layers, config.heads, size, max_tokens=most))
    if left_context:
        slots |= dict.fromkeys(("keys", "values"), (config.layers, left_context, config.heads, size))
    return StreamLayout(slots)


def _convolution_reach(config: ConformerConfig) -> int:
    """Frames before a chunk that its convolutions see."""
    return config.convolution.kernel - 1 if config.convolution else 0
