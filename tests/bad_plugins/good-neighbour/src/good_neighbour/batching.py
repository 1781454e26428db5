"""A batching policy that works."""

from oasr.interfaces.batching import BatchingPolicy


class OneAtATime(BatchingPolicy):
    """Batches of one."""

    max_rows = 1

    def __init__(self, config):
        pass

    def choose(self, waiting, budget, now):
        return [each.key for each in waiting[: min(budget.rows, 1)]]
