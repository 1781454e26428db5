"""Batches of like length under a frame budget."""

from collections.abc import Sequence

from oasr.interfaces.batching import BatchingPolicy, Budget, Waiting
from oasr.scheduler.config import BucketedConfig

_BUCKET_RATIO = 1.25  # the longest of a batch is at most this much longer than the shortest, so padding stays small
_WORTHWHILE_SHARE = 4  # while others decode, an encoder batch pays from a quarter of the rows on


class BucketedPolicy(BatchingPolicy):
    """The window that has waited longest, with those nearest to it in length."""

    def __init__(self, config: BucketedConfig):
        self._config = config
        self.max_rows = config.max_rows

    def choose(self, waiting: Sequence[Waiting], budget: Budget, now: float) -> list[int]:
        if not waiting or budget.rows == 0:
            return []
        oldest = min(waiting, key=lambda window: window.since)
        if not self._worthwhile(len(waiting), budget, now - oldest.since):
            return []
        chosen = [oldest]
        for window in sorted(waiting, key=lambda window: abs(window.frames - oldest.frames)):
            if len(chosen) == budget.rows:
                break
            if window is not oldest and self._fits([*chosen, window]):
                chosen.append(window)
        return [window.key for window in chosen]

    def _worthwhile(self, waiting: int, budget: Budget, waited: float) -> bool:
        if budget.running == 0 or waited >= self._config.max_wait_seconds:
            return True
        return min(waiting, budget.rows) * _WORTHWHILE_SHARE >= budget.rows + budget.running

    def _fits(self, windows: list[Waiting]) -> bool:
        longest = max(window.frames for window in windows)
        shortest = min(window.frames for window in windows)
        return longest <= shortest * _BUCKET_RATIO and longest * len(windows) <= self._config.max_frames
