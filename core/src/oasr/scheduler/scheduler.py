"""Which windows wait, which run, and which to encode next."""

from collections.abc import Callable, Collection

from oasr.errors import OasrError
from oasr.interfaces.batching import BatchingPolicy, Budget, Waiting


class PolicyError(OasrError):
    """A batching policy broke its contract; nothing was started."""


class Scheduler:
    """Keeps windows by key from `add` until `finish` or `cancel`. Not thread-safe: the engine's lock guards it."""

    def __init__(self, policy: BatchingPolicy, rows: int, clock: Callable[[], float]):
        self._policy = policy
        self._rows = rows
        self._clock = clock
        self._waiting: dict[int, Waiting] = {}
        self._running: set[int] = set()

    @property
    def has_work(self) -> bool:
        return bool(self._waiting or self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._running)

    def add(self, key: int, frames: int) -> None:
        """Let a window wait its turn."""
        self._waiting[key] = Waiting(key, frames, self._clock())

    def cancel(self, key: int) -> None:
        """Forget a window, whatever it is doing."""
        self._waiting.pop(key, None)
        self._running.discard(key)

    def plan(self) -> list[int]:
        """Keys of the windows to encode now; empty when it is better to go on decoding.

        Raises `PolicyError` naming the policy when its choice is not possible.
        """
        budget = Budget(rows=self._rows - len(self._running), running=len(self._running))
        chosen = self._policy.choose(tuple(self._waiting.values()), budget, self._clock())
        problem = self._fault(chosen, budget)
        if problem:
            raise PolicyError(f"Batching policy {type(self._policy).__name__} {problem}")
        return chosen

    def _fault(self, chosen: list[int], budget: Budget) -> str | None:
        if len(set(chosen)) != len(chosen):
            return "chose a window twice"
        if not self._waiting.keys() >= set(chosen):
            return "chose a window that does not wait"
        if len(chosen) > budget.rows:
            return f"chose {len(chosen)} windows where {budget.rows} rows are free"
        if self._waiting and not chosen and budget.running == 0:
            return "chose nothing though nothing runs"
        return None

    def commit(self, started: Collection[int], finished: Collection[int] = ()) -> None:
        """Record what became of a plan; what was planned but not started keeps its place in the queue."""
        for key in started:
            del self._waiting[key]
            self._running.add(key)
        self._running.difference_update(finished)
