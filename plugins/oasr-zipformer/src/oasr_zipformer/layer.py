"""One layer of the encoder (Yao et al., 2023, section 3.2): attention weights are computed once, used thrice."""

import torch
import torch.nn.functional as F
from torch import nn

from oasr.nn import Linear
from oasr_zipformer.activations import swoosh_l, swoosh_r
from oasr_zipformer.config import StackConfig
from oasr_zipformer.timeline import Past, Timeline

# Finite, so that a frame that sees nothing, which only padding can be, does not become NaN. Far enough that what is
# hidden has weight zero.
_HIDDEN = -1e4


class BiasNorm(nn.Module):
    """Scales to a root mean square that is measured around a learned bias (section 3.3)."""

    def __init__(self, width: int):
        super().__init__()
        self.log_scale = nn.Parameter(torch.empty(()))
        self.bias = nn.Parameter(torch.empty(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Squares of half precision overflow.
        power = (x - self.bias).float().square().mean(dim=-1, keepdim=True)
        return x * (power.rsqrt() * self.log_scale.float().exp()).to(x.dtype)


class Bypass(nn.Module):
    """Mixes, channel by channel, what went around a module with what went through it."""

    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.empty(width))

    def forward(self, around: torch.Tensor, through: torch.Tensor) -> torch.Tensor:
        return torch.lerp(around, through, self.scale)


class AttentionWeights(nn.Module):
    """How much each frame heeds each other, by content and by distance."""

    def __init__(self, config: StackConfig, position_width: int):
        super().__init__()
        self.heads = config.heads
        self.sizes = [config.query_size, config.query_size, config.position_size]
        self.in_proj = Linear(config.width, config.heads * sum(self.sizes))
        self.positions = Linear(position_width, config.heads * config.position_size, bias=False)

    def forward(self, x: torch.Tensor, distances: torch.Tensor, timeline: Timeline, past: Past) -> torch.Tensor:
        """x (batch, time, width), distances (keys + time - 1, position_width) from the farthest frame before to the
        farthest behind; returns (batch, heads, time, keys), which sum to one over the keys."""
        batch, time, _ = x.shape
        query, key, position = self.in_proj(x).split([self.heads * size for size in self.sizes], dim=-1)
        key = past.before("keys", key)
        keys = key.shape[1]
        query, key, position = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (query, key, position))
        # Each frame asks every distance; a row of the result, shifted by the place of its frame, is about keys.
        asked = self.positions(distances).unflatten(-1, (self.heads, -1)).permute(1, 2, 0)
        by_distance = torch.matmul(position, asked)
        by_key = by_distance.as_strided(
            (batch, self.heads, time, keys),
            (*by_distance.stride()[:2], by_distance.stride(2) - 1, 1),
            by_distance.storage_offset() + time - 1,
        )
        scores = torch.where(timeline.visible, by_key, by_key.new_full((), _HIDDEN)).flatten(0, 1)
        scores.baddbmm_(query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2))
        return scores.softmax(dim=-1).unflatten(0, (batch, self.heads))


class SelfAttention(nn.Module):
    """Values, weighted by the weights of the layer."""

    def __init__(self, width: int, heads: int, value_size: int):
        super().__init__()
        self.heads = heads
        self.in_proj = Linear(width, heads * value_size)
        self.out_proj = Linear(heads * value_size, width)

    def forward(self, x: torch.Tensor, weights: torch.Tensor, past: Past, name: str) -> torch.Tensor:
        values = past.before(name, self.in_proj(x))
        attended = torch.matmul(weights, values.unflatten(-1, (self.heads, -1)).transpose(1, 2))
        return self.out_proj(attended.transpose(1, 2).flatten(2))


class NonlinearAttention(nn.Module):
    """Values gated before and after they are weighted, by the weights of the first head."""

    def __init__(self, width: int):
        super().__init__()
        hidden = 3 * width // 4
        self.in_proj = Linear(width, 3 * hidden)
        self.out_proj = Linear(hidden, width)

    def forward(self, x: torch.Tensor, weights: torch.Tensor, past: Past) -> torch.Tensor:
        gate, values, after = self.in_proj(x).chunk(3, dim=-1)
        values = past.before("gated", values * gate.tanh())
        return self.out_proj(torch.bmm(weights[:, 0], values) * after)


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.in_proj = Linear(width, hidden)
        self.out_proj = Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out_proj(swoosh_l(self.in_proj(x)))


