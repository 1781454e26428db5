"""The rows being decoded as one batch: their caches, their state on the device, and one token after the other."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isnan
from traceback import clear_frames
from typing import Any

import torch

from oasr.cache.paged import Lease, PagedCache, blocks_for
from oasr.cache.slots import SlotCache
from oasr.cache.view import RowsView
from oasr.engine.graphs import StepGraphs
from oasr.engine.rows import RowState
from oasr.engine.window import Decoded, Window, as_error
from oasr.errors import OasrError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.decoder import LabelSynchronousDecoder
from oasr.interfaces.heads import AutoregressiveHead, Prompt
from oasr.interfaces.logits_rule import LogitsRule

_logger = logging.getLogger(__name__)

# Captured steps between two looks at the result: a finished row idles for at most seven of them.
_STEPS_PER_SYNC = 8


@dataclass(eq=False, slots=True)
class Row:
    """A window that is being decoded."""

    window: Window
    slot: int
    state: Any
    prompt: Prompt | None = None
    lease: Lease = field(default_factory=lambda: Lease(()))
    length: int = 0
    """Most tokens the row can hold by now: the host does not see at once that a row has finished."""
    encoded: torch.Tensor | None = None
    """(time, feature): kept where words are to be timed."""


class DecodeBatch:
    """Rows in flight on one device. Rows in use are always the first ones.

    A failure belongs to one row: a step that fails is split until the row at fault is alone.
    """

    def __init__(
        self,
        head: AutoregressiveHead,
        decoder: LabelSynchronousDecoder,
        rows: int,
        device: torch.device,
        dtype: torch.dtype,
    ):
        """Allocate the caches for so many rows."""
        layout = head.cache_layout
        self.rows: list[Row] = []
        self.paged = PagedCache(layout.paged, rows, device, dtype)
        self._head = head
        self._decoder = decoder
        self._device = device
        self._slots = SlotCache(layout.slots, rows, device, dtype)
        self._state = RowState.empty(
            rows, head.vocabulary_size, self.paged.blocks_per_row, layout.paged.max_tokens, device
        )
        self._rules: list[_Governed] = []
        self._uniform = False
        self._graphs: StepGraphs | None = None
        if device.type == "cuda":
            self._graphs = StepGraphs(self._choose_and_step, device, rows, self.paged.blocks_per_row)

    def take(self, window: Window) -> Row | None:
        """A row for a window, which decodes once it has begun; None without room. Raises what the search raises."""
        state = self._decoder.start(window.options, self._device)
        slot = self._slots.acquire()
        if slot is None:
            return None
        row = Row(window, slot, state)
        self.rows.append(row)
        return row

    def advance(self) -> list[tuple[Window, Decoded | OasrError]]:
        """Decode one token of every row, on a GPU several; returns the windows that finished."""
        if self._replay():
            done = self._retire()
        else:
            done = self._split(self._choose) + self._retire()
            self._count_token()
            done += self._split(self._step)
        if done:
            self.regroup()
        self._capture()
        return done

    def begin(self, rows: Sequence[Row], encoded: EncoderOutput) -> None:
        """Read the rows' prompts and let them decode from the next `advance` on."""
        prompts = [row.prompt for row in rows if row.prompt is not None]
        for row, prompt in zip(rows, prompts, strict=True):
            row.length = len(prompt.tokens)
        logits, silence = self.read(rows, [prompt.tokens for prompt in prompts], encoded)
        device = logits.device
        self._state.begin(
            rows=torch.tensor([row.slot for row in rows], device=device),
            logits=logits,
            silence=silence,
            lengths=torch.tensor([len(prompt.tokens) for prompt in prompts], device=device),
            limits=torch.tensor([prompt.max_new_tokens for prompt in prompts], device=device),
            ends=torch.tensor([prompt.end_token for prompt in prompts], device=device),
        )

    def read(
        self, rows: Sequence[Row], prompts: Sequence[Sequence[int]], encoded: EncoderOutput
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Read a prompt into each row's lease, which must be long enough; returns what the head's `prefill` does."""
        device = self._device
        longest = max(len(prompt) for prompt in prompts)
        tokens = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        slots = torch.tensor([row.slot for row in rows], device=device)
        width = self.paged.blocks_per_row
        tables = [[*row.lease.blocks, *[0] * (width - len(row.lease.blocks))] for row in rows]
        self._state.tables[slots] = torch.tensor(tables, device=device)
        self.paged.clear(self._state.tables[slots])
        view = RowsView(
            self.paged,
            self._slots,
            rows=slots,
            tables=self._state.tables[slots, : blocks_for(longest)],
            lengths=torch.zeros_like(lengths),
            new_lengths=lengths,
            new=longest,
        )
        return self._head.prefill(tokens, lengths, encoded, view)

    def _choose(self, start: int, stop: int) -> None:
        """Take the next token of rows from their logits."""
        state = self._state
        rows = slice(start, stop)
        logits = state.logits[rows].clone()  # rules may change logits, and a step that fails is done again
        for governed in self._rules:
            index = governed.within(start, min(stop, len(self.rows)))
            if index is None:
                logits = governed.rule.apply(logits, state.generated[rows], state.counts[rows])
            elif len(index):
                ruled = governed.rule.apply(logits[index], state.generated[rows][index], state.counts[rows][index])
                logits[index] = ruled
        states = [row.state for row in self.rows[rows]]
        states += [None] * (stop - start - len(states))
        tokens = self._decoder.advance(logits, state.generated[rows], state.counts[rows], states)
        chosen = logits.gather(1, tokens[:, None])[:, 0]
        state.take(rows, tokens, chosen - logits.logsumexp(dim=-1))

    def _step(self, start: int, stop: int) -> None:
        """Feed the tokens chosen last."""
        blocks = self._blocks_needed()
        if self._graphs is not None and stop - start == len(self.rows):
            stop, blocks = self._graphs.size(stop, blocks)  # as it will be captured, so that its kernels are loaded
        self._step_rows(slice(start, stop), blocks)

    def _choose_and_step(self, rows: int, blocks: int) -> None:
        self._choose(0, rows)
        self._step_rows(slice(0, rows), blocks)

    def _replay(self) -> bool:
        """Decode up to eight tokens as captured; False when the next one is not."""
        replayed = False
        for _ in range(_STEPS_PER_SYNC):
            graph = self._find_graph(more=1)
            if graph is None:
                break
            self._count_token()
            graph.replay()
            replayed = True
        return replayed

    def _find_graph(self, more: int) -> torch.cuda.CUDAGraph | None:
        if self._graphs is None or not self._uniform:
            return None
        return self._graphs.find(len(self.rows), self._blocks_needed(more), self._setting())

    def _capture(self) -> None:
        """Capture a step of the size in use, unless it has been or the rows cannot be captured."""
        if self._graphs is None or not self._uniform or self._find_graph(more=0) is not None:
            return
        try:
            self._graphs.capture(len(self.rows), self._blocks_needed(), self._setting())
        except RuntimeError as error:
            _logger.warning("decoding without CUDA graphs: the step could not be captured (%s)", error)
            self._graphs = None

    def _setting(self) -> tuple[LogitsRule, ...]:
        return tuple(governed.rule for governed in self._rules)

    def _blocks_needed(self, more: int = 0) -> int:
        """Blocks that hold every row, with so many tokens more."""
        return min(max(blocks_for(row.length + more) for row in self.rows), self.paged.blocks_per_row)

    def _count_token(self) -> None:
        """One token more in each row, as far as the host knows."""
        for row in self.rows:
            row.length += 1

    def _split(self, compute: Callable[[int, int], None]) -> list[tuple[Window, Decoded | OasrError]]:
        """Compute all rows as one batch; where that fails, halves of it, until the rows at fault are alone.

        These are taken out and returned with the reason.
        """
        failed: list[tuple[Row, OasrError]] = []

        def attempt(start: int, stop: int) -> None:
            if start == stop:
                return
            try:
                compute(start, stop)
                return
            except Exception as error:
                clear_frames(error.__traceback__)  # they hold the memory that the halves will need
                if stop - start == 1:
                    failed.append((self.rows[start], as_error(error)))
                    return
                _logger.debug("a decode step of %d rows failed (%s); splitting it", stop - start, error)
            middle = (start + stop) // 2
            attempt(start, middle)
            attempt(middle, stop)

        attempt(0, len(self.rows))
        if failed:
            self.remove(*(row for row, _ in failed))
        return [(row.window, error) for row, error in failed]

    def _step_rows(self, rows: slice, blocks: int) -> None:
        state = self._state
        view = RowsView(self.paged, self._slots, rows, state.tables[rows, :blocks], state.lengths[rows])
        state.logits[rows] = self._head.step(state.tokens[rows], view)
        state.lengths[rows] += ~state.finished[rows]

    def _retire(self) -> list[tuple[Window, Decoded | OasrError]]:
        """Take the finished rows out. Of a step, this alone waits for the device."""
        done: list[tuple[Window, Decoded | OasrError]] = []
        n = len(self.rows)
        state = self._state
        flags = torch.stack(
            (state.finished[:n], state.finite[:n], state.counts[:n], state.score[:n], state.silence[:n])
        )
        report = [(row, *values) for row, values in zip(self.rows, flags.T.tolist(), strict=True) if values[0]]
        if not report:
            return done
        generated = state.generated[torch.tensor([row.slot for row, *_ in report], device=flags.device)].tolist()
        for (row, _, finite, count, score, silence), tokens in zip(report, generated, strict=True):
            assert row.prompt is not None
            kept = tokens[: int(count)]
            if kept[-1] == row.prompt.end_token:
                kept.pop()
            heard = None if isnan(silence) else silence
            done.append(
                (row.window, Decoded(tuple(kept), score / count, heard, bool(finite), row.prompt.notes, row.encoded))
            )
        self.remove(*(row for row, *_ in report))
        return done

    def remove(self, *removed: Row) -> None:
        """Take rows out; the last rows move into their places."""
        for row in removed:
            self.paged.release(row.lease)
        kept = [row for row in self.rows if row not in removed]
        holes = [row.slot for row in removed if row.slot < len(kept)]
        movers = [row for row in kept if row.slot >= len(kept)]
        if movers:
            sources = torch.tensor([row.slot for row in movers], device=self._device)
            targets = torch.tensor(holes, device=self._device)
            self._slots.move(sources, targets)
            self._state.move(sources, targets)
        for row, slot in zip(movers, holes, strict=True):
            row.slot = slot
        for slot in range(len(kept), len(self.rows)):
            self._slots.release(slot)
        self._state.clear(slice(len(kept), len(self.rows)))
        self.rows = sorted(kept, key=lambda row: row.slot)

    def regroup(self) -> None:
        """Work out which rows each rule governs: when rows come or go, not at every step."""
        slots: dict[LogitsRule, list[int]] = {}
        for row in self.rows:
            for rule in row.prompt.rules if row.prompt else ():
                slots.setdefault(rule, []).append(row.slot)
        self._rules = [_Governed(rule, each, len(self.rows), self._device) for rule, each in slots.items()]
        everywhere = all(governed.index is None for governed in self._rules)
        self._uniform = bool(self.rows) and everywhere and all(row.state is None for row in self.rows)


class _Governed:
    """The rows that one rule governs."""

    def __init__(self, rule: LogitsRule, slots: list[int], rows: int, device: torch.device):
        self.rule = rule
        self.index = None if len(slots) == rows else torch.tensor(slots, device=device)
        """None means all."""
        self._rows = rows

    def within(self, start: int, stop: int) -> torch.Tensor | None:
        """Those among the rows from start to stop, counted from start."""
        if self.index is None or (start == 0 and stop == self._rows):
            return self.index
        return self.index[(self.index >= start) & (self.index < stop)] - start
