"""When each token was said, from where the decoder looks while it reads the text.

The method of openai/whisper, timing.py: some heads of the cross-attention follow the audio. Their attention, sharpened,
says how well each token fits each frame; the best monotonic path through that table gives each token its first frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
import torch.nn.functional as F

from oasr.nn import attention
from oasr_whisper.config import WhisperConfig

if TYPE_CHECKING:
    from oasr_whisper.model import DecoderBlock, Whisper

_FRAMES_PER_SECOND = 50  # of the encoder; a feature frame is half as long
_MEDIAN_REACH = 3

_Array = np.ndarray[Any, Any]

# Compare-exchanges that leave the median of seven values in the fourth place (Devillard, Fast median search, 1998).
_MEDIAN_OF_SEVEN = tuple(
    zip((0, 0, 1, 2, 0, 3, 2, 2, 3, 4, 1, 1, 3), (5, 3, 6, 4, 1, 5, 6, 3, 6, 5, 4, 3, 4), strict=True)
)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Times and probabilities of the text tokens of one window."""

    times: tuple[float, ...]
    """Seconds from the start of the window at which each token begins, and then the end of the last."""
    log_probs: tuple[float, ...]
    """Natural log-probability of each token among the text tokens, given the audio and the tokens before it."""


@torch.inference_mode()
def align(
    model: Whisper,
    encoded: torch.Tensor,
    tokens: Sequence[Sequence[int]],
    prompts: Sequence[Sequence[int]],
    frames: Sequence[int],
) -> list[Alignment]:
    """Align the text of several windows in one pass of the decoder, without the caches of the engine.

    encoded (rows, time, width) is what `encode` gave. Of each row: its text tokens, without control tokens; its prompt,
    from "start of transcript" to "no timestamps"; and its valid feature frames. Prompt and text together must fit into
    the text context. Where the configuration names no alignment heads, all heads of the upper half of the layers count.
    """
    config = model.config
    ids = [
        [*prompt, *text, config.tokens.end][: config.text_context] for prompt, text in zip(prompts, tokens, strict=True)
    ]
    padded = torch.tensor([[*row, *[0] * (max(map(len, ids)) - len(row))] for row in ids], device=encoded.device)
    hidden, attended = read(model, padded, encoded)
    emphases, log_probs = [], []
    for row, (prompt, text, valid) in enumerate(zip(prompts, tokens, frames, strict=True)):
        scores = (layer.scores(row, len(ids[row])) for layer in attended)
        first = len(prompt) - 1  # what is read last before the text predicts its first token
        emphases.append(emphasis(scores, valid // 2)[first : first + len(text) + 1])
        logits = model.decoder.tokens.project(hidden[row, first : first + len(text)])
        log_probs.append(_log_probs(logits[:, : config.tokens.end].float(), text))
    # All of it is queued on the device before the first result is waited for.
    return [
        Alignment(token_times(matrix), tuple(values.tolist()))
        for matrix, values in zip(emphases, log_probs, strict=True)
    ]


def emphasis(scores: Iterable[torch.Tensor], frames: int) -> torch.Tensor:
    """How much more each token (rows) looks at each audio frame (columns) than the other tokens do, mean over heads.

    scores are attention logits, before the softmax, of each layer's alignment heads: (heads, tokens, audio frames). Of
    the frames only so many are valid.
    """
    heads, sums = 0, []
    for layer in scores:
        weights = layer[..., :frames].float().softmax(dim=-1)
        centred = weights - weights.mean(dim=-2, keepdim=True)
        deviation = centred.square().mean(dim=-2, keepdim=True).sqrt()
        # Frames that all tokens look at alike say nothing.
        sums.append(median_of_seven(torch.where(deviation > 0, centred / deviation, 0.0)).sum(dim=0))
        heads += len(weights)
    return torch.stack(sums).sum(dim=0) / heads


def token_times(matrix: torch.Tensor) -> tuple[float, ...]:
    """Seconds from the start of the window at which each row of `emphasis` begins."""
    # A model that computes NaN has no times; its text is refused elsewhere.
    starts = first_frames(matrix.nan_to_num(0.0, 0.0, 0.0).cpu().numpy())
    return tuple((starts / _FRAMES_PER_SECOND).tolist())


def median_of_seven(x: torch.Tensor) -> torch.Tensor:
    """Median of seven neighbours in the last dimension, mirrored at its ends; fewer than four values stay as they are.

    A fixed network of minima and maxima: six times as fast as sorting.
    """
    length = x.shape[-1]
    if length <= _MEDIAN_REACH:
        return x
    padded = F.pad(x, (_MEDIAN_REACH, _MEDIAN_REACH), mode="reflect")
    values = [padded[..., start : start + length] for start in range(2 * _MEDIAN_REACH + 1)]
    for low, high in _MEDIAN_OF_SEVEN:
        values[low], values[high] = torch.minimum(values[low], values[high]), torch.maximum(values[low], values[high])
    return values[_MEDIAN_REACH]


def first_frames(matrix: _Array) -> _Array:
    """First frame of each row on the path from the first to the last cell whose sum is largest.

    The path moves one frame on, one row down, or both at once (dynamic time warping). Rows are computed whole: the best
    sum at a frame is that of the best place to have entered the row, plus the values since, a running maximum.
    """
    rows, frames = matrix.shape
    if not rows or not frames:
        return np.zeros(rows, dtype=np.int64)
    sums = np.zeros((rows, frames + 1))
    np.cumsum(matrix, axis=1, out=sums[:, 1:])
    index = np.arange(frames)
    entered = np.empty((rows, frames), dtype=np.int64)  # where the best path to each cell entered its row
    straight_down = np.empty((rows, frames), dtype=bool)  # whether it enters there from the same frame
    best = np.full(frames + 1, -np.inf)  # by frame, of the row above; the first place is before all frames
    best[0] = 0.0
    for row in range(rows):
        straight_down[row] = best[1:] > best[:-1]
        entering = np.maximum(best[:-1], best[1:]) - sums[row, :-1]
        running = np.maximum.accumulate(entering)
        better = np.append(True, entering[1:] > running[:-1])
        entered[row] = np.maximum.accumulate(np.where(better, index, 0))
        best[0] = -np.inf
        best[1:] = running + sums[row, 1:]
    starts = np.empty(rows, dtype=np.int64)
    frame = frames - 1
    for row in reversed(range(rows)):
        starts[row] = frame = entered[row, frame]
        frame -= not straight_down[row, frame]
    return starts


@dataclass(frozen=True, slots=True)
class Attended:
    """Queries of the text and keys of the audio, of the alignment heads of one layer: (rows, heads, time, size)."""

    queries: torch.Tensor
    keys: torch.Tensor

    def scores(self, row: int, tokens: int) -> torch.Tensor:
        """Attention logits of a row, (heads, tokens, audio frames), in float32: half precision would blur the times."""
        queries, keys = self.queries[row, :, :tokens].float(), self.keys[row].float()
        return queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])


