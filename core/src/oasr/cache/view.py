"""Some rows of both caches, for one forward pass."""

import torch

from oasr.cache.paged import BLOCK_TOKENS, PagedCache
from oasr.cache.slots import SlotCache
from oasr.interfaces.cache import CacheView


class RowsView(CacheView):
    """Rows that each add `new` tokens to the `lengths` they hold.

    Everything is computed on the device from tensors of static shape, so that a step can be captured in a CUDA graph.
    """

    def __init__(
        self,
        paged: PagedCache,
        slots: SlotCache,
        windows: slice | torch.Tensor,
        tables: torch.Tensor,
        lengths: torch.Tensor,
        new_lengths: torch.Tensor | None = None,
        new: int = 1,
        width: int = 1,
    ):
        """windows: their slots; tables int64 (rows, blocks) and lengths int64 (rows,), `width` rows for each window.

        `new_lengths` (rows,) says how many of the `new` tokens are valid; the rest is padding.
        """
        steps = torch.arange(new, device=lengths.device)
        self.positions = lengths[:, None] + steps
        time = torch.arange(tables.shape[1] * BLOCK_TOKENS, device=lengths.device)
        self.mask = (time <= self.positions[:, :, None])[:, None]
        block = tables.gather(1, self.positions // BLOCK_TOKENS)
        places = block * BLOCK_TOKENS + self.positions % BLOCK_TOKENS
        if new_lengths is not None:
            places = places.masked_fill(steps >= new_lengths[:, None], 0)
        self._places = places.flatten()
        # What belongs to nobody is stored as zeros: rows with fewer blocks than others read block 0, with weight zero,
        # and zero times NaN is NaN.
        self._nobodys = (self._places < BLOCK_TOKENS)[:, None, None]
        self._tables = tables
        self._windows = windows
        self.width = width
        self._paged = paged
        self._slots = slots

    def append(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self._exchange(self._paged.keys[layer], keys), self._exchange(self._paged.values[layer], values)

    def _exchange(self, pool: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        pool.flatten(0, 1).index_copy_(0, self._places, new.flatten(0, 1).masked_fill(self._nobodys, 0))
        return pool[self._tables].flatten(1, 2)

    def store(self, name: str, index: int, values: torch.Tensor) -> None:
        self._slots.tensors[name][self._windows, index] = values

    def load(self, name: str, index: int) -> torch.Tensor:
        return self._slots.tensors[name][self._windows, index]