class CausalDepthwise(nn.Module):
    """A convolution of the past, and one within the chunk that is scaled by how near the chunk's edges are."""

    def __init__(self, width: int, kernel: int):
        super().__init__()
        self.kernel = kernel
        self.past = nn.Conv1d(width, width, (kernel + 1) // 2, groups=width)
        self.within = nn.Conv1d(width, width, kernel, groups=width, padding=kernel // 2)
        self.edge_scales = nn.Parameter(torch.empty(2, width, kernel))
        """By how much more or less the first frames of a chunk count, and the last."""

    def forward(self, x: torch.Tensor, timeline: Timeline, past: Past, name: str) -> torch.Tensor:
        batch, time, width = x.shape
        causal = self.past(past.before(name, x, self.kernel // 2).transpose(1, 2)).transpose(1, 2)
        chunks = F.pad(x, (0, 0, 0, -time % timeline.chunk)).view(-1, timeline.chunk, width)
        within = self.within(chunks.transpose(1, 2)).transpose(1, 2).reshape(batch, -1, width)[:, :time]
        return torch.addcmul(causal, within, self._scales(timeline))

    def _scales(self, timeline: Timeline) -> torch.Tensor:
        """(batch or nothing, time, width)."""
        # One more column, for frames that are farther from an edge than the kernel reaches.
        starts, ends = F.pad(self.edge_scales, (0, 1)).transpose(1, 2)
        since = timeline.since.clamp(max=self.kernel)
        before_end = self.kernel - timeline.until
        return 1.0 + starts[since] + ends[before_end.masked_fill(before_end < 0, self.kernel)]


class Depthwise(nn.Module):
    """A convolution that sees as far ahead as back."""

    def __init__(self, width: int, kernel: int):
        super().__init__()
        self.conv = nn.Conv1d(width, width, kernel, groups=width, padding=kernel // 2)

    def forward(self, x: torch.Tensor, timeline: Timeline, past: Past, name: str) -> torch.Tensor:
        return self.conv(x.transpose(1, 2)).transpose(1, 2)


class Convolution(nn.Module):
    """Gated frames, a depthwise convolution over time and a projection."""

    def __init__(self, width: int, kernel: int, causal: bool):
        super().__init__()
        self.in_proj = Linear(width, 2 * width)
        self.depthwise = CausalDepthwise(width, kernel) if causal else Depthwise(width, kernel)
        self.out_proj = Linear(width, width)

    def forward(self, x: torch.Tensor, timeline: Timeline, past: Past, name: str) -> torch.Tensor:
        x = timeline.silenced(F.glu(self.in_proj(x)))
        return self.out_proj(swoosh_r(self.depthwise(x, timeline, past, name)))


class Layer(nn.Module):
    """Two rounds of attention, convolution and feed-forward over one set of attention weights."""

    def __init__(self, config: StackConfig, position_width: int, causal: bool):
        super().__init__()
        width = config.width
        self.attention_weights = AttentionWeights(config, position_width)
        self.feed_forward1 = FeedForward(width, 3 * config.feed_forward // 4)
        self.nonlinear_attention = NonlinearAttention(width)
        self.attention1 = SelfAttention(width, config.heads, config.value_size)
        self.convolution1 = Convolution(width, config.kernel, causal)
        self.feed_forward2 = FeedForward(width, config.feed_forward)
        self.bypass_mid = Bypass(width)
        self.attention2 = SelfAttention(width, config.heads, config.value_size)
        self.convolution2 = Convolution(width, config.kernel, causal)
        self.feed_forward3 = FeedForward(width, 5 * config.feed_forward // 4)
        self.norm = BiasNorm(width)
        self.bypass = Bypass(width)

    def forward(self, x: torch.Tensor, distances: torch.Tensor, timeline: Timeline, past: Past) -> torch.Tensor:
        original = x
        weights = self.attention_weights(x, distances, timeline, past)
        x = x + self.feed_forward1(x)
        x = x + self.nonlinear_attention(x, weights, past)
        x = x + self.attention1(x, weights, past, "values1")
        x = x + self.convolution1(x, timeline, past, "convolution1")
        x = x + self.feed_forward2(x)
        x = self.bypass_mid(original, x)
        x = x + self.attention2(x, weights, past, "values2")
        x = x + self.convolution2(x, timeline, past, "convolution2")
        x = x + self.feed_forward3(x)
        return self.bypass(original, self.norm(x))
