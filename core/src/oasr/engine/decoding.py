"""The rows being decoded as one batch: their caches, their state on the device, and one token after the other."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
        self._rules: list[tuple[LogitsRule, list[int]]] = []
        self._uniform = False
        self._graphs = StepGraphs(self._choose_and_step) if device.type == "cuda" else None

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
        if self._graphs is not None and self._uniform and self._replay(self._graphs):
            done = self._retire()
        else:
            done = self._split(self._choose) + self._retire()
            self._count_token()
            done += self._split(self._step)
        if done:
            self.regroup()
        return done

    def begin(self, rows: Sequence[Row], encoded: EncoderOutput) -> None:
        """Read the rows' prompts and let them decode from the next `advance` on."""
        prompts = [row.prompt for row in rows if row.prompt is not None]
        for row, prompt in zip(rows, prompts, strict=True):
            row.length = len(prompt.tokens)
        logits = self.read(rows, [prompt.tokens for prompt in prompts], encoded)
        device = logits.device
        self._state.begin(
            rows=torch.tensor([row.slot for row in rows], device=device),
            logits=logits,
            lengths=torch.tensor([len(prompt.tokens) for prompt in prompts], device=device),
            limits=torch.tensor([prompt.max_new_tokens for prompt in prompts], device=device),
            ends=torch.tensor([prompt.end_token for prompt in prompts], device=device),
        )

    def read(self, rows: Sequence[Row], prompts: Sequence[Sequence[int]], encoded: EncoderOutput) -> torch.Tensor:
        """Read a prompt into each row's lease, which must be long enough; logits after it, (rows, vocabulary)."""
        device = self._device
        longest = max(len(prompt) for prompt in prompts)
        tokens = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        slots = torch.tensor([row.slot for row in rows], device=device)
        width = self.paged.blocks_per_row
        tables = [[*row.lease.blocks, *[0] * (width - len(row.lease.blocks))] for row in rows]
        self._state.tables[slots] = torch.tensor(tables, device=device)
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
        logits = state.logits[rows]
        used = min(stop, len(self.rows))
        for rule, slots in self._rules:
            governed = [slot - start for slot in slots if start <= slot < stop]
            if len(governed) == used - start:
                logits = rule.apply(logits, state.generated[rows], state.counts[rows])
            elif governed:
                index = torch.tensor(governed, device=logits.device)
                logits[index] = rule.apply(logits[index], state.generated[rows][index], state.counts[rows][index])
        states = [row.state for row in self.rows[rows]] + [None] * (stop - used)
        tokens = self._decoder.advance(logits, state.generated[rows], state.counts[rows], states)
        chosen = logits.gather(1, tokens[:, None])[:, 0]
        state.take(rows, tokens, chosen - logits.logsumexp(dim=-1))

    def _step(self, start: int, stop: int) -> None:
        """Feed the tokens chosen last."""
        self._step_rows(slice(start, stop), self._blocks_needed())

    def _choose_and_step(self, rows: int, blocks: int) -> None:
        self._choose(0, rows)
        self._step_rows(slice(0, rows), blocks)

    def _replay(self, graphs: StepGraphs) -> bool:
        """Decode several tokens as captured. False when a step could not be captured; some may have been done."""
        rules = tuple(rule for rule, _ in self._rules)
        try:
            for _ in range(_STEPS_PER_SYNC):
                self._count_token()
                blocks = self._blocks_needed()
                graphs.run(len(self.rows), blocks, self._state.rows, self.paged.blocks_per_row, rules)
        except RuntimeError as error:
            _logger.warning("decoding without CUDA graphs: the step could not be captured (%s)", error)
            self._graphs = None
            return False
        return True

    def _blocks_needed(self) -> int:
        """Blocks that hold every row."""
        return min(max(blocks_for(row.length) for row in self.rows), self.paged.blocks_per_row)

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
            except Exception as error:
                if stop - start == 1:
                    failed.append((self.rows[start], as_error(error)))
                    return
                _logger.debug("a decode step of %d rows failed (%s); splitting it", stop - start, error)
                middle = (start + stop) // 2
                attempt(start, middle)
                attempt(middle, stop)

        attempt(0, len(self.rows))
        if failed:
            self.remove(*(row for row, _ in failed), scrub=True)
        return [(row.window, error) for row, error in failed]

    def _step_rows(self, rows: slice, blocks: int) -> None:
        state = self._state
        view = RowsView(self.paged, self._slots, rows, state.tables[rows, :blocks], state.lengths[rows])
        state.logits[rows] = self._head.step(state.tokens[rows], view)
        state.lengths[rows] += ~state.finished[rows]

    def _retire(self) -> list[tuple[Window, Decoded | OasrError]]:
        """Take the finished rows out. This is the one place that waits for the device."""
        done: list[tuple[Window, Decoded | OasrError]] = []
        n = len(self.rows)
        state = self._state
        flags = torch.stack((state.finished[:n], state.finite[:n], state.counts[:n], state.score[:n]))
        report = [(row, *values) for row, values in zip(self.rows, flags.T.tolist(), strict=True) if values[0]]
        if not report:
            return done
        generated = state.generated[torch.tensor([row.slot for row, *_ in report], device=flags.device)].tolist()
        for (row, _, finite, count, score), tokens in zip(report, generated, strict=True):
            assert row.prompt is not None
            kept = tokens[: int(count)]
            if kept[-1] == row.prompt.end_token:
                kept.pop()
            if not finite:
                self.paged.scrub(row.lease)
            done.append((row.window, Decoded(tuple(kept), score / count, bool(finite), row.prompt.notes)))
        self.remove(*(row for row, *_ in report))
        return done

    def remove(self, *removed: Row, scrub: bool = False) -> None:
        """Take rows out; the last rows move into their places."""
        if scrub:
            self.paged.scrub(*(row.lease for row in removed))
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
        """Which rows each rule governs, worked out when rows come or go, not at every step."""
        governed: dict[LogitsRule, list[int]] = {}
        for row in self.rows:
            for rule in row.prompt.rules if row.prompt else ():
                governed.setdefault(rule, []).append(row.slot)
        self._rules = list(governed.items())
        everywhere = all(len(slots) == len(self.rows) for slots in governed.values())
        self._uniform = everywhere and all(row.state is None for row in self.rows)
