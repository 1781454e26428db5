"""Decoders: the searches."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from oasr.errors import RequestError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import DecodingOptions


class Decoder(ABC):
    """A search over the outputs of one head."""

    head: ClassVar[str]
    """Name of the head it needs: `autoregressive`."""

    @abstractmethod
    def __init__(self, config: ComponentConfig | None):
        """Take the options; None for a component that declares no configuration."""


@dataclass(frozen=True, slots=True)
class Breadth:
    """How many hypotheses of one window are decoded side by side, a row each."""

    rows: int = 1
    finished: int = 0
    """Beams: hypotheses that must have ended before the window is done. 0: each row is a text of its own."""


@dataclass(frozen=True, slots=True)
class Branches:
    """How the beams of each window go on: all tensors are (windows, beams), on the device of the logits."""

    tokens: torch.Tensor
    """int64: next token of each beam, best beam first; never the end token."""
    parents: torch.Tensor
    """int64: the beam, before the step, that it continues."""
    scores: torch.Tensor
    """float32: summed log-probability with the token; -inf where there is nothing to go on with."""
    ended: torch.Tensor
    """float32: summed log-probability of each beam as it was before the step, if it ends now; -inf if it does not."""


class LabelSynchronousDecoder(Decoder):
    """Chooses the next token of every row from its logits. The engine owns the loop, so rows of many requests mix.

    Law: what a row chooses depends on that row alone; of beams, on those of its window.
    """

    head: ClassVar[str] = "autoregressive"

    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for an option this search cannot honour; by default those of width."""
        if options.beam > 1 or options.best_of > 1:
            raise RequestError(f"{type(self).__name__} follows one hypothesis; leave beam and best_of at 1")

    def breadth(self, options: DecodingOptions) -> Breadth:
        """How wide a window of these options is searched; one row by default."""
        return Breadth()

    def start(self, options: DecodingOptions, device: torch.device) -> Any:
        """State of a window's search on the host, such as a generator; None, the default, lets it be captured.

        The rows of a window share it.
        """
        return None

    @abstractmethod
    def advance(
        self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor, states: Sequence[Any]
    ) -> torch.Tensor:
        """Next token of each row, int64 (rows,), without waiting for the device.

        Where every state is None the call may be captured in a CUDA graph and replayed: a pure function of its
        tensors then, whose Python runs once.

        logits (rows, vocabulary) float32 with the rules applied, not to be changed; generated (rows, any) int64, the
        tokens chosen so far; counts (rows,) int64, how many of them are valid; states as `start` made them, one a row.
        """

    def branch(self, log_probs: torch.Tensor, scores: torch.Tensor, ends: torch.Tensor) -> Branches:
        """How beams go on: called in place of `advance` where `breadth` asks for hypotheses to finish.

        log_probs (windows, beams, vocabulary) float32 as the model gives them, but -inf where the rules forbid, not to
        be changed; scores (windows, beams) float32, summed log-probabilities, -inf for beams that do not count; ends
        (windows,) int64, the end tokens. A pure function of its tensors that never waits for the device.
        """
        raise NotImplementedError

    def rank(self, score: float, tokens: int, options: DecodingOptions) -> float:
        """How good a finished hypothesis is among those of its window; its mean log-probability by default.

        score: summed log-probability of so many `tokens`, the end token included.
        """
        return score / tokens


@dataclass(frozen=True, slots=True)
class Spelling:
    """One hypothesis of a frame-synchronous search: what was said, and when."""

    tokens: tuple[int, ...]
    frames: tuple[int, ...]
    """Encoder frame of each token, counted from where the row began."""
    log_probs: tuple[float, ...]
    """Of each token at its frame."""
    score: float
    """Log-probability of the whole."""


class FrameSynchronousDecoder(Decoder):
    """Reads encoder frames in order, a batch of rows at once.

    Laws: a row depends on itself alone; frames given chunk by chunk end in what they give at once.
    """

    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for an option this search cannot honour; by default it honours all."""

    @abstractmethod
    def start(self, head: Any, options: DecodingOptions, tokenizer: Tokenizer) -> Any:
        """The search of a row that has heard nothing. Raises `RequestError` for hotwords it cannot spell."""

    @abstractmethod
    def advance(self, head: Any, encoded: EncoderOutput, rows: Sequence[Any]) -> None:
        """Read the next frames of each row, (rows, time, feature) with their lengths; rows as `start` made them."""

    @abstractmethod
    def spellings(self, row: Any) -> list[Spelling]:
        """The hypotheses of a row by now, the best first; at least one, possibly without tokens."""


class Rescorer(Decoder):
    """Orders what a frame-synchronous search found by a second look at the whole."""

    search: ClassVar[str]
    """Name of the decoder that finds the hypotheses."""

    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for an option it cannot honour; by default it honours all."""

    @abstractmethod
    def rescore(
        self, head: Any, encoded: EncoderOutput, found: Sequence[Sequence[Spelling]], options: Sequence[DecodingOptions]
    ) -> list[list[Spelling]]:
        """The spellings of each row in their new order and with their new scores; encoded holds the rows' frames."""
