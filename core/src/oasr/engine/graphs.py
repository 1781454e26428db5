"""CUDA graphs of decode steps: one launch in place of hundreds."""

from collections.abc import Callable
from typing import Any

import torch


class StepGraphs:
    """Captures `step(rows, blocks)` once for each size it is asked for, rounded up, and replays it after.

    `step` must write its results into tensors that stay, and may be asked for more rows or blocks than needed.
    """

    def __init__(self, step: Callable[[int, int], None], most_rows: int, most_blocks: int):
        self._step = step
        self._most_rows = most_rows
        self._most_blocks = most_blocks
        self._graphs: dict[tuple[int, int], torch.cuda.CUDAGraph] = {}
        self._pool: Any = None

    def run(self, rows: int, blocks: int) -> None:
        size = (min(_round_up(rows), self._most_rows), min(_round_up(blocks), self._most_blocks))
        if size not in self._graphs:
            self._graphs[size] = self._capture(*size)
        self._graphs[size].replay()

    def _capture(self, rows: int, blocks: int) -> torch.cuda.CUDAGraph:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries allocate their workspaces outside the graph
            self._step(rows, blocks)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            self._step(rows, blocks)
        self._pool = graph.pool()
        return graph


def _round_up(size: int) -> int:
    return 1 << (size - 1).bit_length()
