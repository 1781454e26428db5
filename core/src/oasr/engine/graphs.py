"""CUDA graphs of decode steps: one launch in place of hundreds."""

import threading
from collections.abc import Callable, Hashable
from typing import Any

import torch

_MOST_GRAPHS = 64
_FEWEST_BLOCKS = 4

_capturing = threading.Lock()  # CUDA allows one capture at a time in a process


class StepGraphs:
    """Captured decode steps, by size and by whatever else decides what a step computes.

    `step(rows, blocks)` must keep its state in tensors that stay, and may be asked for more rows or blocks than used.
    Settings that are never seen again, such as a suppress list of one request, are forgotten after 64 others.
    """

    def __init__(self, step: Callable[[int, int], None], device: torch.device, most_rows: int, most_blocks: int):
        self._step = step
        self._most_rows = most_rows
        self._most_blocks = most_blocks
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool: Any = None

    def size(self, rows: int, blocks: int) -> tuple[int, int]:
        """The size that is captured for so many rows and blocks."""
        blocks = max(blocks, _FEWEST_BLOCKS)
        return min(_round_up(rows), self._most_rows), min(_round_up(blocks), self._most_blocks)

    def find(self, rows: int, blocks: int, setting: Hashable) -> torch.cuda.CUDAGraph | None:
        return self._graphs.get((self.size(rows, blocks), setting))

    def capture(self, rows: int, blocks: int, setting: Hashable) -> None:
        """Record a step of this size without doing it; the same step must have been done before, uncaptured.

        Raises `RuntimeError` when it cannot be captured.
        """
        size = self.size(rows, blocks)
        graph = torch.cuda.CUDAGraph()
        # thread_local: other threads of the process may go on allocating and copying meanwhile.
        with _capturing, torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
            self._step(*size)
        self._pool = graph.pool()
        if len(self._graphs) == _MOST_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        self._graphs[size, setting] = graph


def _round_up(size: int) -> int:
    """To a power of four: capturing takes longer than many steps, and computing a few rows too many takes nothing."""
    power = 1
    while power < size:
        power *= 4
    return power
