"""How the tests look into the network."""

from collections.abc import Callable

import pytest
import torch

from oasr.cache.paged import PagedCache
from oasr.cache.slots import SlotCache
from oasr.cache.view import RowsView
from oasr.interfaces.architecture import Architecture, EncoderOutput


@pytest.fixture(scope="session")
def first_logits() -> Callable[[Architecture, EncoderOutput, list[int]], torch.Tensor]:
    """Logits after a prompt, (vocabulary,), through caches of one row."""

    def compute(model: Architecture, encoded: EncoderOutput, prompt: list[int]) -> torch.Tensor:
        head = model.head("autoregressive")
        layout = head.cache_layout
        paged = PagedCache(layout.paged, 1, model.device, model.dtype)
        lease = paged.reserve(len(prompt))
        lengths = torch.tensor([len(prompt)], device=model.device)
        view = RowsView(
            paged,
            SlotCache(layout.slots, 1, model.device, model.dtype),
            windows=torch.tensor([0], device=model.device),
            tables=torch.tensor([lease.blocks], device=model.device),
            lengths=torch.zeros_like(lengths),
            new_lengths=lengths,
            new=len(prompt),
        )
        logits, _ = head.prefill(torch.tensor([prompt], device=model.device), lengths, encoded, view)
        return logits[0]

    return compute
