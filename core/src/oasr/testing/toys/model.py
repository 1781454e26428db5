"""The toy network: pooled frames, one attention decoder with a cache, and text that always ends."""

from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import nn

from oasr.errors import CheckpointError, RequestError
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
from oasr.interfaces.heads import AutoregressiveHead, Prompt
from oasr.interfaces.logits_rule import LogitsRule
from oasr.interfaces.tokenizer import Tokenizer
from oasr.nn import Linear, attention
from oasr.testing.toys.config import END, PREVIOUS, START, ToyConfig
from oasr.testing.toys.frontend import HOP_SAMPLES, SAMPLE_RATE
from oasr.types import DecodingOptions

POOL = 4
"""Feature frames in one encoder frame."""
_END_SLOPE = 2.0  # the end grows certain once the text has as many tokens as the audio has frames
_GAIN = 8.0  # makes frames differ
_LETTERS = b" abcdefghijklmnopqrstuvwxyz"


class ToyBlock(nn.Module):
    """Attention to the tokens so far, then to the audio."""

    def __init__(self, layer: int, config: ToyConfig):
        super().__init__()
        self.layer = layer
        self.heads = config.heads
        self.norm = nn.LayerNorm(config.width)
        self.qkv = Linear(config.width, 3 * config.width)
        self.audio_query = Linear(config.width, config.width)
        self.audio_key_value = Linear(config.width, 2 * config.width)
        self.out = Linear(2 * config.width, config.width)

    def project_audio(self, frames: torch.Tensor) -> torch.Tensor:
        """Keys and values of the audio, (rows, 2, time, heads, size)."""
        rows, time, width = frames.shape
        projected: torch.Tensor = self.audio_key_value(frames)
        return projected.view(rows, time, 2, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: torch.Tensor, cache: CacheView) -> torch.Tensor:
        normed = self.norm(x)
        query, keys, values = self.qkv(normed).unflatten(-1, (3, self.heads, -1)).unbind(2)
        keys, values = cache.append(self.layer, keys, values)
        text = attention(query, keys, values, cache.mask)
        audio_keys, audio_values = _each_row(cache, "audio", self.layer).unbind(1)
        audio_mask = _each_row(cache, "mask")[:, None, None] > 0
        query = self.audio_query(normed).unflatten(-1, (self.heads, -1))
        audio = attention(query, audio_keys, audio_values, audio_mask)
        read: torch.Tensor = self.out(torch.cat((text, audio), dim=-1))
        return x + read


