"""The scheduler keeps windows from the moment they arrive until they end, and trusts no policy."""

from collections.abc import Sequence

import pytest

from oasr.interfaces.batching import BatchingPolicy, Budget, Waiting
from oasr.scheduler.scheduler import PolicyError, Scheduler


class Scripted(BatchingPolicy):
    """Chooses what a test says, and remembers what it was asked."""

    max_rows = None

    def __init__(self, *choices: list[int]):
        self._choices = list(choices)
        self.asked: list[tuple[Sequence[Waiting], Budget, float]] = []

    def choose(self, waiting: Sequence[Waiting], budget: Budget, now: float) -> list[int]:
        self.asked.append((waiting, budget, now))
        return self._choices.pop(0)


def scheduler(*choices: list[int], rows: int = 4) -> Scheduler:
    return Scheduler(Scripted(*choices), rows, lambda: 0.0)


def test_a_policy_sees_the_queue_in_order_of_arrival_the_room_and_the_time() -> None:
    clock = iter([1.0, 2.0, 3.0, 4.0])
    policy = Scripted([7], [])
    scheduler = Scheduler(policy, 3, lambda: next(clock))
    scheduler.add(7, 100)
    scheduler.add(5, 200)
    scheduler.commit(scheduler.plan())
    scheduler.plan()
    assert policy.asked == [
        ((Waiting(7, 100, 1.0), Waiting(5, 200, 2.0)), Budget(rows=3, running=0), 3.0),
        ((Waiting(5, 200, 2.0),), Budget(rows=2, running=1), 4.0),
    ]


def test_windows_wait_then_run_then_are_gone() -> None:
    work = scheduler([1])
    work.add(1, 100)
    assert (work.waiting, work.running, work.has_work) == (1, 0, True)
    work.commit(work.plan())
    assert (work.waiting, work.running, work.has_work) == (0, 1, True)
    work.commit((), [1])
    assert (work.waiting, work.running, work.has_work) == (0, 0, False)


def test_what_was_planned_and_not_started_keeps_its_place() -> None:
    work = scheduler([1, 2], [1])
    work.add(1, 100)
    work.add(2, 100)
    work.plan()
    work.commit([2])
    assert (work.waiting, work.running) == (1, 1)
    assert work.plan() == [1]


def test_a_window_may_start_and_end_in_one_commit() -> None:
    work = scheduler([1])
    work.add(1, 100)
    work.commit(work.plan(), [1])
    assert not work.has_work


@pytest.mark.parametrize("is_running", [False, True])
def test_a_cancelled_window_is_forgotten_wherever_it_is(is_running: bool) -> None:
    work = scheduler([1])
    work.add(1, 100)
    if is_running:
        work.commit(work.plan())
    work.cancel(1)
    assert not work.has_work


def test_cancelling_what_is_not_there_does_no_harm() -> None:
    work = scheduler()
    work.cancel(99)
    assert not work.has_work


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        ([1, 1], "twice"),
        ([1, 99], "does not wait"),
        ([1, 2, 3], "3 windows where 2 rows are free"),
        ([], "nothing though nothing runs"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_and_names_the_policy(choice: list[int], complaint: str) -> None:
    work = scheduler(choice, [1], rows=2)
    for key in (1, 2, 3):
        work.add(key, 100)
    with pytest.raises(PolicyError, match=f"Scripted.*{complaint}"):
        work.plan()
    assert (work.waiting, work.running) == (3, 0)
    assert work.plan() == [1]


def test_a_policy_may_go_on_decoding() -> None:
    work = scheduler([1], [])
    work.add(1, 100)
    work.commit(work.plan())
    work.add(2, 100)
    assert work.plan() == []


def test_a_running_window_cannot_be_chosen_again() -> None:
    work = scheduler([1], [1])
    work.add(1, 100)
    work.commit(work.plan())
    with pytest.raises(PolicyError, match="does not wait"):
        work.plan()
