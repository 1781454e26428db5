"""The built-in policy: batches of like length, under a frame budget, the oldest first."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from oasr.interfaces.batching import Budget, Waiting
from oasr.scheduler.bucketed import BucketedPolicy
from oasr.scheduler.config import BucketedConfig
from oasr.testing.suite import LAW

IDLE = Budget(rows=8, running=0)
QUEUES = st.lists(st.integers(0, 3000), min_size=1, max_size=20).map(lambda frames: queue(*frames))


def queue(*frames: int) -> list[Waiting]:
    """Windows of these frames, one second apart."""
    return [Waiting(key, each, since=float(key)) for key, each in enumerate(frames)]


def choose(waiting: list[Waiting], budget: Budget = IDLE, now: float = 100.0, **options: float) -> list[int]:
    return BucketedPolicy(BucketedConfig(**options)).choose(waiting, budget, now)


def test_windows_of_one_length_are_encoded_together() -> None:
    assert sorted(choose(queue(100, 100, 100))) == [0, 1, 2]


def test_windows_of_very_different_length_are_not() -> None:
    assert choose(queue(100, 3000, 3000)) == [0]


def test_the_oldest_goes_first_wherever_it_stands() -> None:
    waiting = queue(100, 3000)
    assert choose(waiting[::-1]) == [0]


def test_those_nearest_in_length_come_along() -> None:
    assert sorted(choose(queue(100, 124, 99, 101), Budget(rows=3, running=0))) == [0, 2, 3]


def test_a_batch_keeps_to_the_free_rows() -> None:
    assert len(choose(queue(*[100] * 20), Budget(rows=5, running=3))) == 5


def test_nothing_is_chosen_where_nothing_waits_or_no_row_is_free() -> None:
    assert choose([]) == []
    assert choose(queue(100), Budget(rows=0, running=8)) == []


def test_a_window_longer_than_the_budget_goes_alone() -> None:
    assert choose(queue(5000, 5000, 10), max_frames=3000) == [0]


@LAW
@given(waiting=QUEUES, max_frames=st.integers(1, 9000))
def test_padding_counts_towards_the_frame_budget(waiting: list[Waiting], max_frames: int) -> None:
    chosen = choose(waiting, max_frames=max_frames)
    longest = max(waiting[key].frames for key in chosen)
    assert len(chosen) == 1 or longest * len(chosen) <= max_frames


@LAW
@given(waiting=QUEUES)
def test_padding_is_at_most_a_quarter(waiting: list[Waiting]) -> None:
    frames = [waiting[key].frames for key in choose(waiting)]
    assert max(frames) <= 1.25 * min(frames)


@LAW
@given(waiting=QUEUES)
def test_the_oldest_is_always_among_the_chosen(waiting: list[Waiting]) -> None:
    assert 0 in choose(waiting)


@LAW
@given(waiting=QUEUES, max_frames=st.integers(1, 9000))
def test_a_larger_budget_never_makes_a_smaller_batch(waiting: list[Waiting], max_frames: int) -> None:
    sizes = [len(choose(waiting, max_frames=limit)) for limit in (max_frames, 2 * max_frames)]
    assert all(small <= large for small, large in pairwise(sizes))


def test_a_window_waits_for_company_while_a_full_engine_decodes() -> None:
    assert choose(queue(100), Budget(rows=1, running=100), now=0.001, max_wait_seconds=0.05) == []


def test_it_does_not_wait_for_ever() -> None:
    assert choose(queue(100), Budget(rows=1, running=100), now=0.05, max_wait_seconds=0.05) == [0]


def test_it_does_not_wait_while_nothing_decodes() -> None:
    assert choose(queue(100), IDLE, now=0.0, max_wait_seconds=60.0) == [0]


def test_it_does_not_wait_once_a_batch_is_worthwhile() -> None:
    assert choose(queue(*[100] * 8), Budget(rows=8, running=8), now=0.0, max_wait_seconds=60.0)


def test_rows_are_those_of_the_configuration() -> None:
    assert BucketedPolicy(BucketedConfig(max_rows=3)).max_rows == 3
    assert BucketedPolicy(BucketedConfig()).max_rows is None
