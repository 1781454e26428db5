"""Heads: how decoders see a model. Architectures offer heads; a decoder names the one it needs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from oasr.interfaces.architecture import CacheLayout, EncoderOutput
from oasr.interfaces.cache import CacheView
from oasr.interfaces.logits_rule import LogitsRule
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import DecodingOptions, Word


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a row starts from and when it ends."""

    tokens: tuple[int, ...]
    end_token: int
    max_new_tokens: int
    rules: tuple[LogitsRule, ...] = ()
    """In order. Rows whose rules are the same objects are treated together, so heads reuse them."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SpokenSegment:
    """Text tokens said from `start` to `end`, in seconds from the start of the window."""

    start: float
    end: float
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WindowReading:
    """What was said in a window, and from where on the audio has to be read again."""

    segments: tuple[SpokenSegment, ...]
    resume: float
    """Seconds from the start of the window; its length when all of it has been read."""


class AutoregressiveHead(ABC):
    """A decoder network that reads its own tokens. One call serves many rows."""

    cache_layout: CacheLayout
    vocabulary_size: int
    """Number of logits."""
    language_prompt: tuple[int, ...] = ()
    """Tokens after which the model names the language; empty when it cannot."""
    language_tokens: Mapping[str, int] = {}
    """Id of each language code, for detection."""

    @abstractmethod
    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for an option this model cannot honour, before any work is done for the request."""

    @abstractmethod
    def prompt(
        self, options: DecodingOptions, language: str | None, context: Sequence[int], tokenizer: Tokenizer
    ) -> Prompt:
        """Prompt for a window of a checked request, in the language asked for or detected.

        `context` holds the text tokens read just before, when the request wants them to be taken into account.
        """

    @abstractmethod
    def prefill(
        self, tokens: torch.Tensor, lengths: torch.Tensor, encoded: EncoderOutput, cache: CacheView
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Read prompts (rows, time) int64, right-padded, lengths (rows,). The rows of the cache are empty before.

        Return logits after each row's last token, (rows, vocabulary) float32, and the probability that nobody speaks,
        (rows,), or None when the model does not tell.
        """

    @abstractmethod
    def step(self, tokens: torch.Tensor, cache: CacheView) -> torch.Tensor:
        """Read one more token of each row, (rows,) int64; return next logits (rows, vocabulary) float32.

        A pure function of static shape that never waits for the device, so that it can be captured in a CUDA graph.
        """

    def words(
        self,
        encoded: torch.Tensor,
        seconds: float,
        segments: Sequence[SpokenSegment],
        options: DecodingOptions,
        language: str | None,
        tokenizer: Tokenizer,
    ) -> list[list[Word]]:
        """When the words of each segment of a window were said, in seconds from the start of the window.

        encoded (time, feature) is the window as the model encoded it. Called only where the facts promise words.
        """
        raise NotImplementedError

    def read(self, tokens: Sequence[int], seconds: float) -> WindowReading:
        """What tokens of a window of so many seconds say. By default all of them are one segment."""
        return WindowReading((SpokenSegment(0.0, seconds, tuple(tokens)),), seconds)


class CTCHead(ABC):
    """Scores of every token at every encoder frame (connectionist temporal classification, Graves et al., 2006)."""

    vocabulary_size: int
    blank: int

    @abstractmethod
    def log_probs(self, frames: torch.Tensor) -> torch.Tensor:
        """frames (batch, time, feature) of the encoder; returns (batch, time, vocabulary) float32, normalised."""


class RescoringHead(CTCHead):
    """A CTC head beside attention decoders that score whole hypotheses (U2++: Wu et al., 2021)."""

    reverse_weight: float
    """Weight of the right-to-left decoder that the checkpoint was trained with; 0 without one."""

    @abstractmethod
    def score(
        self, encoded: EncoderOutput, hypotheses: Sequence[Sequence[Sequence[int]]]
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Summed log-probability of each hypothesis of each row, the end included, read in either direction.

        hypotheses[row] lists token ids; rows may have different numbers. Returns left-to-right and right-to-left scores
        (rows, most hypotheses) float32; entries behind a row's own are not valid. None without such a decoder.
        """
