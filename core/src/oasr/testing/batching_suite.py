"""Laws of batching policies, in simulated time."""

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.interfaces.batching import BatchingPolicy, Budget, Waiting
from oasr.plugin import Kind
from oasr.scheduler.scheduler import Scheduler
from oasr.testing.suite import LAW, ComponentSuite

_QUEUES = st.lists(st.tuples(st.integers(0, 3000), st.floats(0, 100)), max_size=20).map(
    lambda windows: tuple(Waiting(key, frames, since) for key, (frames, since) in enumerate(windows))
)
_BUDGETS = st.builds(Budget, rows=st.integers(0, 8), running=st.integers(0, 8))


class BatchingSuite(ComponentSuite):
    """A policy keeps to its budget, lets nobody starve and never stands still."""

    kind: ClassVar[Kind] = Kind.BATCHING
    patience_seconds: ClassVar[float] = 10.0
    """How long a window may wait in the busy simulation, which has room for everybody."""

    @pytest.fixture
    def policy(self, created: BatchingPolicy) -> BatchingPolicy:
        """The policy, made from `options`."""
        return created

    def test_it_sizes_the_engine_sensibly(self, policy: BatchingPolicy) -> None:
        assert policy.max_rows is None or policy.max_rows >= 1

    @LAW
    @given(queue=_QUEUES, budget=_BUDGETS)
    def test_it_never_exceeds_the_budget(
        self, policy: BatchingPolicy, queue: tuple[Waiting, ...], budget: Budget
    ) -> None:
        chosen = policy.choose(queue, budget, 100.0)
        assert len(chosen) <= budget.rows

    @LAW
    @given(queue=_QUEUES, budget=_BUDGETS)
    def test_it_chooses_waiting_windows_once_each(
        self, policy: BatchingPolicy, queue: tuple[Waiting, ...], budget: Budget
    ) -> None:
        chosen = policy.choose(queue, budget, 100.0)
        assert len(set(chosen)) == len(chosen)
        assert set(chosen) <= {window.key for window in queue}

    @LAW
    @given(queue=_QUEUES, rows=st.integers(1, 8))
    def test_it_is_never_idle_when_something_waits_and_nothing_runs(
        self, policy: BatchingPolicy, queue: tuple[Waiting, ...], rows: int
    ) -> None:
        assert bool(policy.choose(queue, Budget(rows=rows, running=0), 100.0)) == bool(queue)

    @LAW
    @given(queue=_QUEUES, budget=_BUDGETS)
    def test_it_is_a_pure_function(self, policy: BatchingPolicy, queue: tuple[Waiting, ...], budget: Budget) -> None:
        first = policy.choose(queue, budget, 100.0)
        policy.choose(queue[1:], Budget(rows=2, running=1), 200.0)
        assert policy.choose(queue, budget, 100.0) == first

    @pytest.mark.parametrize("frames", [1, 100, 100_000])
    def test_nobody_starves(self, policy: BatchingPolicy, frames: int) -> None:
        """One odd window among a stream of others, just as many as the engine can serve."""
        rows, tick, duration = 4, 0.05, 8
        now = 0.0
        scheduler = Scheduler(policy, rows, lambda: now)
        running: dict[int, int] = {}
        scheduler.add(0, frames)
        for step in range(1, int(self.patience_seconds / tick)):
            now = step * tick
            for arrival in range(rows if step % duration == 1 else 0):
                scheduler.add(step * rows + arrival, 1000)
            planned = scheduler.plan()
            if 0 in planned:
                return
            running |= dict.fromkeys(planned, step + duration)
            ended = [key for key, end in running.items() if end <= step]
            scheduler.commit(planned, ended)
            running = {key: end for key, end in running.items() if end > step}
        pytest.fail(f"a window of {frames} frames has waited {self.patience_seconds} s among windows of 1000 frames")

    def test_everything_that_arrives_is_served(self, policy: BatchingPolicy) -> None:
        scheduler = Scheduler(policy, 3, lambda: 0.0)
        for key in range(50):
            scheduler.add(key, frames=(key * 37) % 300)
        served: list[int] = []
        while scheduler.has_work:
            planned = scheduler.plan()
            served += planned
            scheduler.commit(planned, planned)
        assert sorted(served) == list(range(50))
