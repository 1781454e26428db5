"""Keys and values of autoregressive decoding, in blocks (the paged attention of Kwon et al., 2023)."""

from dataclasses import dataclass

import torch

from oasr.interfaces.architecture import PagedLayout

BLOCK_TOKENS = 32


@dataclass(slots=True)
class Lease:
    """Blocks that belong to one row until they are released."""

    blocks: tuple[int, ...]


class PagedCache:
    """A pool of blocks of `BLOCK_TOKENS` tokens for all layers.

    Block 0 belongs to nobody: what must be written somewhere but is never read, such as padding, goes there.
    """

    def __init__(self, layout: PagedLayout, rows: int, device: torch.device, dtype: torch.dtype):
        """Room for `rows` rows of `layout.max_tokens` tokens."""
        self.blocks_per_row = blocks_for(layout.max_tokens)
        blocks = 1 + rows * self.blocks_per_row
        shape = (layout.layers, blocks, BLOCK_TOKENS, layout.heads, layout.head_size)
        # Zeros, not empty: block 0 is read too, with weight zero.
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self._free = list(range(blocks - 1, 0, -1))

    @property
    def free_blocks(self) -> int:
        return len(self._free)

    def reserve(self, tokens: int) -> Lease | None:
        """Blocks for so many tokens, or None when there is no room now."""
        count = blocks_for(tokens)
        if count > len(self._free):
            return None
        return Lease(tuple(self._free.pop() for _ in range(count)))

    def release(self, lease: Lease) -> None:
        """Give the blocks back; releasing twice does nothing."""
        self._free.extend(reversed(lease.blocks))
        lease.blocks = ()

    def fork(
        self, tables: torch.Tensor, own: torch.Tensor, parents: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        """Let rows continue from what others hold, copy-on-write; returns their new tables (rows, blocks).

        tables (rows, blocks) and lengths (rows,) are what the rows use, parents (rows,) the row each goes on from, own
        (rows, blocks) the blocks that each may write to. Full blocks are never written again and so are shared; only
        the one that is being filled is copied. Owners must not release a block while others may share it.
        """
        filling = (lengths[parents] // BLOCK_TOKENS)[:, None].clamp(max=tables.shape[1] - 1)
        inherited = tables[parents]
        source, target = inherited.gather(1, filling)[:, 0], own.gather(1, filling)[:, 0]
        for pool in (self.keys, self.values):
            pool.index_copy_(1, target, pool.index_select(1, source))
        column = torch.arange(tables.shape[1], device=tables.device)
        return torch.where(column < filling, inherited, own)

    def clear(self, tables: torch.Tensor) -> None:
        """Zero the blocks in the tables of rows that begin.

        Places not filled yet are read with weight zero, and zero times what an earlier owner left may be NaN.
        """
        index = tables.flatten()
        self.keys[:, index] = 0
        self.values[:, index] = 0


def blocks_for(tokens: int) -> int:
    """Blocks that hold so many tokens."""
    return -(-tokens // BLOCK_TOKENS)
