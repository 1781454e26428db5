"""The unit of work: a stretch of audio, and what was read in it."""

from dataclasses import dataclass

import torch

from oasr.errors import DeviceError, ModelError, OasrError
from oasr.types import DecodingOptions


@dataclass(eq=False, slots=True)
class Window:
    """A stretch of one request's audio, short enough to encode at once."""

    key: int
    start_samples: int
    """Where it begins in the audio of its request."""
    samples: torch.Tensor
    """float32 (samples,) on the CPU."""
    frames: int
    """Feature frames it costs."""
    options: DecodingOptions
    language: str | None
    """None until the model has named it, or for good where it cannot."""
    context: tuple[int, ...] = ()
    """Text tokens read just before."""
    language_probability: float | None = None
    """Of the language the model named, among those allowed; None when it was not asked."""
    excerpt: "Excerpt | None" = None
    """What the features of the window depend on besides; None makes it an input by itself."""


@dataclass(eq=False, slots=True)
class Excerpt:
    """A window as a part of a longer input."""

    before: torch.Tensor
    """Samples right before the window, the frontend's margin of them; none at the start of the input."""
    after: torch.Tensor
    """Samples right behind the window, as many at most."""
    loudest: torch.Tensor | None
    """float32 (): what was loudest in the input before, and with the window in it once that is encoded."""
    opening: torch.Tensor | None = None
    """float32 (samples,): the beginning of a long input, whose loudest counts for the first window; None once known."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One reading of a window: tokens without the end token, and their mean log-probability, the end included."""

    tokens: tuple[int, ...]
    avg_logprob: float
    frames: tuple[int, ...] = ()
    """Encoder frame of each token, where the search goes by frames."""
    log_probs: tuple[float, ...] = ()
    """Of each token at its frame."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What was read in a window."""

    hypotheses: tuple[Hypothesis, ...]
    """All that the search ended with, the best first; at least one."""
    silence: float | None
    """Probability that nobody speaks; None when the model does not tell."""
    finite: bool
    """False when the model computed NaN or infinity; the tokens are worthless then."""
    notes: tuple[str, ...]
    encoded: torch.Tensor | None
    """(time, feature): the window as encoded, where words are to be timed."""

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.hypotheses[0].tokens

    @property
    def avg_logprob(self) -> float:
        return self.hypotheses[0].avg_logprob


def as_error(error: Exception) -> OasrError:
    """What one input failed of: an error raised on purpose as it is, any other wrapped."""
    if isinstance(error, OasrError):
        return error
    if isinstance(error, torch.OutOfMemoryError):
        return DeviceError(f"Out of memory, also for this window alone: {error}")
    wrapped = ModelError(f"The model, or what works for it, failed on this window: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
