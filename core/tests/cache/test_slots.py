"""Slots are handed out once, the lowest first."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oasr.cache.slots import SlotCache
from oasr.testing.suite import LAW


@pytest.fixture
def slots() -> SlotCache:
    return SlotCache({"state": (2, 3), "flag": ()}, 4, torch.device("cpu"), torch.float32)


def test_tensors_have_a_slot_axis_and_the_layouts_shape(slots: SlotCache) -> None:
    assert {name: tuple(tensor.shape) for name, tensor in slots.tensors.items()} == {"state": (4, 2, 3), "flag": (4,)}


def test_the_lowest_free_slot_comes_first(slots: SlotCache) -> None:
    assert [slots.acquire() for _ in range(3)] == [0, 1, 2]
    slots.release(1)
    slots.release(0)
    assert [slots.acquire() for _ in range(3)] == [0, 1, 3]


def test_none_is_no_room(slots: SlotCache) -> None:
    for _ in range(4):
        assert slots.acquire() is not None
    assert slots.acquire() is None
    assert slots.free == 0


def test_releasing_twice_does_nothing(slots: SlotCache) -> None:
    slots.acquire()
    slots.release(0)
    slots.release(0)
    assert slots.free == 4


def test_moving_copies_all_of_a_slots_state(slots: SlotCache) -> None:
    for tensor in slots.tensors.values():
        tensor.copy_(torch.arange(tensor.numel()).view(tensor.shape))
    before = {name: tensor.clone() for name, tensor in slots.tensors.items()}
    slots.move(3, 1)
    for name, tensor in slots.tensors.items():
        assert torch.equal(tensor[1], before[name][3])
        assert torch.equal(tensor[[0, 2, 3]], before[name][[0, 2, 3]])


@LAW
@given(actions=st.lists(st.integers(-4, 3)))
def test_no_slot_is_lent_twice_or_lost(actions: list[int]) -> None:
    """A negative action acquires; another releases that slot, taken or not."""
    slots = SlotCache({}, 4, torch.device("cpu"), torch.float32)
    taken: set[int] = set()
    for action in actions:
        if action >= 0:
            slots.release(action)
            taken.discard(action)
            continue
        slot = slots.acquire()
        assert (slot is None) == (len(taken) == 4)
        assert slot not in taken
        taken |= {slot} - {None}
    assert slots.free == 4 - len(taken)
