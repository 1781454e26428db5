"""Batching policies: which of the waiting windows to encode now. Pure functions, testable without torch."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from oasr.interfaces.component import ComponentConfig


@dataclass(frozen=True, slots=True)
class Waiting:
    """A window of audio that has not been encoded yet."""

    key: int
    """Identifies the window to the scheduler."""
    frames: int
    """Feature frames it costs."""
    since: float
    """When it arrived, in seconds of the scheduler's clock."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What there is room for."""

    rows: int
    """Rows free for decoding now."""
    running: int
    """Rows being decoded."""


class BatchingPolicy(ABC):
    """Chooses what to encode next; the scheduler checks that the choice keeps to the budget."""

    max_rows: int | None
    """Most rows decoded at once, by which the engine sizes its caches; None leaves it to the engine."""

    @abstractmethod
    def __init__(self, config: ComponentConfig | None):
        """Take the options; None for a component that declares no configuration."""

    @abstractmethod
    def choose(self, waiting: Sequence[Waiting], budget: Budget, now: float) -> list[int]:
        """Keys of the windows to encode as one batch, at most `budget.rows` of them; empty to go on decoding.

        When nothing runs and something waits, the choice must not be empty, or the engine would stand still.
        """
