"""Drives an autoregressive head by hand, as the engine does."""

from collections.abc import Sequence

import torch

from oasr.cache.paged import PagedCache, blocks_for
from oasr.cache.slots import SlotCache
from oasr.cache.view import RowsView
from oasr.interfaces.architecture import Architecture, EncoderOutput
from oasr.interfaces.heads import AutoregressiveHead


class HeadRows:
    """Rows of one batch with caches of their own."""

    def __init__(self, model: Architecture, rows: int):
        self.head: AutoregressiveHead = model.head("autoregressive")
        layout = self.head.cache_layout
        self._device = model.device
        self._paged = PagedCache(layout.paged, rows, model.device, model.dtype)
        self._slots = SlotCache(layout.slots, rows, model.device, model.dtype)
        leases = [self._paged.reserve(layout.paged.max_tokens) for _ in range(rows)]
        self._tables = torch.tensor([lease.blocks for lease in leases if lease], device=model.device)
        self._lengths = torch.zeros(rows, dtype=torch.int64, device=model.device)

    def prefill(self, prompts: Sequence[Sequence[int]], encoded: EncoderOutput) -> torch.Tensor:
        """Read a prompt in every row; returns logits (rows, vocabulary)."""
        longest = max(map(len, prompts))
        tokens = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=self._device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self._device)
        rows = torch.arange(len(prompts), device=self._device)
        tables = self._tables[:, : blocks_for(longest)]
        view = RowsView(self._paged, self._slots, rows, tables, self._lengths, new_lengths=lengths, new=longest)
        logits, _ = self.head.prefill(tokens, lengths, encoded, view)
        self._lengths = lengths
        return logits

    def step(self, tokens: Sequence[int]) -> torch.Tensor:
        """Read one more token in every row; returns logits (rows, vocabulary)."""
        rows = slice(0, len(tokens))
        view = RowsView(self._paged, self._slots, rows, self._tables, self._lengths)
        logits = self.head.step(torch.tensor(tokens, device=self._device), view)
        self._lengths = self._lengths + 1
        return logits
