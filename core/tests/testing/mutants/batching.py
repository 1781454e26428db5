from collections import Counter

from oasr.interfaces.batching import BatchingPolicy


class NewestFirst(BatchingPolicy):
    """Serves the most common length, so that an odd one waits for ever."""

    max_rows = None

    def __init__(self, config):
        pass

    def choose(self, waiting, budget, now):
        common = Counter(window.frames for window in waiting)
        ordered = sorted(waiting, key=lambda window: (-common[window.frames], -window.since))
        return [window.key for window in ordered[: budget.rows]]


class TooMany(NewestFirst):
    """Ignores the budget."""

    def choose(self, waiting, budget, now):
        return [window.key for window in waiting]


class Idle(NewestFirst):
    """Waits for a second window."""

    def choose(self, waiting, budget, now):
        return super().choose(waiting, budget, now) if len(waiting) > 1 else []
