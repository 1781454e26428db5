"""CUDA graphs of decode steps: one launch in place of hundreds."""

from collections.abc import Callable, Hashable
from typing import Any

import torch

_MOST_GRAPHS = 64
_FEWEST_BLOCKS = 4


class StepGraphs:
    """Captures `step(rows, blocks)` once for each size and setting it is asked for, and replays it after.

    `step` must keep its state in tensors that stay, and may be asked for more rows or blocks than needed.
    """

    def __init__(self, step: Callable[[int, int], None]):
        self._step = step
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool: Any = None

    def run(self, rows: int, blocks: int, most_rows: int, most_blocks: int, setting: Hashable) -> None:
        """Do one step. `setting` stands for whatever else decides what the step computes.

        Raises `RuntimeError` when the step cannot be captured.
        """
        size = (min(_round_up(rows), most_rows), min(_round_up(max(blocks, _FEWEST_BLOCKS)), most_blocks))
        graph = self._graphs.get((size, setting))
        if graph is not None:
            graph.replay()
            return
        self._step_aside(*size)
        if len(self._graphs) == _MOST_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        self._graphs[size, setting] = self._capture(*size)

    def _step_aside(self, rows: int, blocks: int) -> None:
        """A step as usual, on a side stream: libraries allocate their workspaces outside the graph then."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._step(rows, blocks)
        torch.cuda.current_stream().wait_stream(side)

    def _capture(self, rows: int, blocks: int) -> torch.cuda.CUDAGraph:
        """Record the next step without doing it."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            self._step(rows, blocks)
        self._pool = graph.pool()
        return graph


def _round_up(size: int) -> int:
    """To a power of four: capturing takes longer than many steps, and computing a few rows too many takes nothing."""
    power = 1
    while power < size:
        power *= 4
    return power
