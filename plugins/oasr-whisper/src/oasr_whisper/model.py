"""Whisper (Radford et al., 2022): an encoder of 30-second windows and a decoder that writes text and control tokens.

The shapes follow openai/whisper, model.py. Query, key and value are one matrix, and so are key and value of the
cross-attention; keys have no bias in the original, here it is zero.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from oasr.errors import RequestError
from oasr.interfaces.architecture import (
    Architecture,
    CacheLayout,
    EncoderOutput,
    ModelFacts,
    PagedLayout,
    WeightRules,
)
from oasr.interfaces.cache import CacheView
from oasr.interfaces.format import Checkpoint
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.heads import AutoregressiveHead, Prompt, SpokenSegment, WindowReading
from oasr.interfaces.tokenizer import Tokenizer
from oasr.nn import Embedding, Linear, SelfAttention, attention
from oasr.types import DecodingOptions, Word
from oasr_whisper.alignment import align
from oasr_whisper.config import WhisperConfig, read_config
from oasr_whisper.prompt import PromptWriter
from oasr_whisper.timestamps import read_window
from oasr_whisper.weights import rules
from oasr_whisper.words import Span, split_words, time_words

_SAMPLE_RATE = 16_000
_HOP_SAMPLES = 160
_CONVOLUTION_STRIDE = 2


class CrossAttention(nn.Module):
    """Attention of the text to the encoded audio."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = Linear(width, width)
        self.key_value = Linear(width, 2 * width)
        self.out = Linear(width, width)

    def project(self, encoded: torch.Tensor) -> torch.Tensor:
        """Keys and values of the audio, (batch, 2, heads, time, size)."""
        return self.key_value(encoded).unflatten(-1, (2, self.heads, -1)).permute(0, 2, 3, 1, 4)

    def forward(self, x: torch.Tensor, key_value: torch.Tensor) -> torch.Tensor:
        """x (rows, new, width); key_value as projected, of windows of one or more consecutive rows each."""
        keys, values = key_value.transpose(2, 3).unbind(1)
        # The rows of a window hear the same audio: all their tokens ask it at once, and it is read but once.
        query = self.query(x).reshape(len(keys), -1, self.heads, keys.shape[-1])
        return self.out(attention(query, keys, values).view_as(x))