def read(model: Whisper, tokens: torch.Tensor, encoded: torch.Tensor) -> tuple[torch.Tensor, list[Attended]]:
    """Read whole rows of tokens (rows, time); what the decoder makes of them, and where the alignment heads looked.

    The forward pass of `Decoder` without a cache. Tokens look back only, so padding on the right is not seen.
    """
    decoder, heads = model.decoder, _heads_by_layer(model.config)
    length = tokens.shape[1]
    looking_back = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
    attended = []
    x = decoder.tokens(tokens) + decoder.positions[:length]
    for block in cast("Iterable[DecoderBlock]", decoder.blocks):
        query, keys, values = block.attention.project(block.attention_norm(x))
        x = x + block.attention.out(attention(query, keys, values, looking_back))
        normed = block.cross_norm(x)
        key_value = block.cross_attention.project(encoded)
        if chosen := heads.get(block.layer):
            queries = block.cross_attention.query(normed).unflatten(-1, (block.cross_attention.heads, -1))
            attended.append(Attended(queries.transpose(1, 2)[:, chosen], key_value[:, 0, chosen]))
        x = x + block.cross_attention(normed, key_value)
        x = x + block.fc2(F.gelu(block.fc1(block.mlp_norm(x))))
    return cast(torch.Tensor, decoder.norm(x)), attended


def _heads_by_layer(config: WhisperConfig) -> dict[int, list[int]]:
    if not config.alignment_heads:
        upper_half = range(config.decoder_layers // 2, config.decoder_layers)
        return {layer: list(range(config.decoder_heads)) for layer in upper_half}
    heads: dict[int, list[int]] = {}
    for layer, head in config.alignment_heads:
        heads.setdefault(layer, []).append(head)
    return heads


def _log_probs(logits: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    index = torch.tensor(tokens, dtype=torch.int64, device=logits.device)
    return logits.gather(1, index[:, None])[:, 0] - logits.logsumexp(dim=-1)