class ToyArchitecture(Architecture):
    """A network whose every result depends on its audio, its prompt and nothing else."""

    Config = ToyConfig

    def __init__(self, config: ToyConfig):
        super().__init__(config)
        self.config = config
        self.input = Linear(config.features, config.width)
        self.tokens = nn.Embedding(config.vocabulary_size, config.width)
        self.positions = nn.Parameter(torch.empty(config.text_context, config.width))
        self.blocks = nn.ModuleList(ToyBlock(layer, config) for layer in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.output = Linear(config.width, config.vocabulary_size)
        self.facts = ModelFacts(
            sample_rate=SAMPLE_RATE,
            frontend="toy-blocks",
            frontend_options={},
            tokenizer="huggingface",
            text_tokens=END,
            frame_shift=POOL * HOP_SAMPLES / SAMPLE_RATE,
            heads=frozenset({"autoregressive"}),
            default_decoder="toy-greedy",
            max_input_seconds=config.audio_frames * POOL * HOP_SAMPLES / SAMPLE_RATE,
            languages=config.languages,
        )

    @classmethod
    def read_config(cls, checkpoint: Checkpoint) -> ToyConfig:
        raise CheckpointError(f"{checkpoint.path}: toys are stored in OASR's own layout only, not {checkpoint.naming}")

    @classmethod
    def rename(cls, naming: str) -> WeightRules:
        raise CheckpointError(f"toys are stored under their own names only, not those of {naming}")

    def encode(self, features: FeatureBatch) -> EncoderOutput:
        """Means of groups of frames; what lies behind a row's length counts for nothing."""
        time = features.frames.shape[1]
        valid = torch.arange(time, device=features.lengths.device) < features.lengths[:, None]
        frames = (_GAIN * self.input(features.frames.to(self.dtype))).tanh() * valid[:, :, None]
        frames = F.pad(frames, (0, 0, 0, -time % POOL)).view(len(frames), -1, POOL, self.config.width).mean(dim=2)
        return EncoderOutput(frames, (features.lengths + POOL - 1) // POOL)

    def head(self, name: str) -> "ToyHead":
        if name != "autoregressive":
            raise RequestError(f'The toy offers the head "autoregressive", not "{name}"')
        return ToyHead(self)

    def decode(self, tokens: torch.Tensor, cache: CacheView) -> torch.Tensor:
        """Logits after each of tokens (rows, new)."""
        said = cache.positions - _each_row(cache, "start")[:, None].long()
        x = self.tokens(tokens) + F.embedding(cache.positions, self.positions)
        x = x + _nearest(_each_row(cache, "frames"), said)  # a token for each frame, so that no two audios read alike
        for block in self.blocks:
            x = block(x, cache)
        logits: torch.Tensor = self.output(self.norm(x)).float()
        heard = _each_row(cache, "mask").sum(dim=1)[:, None]
        logits[..., END] += _END_SLOPE * (said - heard)
        return logits


def _each_row(cache: CacheView, name: str, index: int = 0) -> torch.Tensor:
    """The slot tensor of each row's window."""
    return cache.load(name, index).repeat_interleave(cache.width, dim=0)


def _nearest(frames: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Frames (rows, time, width) at index (rows, new), or the first or last."""
    index = index.clamp(0, frames.shape[1] - 1)[:, :, None].expand(-1, -1, frames.shape[2])
    return frames.gather(1, index)


class ToyHead(AutoregressiveHead):
    """Letters, one at a time."""

    def __init__(self, model: ToyArchitecture):
        config = model.config
        size = config.width // config.heads
        self._model = model
        self._config = config
        self.cache_layout = CacheLayout(
            paged=PagedLayout(config.layers, config.heads, size, config.text_context),
            slots={
                "audio": (config.layers, 2, config.audio_frames, config.heads, size),
                "frames": (1, config.audio_frames, config.width),
                "mask": (1, config.audio_frames),
                "start": (1,),
            },
        )
        self.vocabulary_size = config.vocabulary_size
        self.language_tokens = config.language_tokens
        self.language_prompt = (START,) if config.languages else ()

    def check(self, options: DecodingOptions) -> None:
        if options.task != "transcribe":
            raise RequestError("The toy cannot translate; leave task at transcribe")
        for option in ("hotwords", "prefix"):
            if getattr(options, option):
                raise RequestError(f"The toy cannot honour {option}; leave it unset")
        for code in (options.language, *options.languages):
            if code is not None and code not in self.language_tokens:
                raise RequestError(
                    f"The toy does not know the language {code!r}; it knows {list(self.language_tokens)}"
                )

    def prompt(
        self, options: DecodingOptions, language: str | None, context: Sequence[int], tokenizer: Tokenizer
    ) -> Prompt:
        previous = [*tokenizer.encode(options.prompt or ""), *context][-self._config.text_context // 2 :]
        spoken = (self.language_tokens[language or self._config.languages[0]],) if self._config.languages else ()
        tokens = (*((PREVIOUS, *previous) if previous else ()), START, *spoken)
        room = self._config.text_context - len(tokens)
        return Prompt(
            tokens=tokens,
            end_token=END,
            max_new_tokens=min(room, options.max_new_tokens or room),
            rules=(_letters(options.suppress_tokens or ()),),
        )

    def prefill(
        self, tokens: torch.Tensor, lengths: torch.Tensor, encoded: EncoderOutput, cache: CacheView
    ) -> tuple[torch.Tensor, None]:
        missing = self._config.audio_frames - encoded.frames.shape[1]
        frames = F.pad(encoded.frames, (0, 0, 0, missing))
        for layer, block in enumerate(self._model.blocks):
            assert isinstance(block, ToyBlock)
            cache.store("audio", layer, block.project_audio(frames))
        cache.store("frames", 0, frames)
        # The first frame always counts: a row that may attend to nothing is NaN.
        heard = torch.arange(self._config.audio_frames, device=lengths.device) < encoded.lengths.clamp(min=1)[:, None]
        cache.store("mask", 0, heard.to(frames.dtype))
        start = (tokens == START).int().argmax(dim=1)
        cache.store("start", 0, start.to(frames.dtype))
        logits = self._model.decode(tokens, cache)
        return logits[torch.arange(len(lengths), device=lengths.device), lengths - 1], None

    def step(self, tokens: torch.Tensor, cache: CacheView) -> torch.Tensor:
        return self._model.decode(tokens[:, None], cache)[:, 0]


class OnlyLetters(LogitsRule):
    """Letters, blanks and the end, less what a request suppresses."""

    def __init__(self, suppressed: Sequence[int]):
        self._allowed = torch.tensor([token for token in (*_LETTERS, END) if token not in suppressed])

    def apply(self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        allowed = self._allowed = self._allowed.to(logits.device)
        return torch.full_like(logits, -torch.inf).index_copy_(1, allowed, logits[:, allowed])


@lru_cache(maxsize=16)
def _letters(suppressed: tuple[int, ...]) -> OnlyLetters:
    return OnlyLetters(suppressed)