class EncoderBlock(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.mlp_norm = nn.LayerNorm(width)
        self.fc1 = Linear(width, hidden)
        self.fc2 = Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.fc2(F.gelu(self.fc1(self.mlp_norm(x))))


class DecoderBlock(nn.Module):
    def __init__(self, layer: int, width: int, heads: int, hidden: int):
        super().__init__()
        self.layer = layer
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attention = CrossAttention(width, heads)
        self.mlp_norm = nn.LayerNorm(width)
        self.fc1 = Linear(width, hidden)
        self.fc2 = Linear(hidden, width)

    def forward(self, x: torch.Tensor, cache: CacheView) -> torch.Tensor:
        query, keys, values = self.attention.project(self.attention_norm(x))
        keys, values = cache.append(self.layer, keys, values)
        x = x + self.attention.out(attention(query, keys, values, cache.mask))
        x = x + self.cross_attention(self.cross_norm(x), cache.load("audio", self.layer))
        return x + self.fc2(F.gelu(self.fc1(self.mlp_norm(x))))


class Encoder(nn.Module):
    def __init__(self, config: WhisperConfig):
        super().__init__()
        width = config.width
        self.conv1 = nn.Conv1d(config.n_mels, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=_CONVOLUTION_STRIDE, padding=1)
        self.positions = nn.Parameter(torch.empty(config.audio_context, width))
        self.blocks = nn.ModuleList(
            EncoderBlock(width, config.encoder_heads, config.encoder_ffn) for _ in range(config.encoder_layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, mels: torch.Tensor) -> torch.Tensor:
        """mels (batch, time, bins) of a whole window; returns (batch, time / 2, width)."""
        x = F.gelu(self.conv1(mels.transpose(1, 2)))
        x = F.gelu(self.conv2(x)).transpose(1, 2) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Decoder(nn.Module):
    def __init__(self, config: WhisperConfig):
        super().__init__()
        width = config.width
        self.tokens = Embedding(config.vocabulary_size, width)
        self.positions = nn.Parameter(torch.empty(config.text_context, width))
        self.blocks = nn.ModuleList(
            DecoderBlock(layer, width, config.decoder_heads, config.decoder_ffn)
            for layer in range(config.decoder_layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor, cache: CacheView) -> torch.Tensor:
        """tokens (rows, new); returns (rows, new, width)."""
        x = self.tokens(tokens) + F.embedding(cache.positions, self.positions)
        for block in self.blocks:
            x = block(x, cache)
        return self.norm(x)


class Whisper(Architecture):
    """The network and its autoregressive head."""

    Config = WhisperConfig

    def __init__(self, config: WhisperConfig):
        super().__init__(config)
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.facts = facts(config)
        self._head = WhisperHead(self)

    @classmethod
    def read_config(cls, checkpoint: Checkpoint) -> WhisperConfig:
        return read_config(checkpoint)

    @classmethod
    def rename(cls, naming: str) -> WeightRules:
        return rules(naming)

    def encode(self, features: FeatureBatch) -> EncoderOutput:
        mels = features.frames.to(self.dtype)
        # A CPU gains nothing from a batch, and loses a fifth to page faults: the allocator maps tensors of more than
        # 32 MB anew each time.
        windows = mels.split(1) if mels.device.type == "cpu" else (mels,)
        frames = torch.cat([self.encoder(window) for window in windows])
        # The model was trained on padded windows and attends to the silence too: every frame counts.
        return EncoderOutput(frames, torch.full_like(features.lengths, frames.shape[1]))

    def head(self, name: str) -> "WhisperHead":
        if name != "autoregressive":
            raise RequestError(f'Whisper offers the head "autoregressive", not "{name}"')
        return self._head


class WhisperHead(AutoregressiveHead):
    """Text tokens, one at a time, given the audio."""

    def __init__(self, model: Whisper):
        config = model.config
        self._decoder = model.decoder
        self._model = model
        self._tokens = config.tokens
        self._writer = PromptWriter(config)
        self.cache_layout = CacheLayout(
            paged=PagedLayout(
                layers=config.decoder_layers,
                heads=config.decoder_heads,
                head_size=config.width // config.decoder_heads,
                max_tokens=config.text_context,
            ),
            slots={
                "audio": (
                    config.decoder_layers,
                    2,
                    config.decoder_heads,
                    config.audio_context,
                    config.width // config.decoder_heads,
                )
            },
        )
        self.vocabulary_size = config.vocabulary_size
        self.language_tokens = config.tokens.languages
        self.language_prompt = (config.tokens.start,) if config.multilingual else ()

    def check(self, options: DecodingOptions) -> None:
        self._writer.check(options)

    def prompt(
        self, options: DecodingOptions, language: str | None, context: Sequence[int], tokenizer: Tokenizer
    ) -> Prompt:
        return self._writer.prompt(options, language, context, tokenizer)

    def prefill(
        self, tokens: torch.Tensor, lengths: torch.Tensor, encoded: EncoderOutput, cache: CacheView
    ) -> tuple[torch.Tensor, torch.Tensor]:
        for block in self._decoder.blocks:
            cache.store("audio", block.layer, block.cross_attention.project(encoded.frames))
        hidden = self._decoder(tokens, cache)
        rows = torch.arange(len(lengths), device=lengths.device)
        # Whisper says whether anybody speaks in the distribution after the start token, whatever follows it.
        start = (tokens == self._tokens.start).int().argmax(dim=1)
        silence = self._logits(hidden[rows, start]).softmax(dim=-1)[:, self._tokens.no_speech]
        return self._logits(hidden[rows, lengths - 1]), silence

    def words(
        self,
        encoded: torch.Tensor,
        seconds: float,
        segments: Sequence[SpokenSegment],
        options: DecodingOptions,
        language: str | None,
        tokenizer: Tokenizer,
    ) -> list[list[Word]]:
        text = [token for segment in segments for token in segment.tokens]
        prompt = self._writer.control(replace(options, timestamps=False), language)
        frames = round(seconds * _SAMPLE_RATE) // _HOP_SAMPLES  # whole ones, as in openai/whisper
        [alignment] = align(self._model, encoded[None], [text], [prompt], [frames])
        spans = [
            Span(each.start, each.end, len(each.tokens), tuple(split_words(each.tokens, tokenizer, language)))
            for each in segments
        ]
        return [
            [Word(word.text.strip(), word.start, word.end, word.confidence, word.interpolated) for word in words]
            for words in time_words(spans, alignment, seconds)
        ]

    def read(self, tokens: Sequence[int], seconds: float) -> WindowReading:
        return read_window(tokens, self._tokens, seconds)

    def step(self, tokens: torch.Tensor, cache: CacheView) -> torch.Tensor:
        return self._logits(self._decoder(tokens[:, None], cache)[:, 0])

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return self._decoder.tokens.project(hidden).float()


def facts(config: WhisperConfig) -> ModelFacts:
    """What a checkpoint of this configuration dictates."""
    hops = config.audio_context * _CONVOLUTION_STRIDE
    window_seconds = hops * _HOP_SAMPLES / _SAMPLE_RATE
    return ModelFacts(
        sample_rate=_SAMPLE_RATE,
        frontend="log-mel",
        frontend_options={"mel_bins": config.n_mels, "window_seconds": window_seconds},
        tokenizer="huggingface",
        text_tokens=config.tokens.end,
        frame_shift=_CONVOLUTION_STRIDE * _HOP_SAMPLES / _SAMPLE_RATE,
        heads=frozenset({"autoregressive"}),
        default_decoder="attention",
        max_input_seconds=window_seconds,
        languages=tuple(config.tokens.languages) if config.multilingual else ("en",),
        tasks=("transcribe", "translate") if config.multilingual else ("transcribe",),
        timestamps=True,
        word_timestamps=True,
        excerpts="long" if config.pads_with_silence else "always",
    )
