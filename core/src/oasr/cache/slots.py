"""State of fixed size: one slot a row, allocated once."""

import heapq
from collections.abc import Mapping

import torch


class SlotCache:
    """Named tensors whose first axis is the slot; who acquires one fills it before reading.

    The lowest free slot is handed out first, so the slots in use stay dense.
    """

    def __init__(self, layout: Mapping[str, tuple[int, ...]], slots: int, device: torch.device, dtype: torch.dtype):
        self.tensors = {
            name: torch.empty((slots, *shape), device=device, dtype=dtype) for name, shape in layout.items()
        }
        self.slots = slots
        self._free = list(range(slots))
        self._taken: set[int] = set()

    @property
    def free(self) -> int:
        return len(self._free)

    def acquire(self) -> int | None:
        """A slot, or None when there is none."""
        if not self._free:
            return None
        slot = heapq.heappop(self._free)
        self._taken.add(slot)
        return slot

    def release(self, slot: int) -> None:
        """Give a slot back; releasing twice does nothing."""
        if slot in self._taken:
            self._taken.remove(slot)
            heapq.heappush(self._free, slot)

    def move(self, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Copy the state of slots into as many other slots."""
        for tensor in self.tensors.values():
            tensor[targets] = tensor[sources]
