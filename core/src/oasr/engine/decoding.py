"""The rows being decoded as one batch: their caches, their state on the device, and one token after the other."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, isnan
from operator import itemgetter
from typing import Any

import torch

from oasr.cache.paged import BLOCK_TOKENS, Lease, PagedCache, blocks_for
from oasr.cache.slots import SlotCache
from oasr.cache.view import RowsView
from oasr.engine.graphs import StepGraphs
from oasr.engine.isolation import isolate
from oasr.engine.rows import FinishedBeams, RowState
from oasr.engine.window import Decoded, Hypothesis, Window, as_error
from oasr.errors import OasrError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.decoder import Breadth, LabelSynchronousDecoder
from oasr.interfaces.heads import AutoregressiveHead, Prompt
from oasr.interfaces.logits_rule import LogitsRule
from oasr.types import DecodingOptions

_logger = logging.getLogger(__name__)

# Captured steps between two looks at the result: a finished row idles for at most seven of them.
_STEPS_PER_SYNC = 8


@dataclass(eq=False, slots=True)
class Reading:
    """A window that is being decoded."""

    window: Window
    slot: int
    state: Any
    prompt: Prompt | None = None
    leases: list[Lease] = field(default_factory=list)
    """Of each of its rows; the first holds the whole prompt."""
    length: int = 0
    """Most tokens a row of it can hold by now: the host does not see at once that a row has finished."""
    encoded: torch.Tensor | None = None
    """(time, feature): kept where words are to be timed."""


class DecodeBatch:
    """Windows in flight on one device, each with as many rows as the search is broad. Those in use are the first ones.

    A failure belongs to one window: a step that fails is split until the window at fault is alone.
    """

    def __init__(
        self,
        head: AutoregressiveHead,
        decoder: LabelSynchronousDecoder,
        breadth: Breadth,
        windows: int,
        device: torch.device,
        dtype: torch.dtype,
    ):
        """Allocate the caches for so many windows."""
        layout = head.cache_layout
        self.readings: list[Reading] = []
        self._head = head
        self._decoder = decoder
        self._width = breadth.rows
        self._device = device
        rows = windows * breadth.rows
        self._paged = PagedCache(layout.paged, rows, device, dtype)
        self._slots = SlotCache(layout.slots, windows, device, dtype)
        most_tokens = layout.paged.max_tokens
        self._state = RowState.empty(rows, head.vocabulary_size, self._paged.blocks_per_row, most_tokens, device)
        self._ended = FinishedBeams(windows, breadth, most_tokens, device) if breadth.finished else None
        self._rules: list[_Governed] = []
        self._uniform = False
        self._graphs: StepGraphs | None = None
        if device.type == "cuda":
            self._graphs = StepGraphs(self._choose_and_step, device, windows, self._paged.blocks_per_row)

    def take(self, window: Window) -> Reading | None:
        """Room for a window, which decodes once it has begun; None without. Raises what the search raises."""
        state = self._decoder.start(window.options, self._device)
        slot = self._slots.acquire()
        if slot is None:
            return None
        reading = Reading(window, slot, state)
        self.readings.append(reading)
        return reading

    def reserve(self, reading: Reading, prompt: int, new: int) -> bool:
        """Take blocks for a prompt and new tokens in every row of a window; False, and nothing taken, without room."""
        shared = prompt // BLOCK_TOKENS * BLOCK_TOKENS  # full blocks of the prompt are the same for all rows
        for row in range(self._width):
            lease = self._paged.reserve(prompt + new - (shared if row else 0))
            if lease is None:
                self.release(reading)
                return False
            reading.leases.append(lease)
        return True

    def release(self, reading: Reading) -> None:
        """Give the blocks of a window back."""
        for lease in reading.leases:
            self._paged.release(lease)
        reading.leases.clear()

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

    def begin(self, readings: Sequence[Reading], encoded: EncoderOutput) -> None:
        """Read the windows' prompts and let them decode from the next `advance` on."""
        prompts = [reading.prompt for reading in readings if reading.prompt is not None]
        for reading, prompt in zip(readings, prompts, strict=True):
            reading.length = len(prompt.tokens)
        logits, silence = self.read(readings, [prompt.tokens for prompt in prompts], encoded)

        def each_row(values: Sequence[int] | torch.Tensor) -> torch.Tensor:
            return torch.as_tensor(values, device=self._device).repeat_interleave(self._width, dim=0)

        slots = torch.tensor([reading.slot for reading in readings], device=self._device)
        rows = (slots[:, None] * self._width + torch.arange(self._width, device=self._device)).flatten()
        state = self._state
        state.begin(
            rows=rows,
            logits=each_row(logits),
            silence=None if silence is None else each_row(silence),
            lengths=each_row([len(prompt.tokens) for prompt in prompts]),
            limits=each_row([prompt.max_new_tokens for prompt in prompts]),
            ends=each_row([prompt.end_token for prompt in prompts]),
        )
        if self._width > 1:
            parents = torch.arange(len(rows), device=self._device) // self._width * self._width
            tables, own = state.tables[rows], state.own[rows]
            state.tables[rows] = self._paged.fork(tables, own, parents, state.lengths[rows])
        if self._ended is not None:
            self._ended.filled[slots] = 0
            state.score[rows] = torch.where(rows % self._width == 0, 0.0, -torch.inf)  # equal beams would stay equal

    def read(
        self, readings: Sequence[Reading], prompts: Sequence[Sequence[int]], encoded: EncoderOutput
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Read a prompt into the first row of each window, whose lease must be long enough.

        Returns what the head's `prefill` does.
        """
        device = self._device
        longest = max(len(prompt) for prompt in prompts)
        tokens = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        slots = torch.tensor([reading.slot for reading in readings], device=device)
        tables = torch.tensor([self._tables(reading) for reading in readings], device=device)
        self._paged.clear(tables.flatten(0, 1))
        for row in range(self._width):
            self._state.own[slots * self._width + row] = tables[:, row]
        self._state.tables[slots * self._width] = tables[:, 0]
        view = RowsView(
            self._paged,
            self._slots,
            windows=slots,
            tables=tables[:, 0, : blocks_for(longest)],
            lengths=torch.zeros_like(lengths),
            new_lengths=lengths,
            new=longest,
        )
        return self._head.prefill(tokens, lengths, encoded, view)

    def _tables(self, reading: Reading) -> list[list[int]]:
        """The blocks that each row of a window may write to, by their place; 0 where it has none."""
        width = self._paged.blocks_per_row
        shared = len(reading.leases[0].blocks) - len(reading.leases[-1].blocks)
        tables = []
        for row, lease in enumerate(reading.leases):
            before = shared if row else 0
            tables.append([*[0] * before, *lease.blocks, *[0] * (width - before - len(lease.blocks))])
        return tables

    def _choose(self, start: int, stop: int) -> None:
        """Take the next token of the rows of windows from their logits."""
        state, width = self._state, self._width
        rows = slice(start * width, stop * width)
        logits = state.logits[rows].clone()  # rules may change logits, and a step that fails is done again
        for governed in self._rules:
            index = governed.within(rows.start, min(stop, len(self.readings)) * width)
            if index is None:
                logits = governed.rule.apply(logits, state.generated[rows], state.counts[rows])
            elif len(index):
                ruled = governed.rule.apply(logits[index], state.generated[rows][index], state.counts[rows][index])
                logits[index] = ruled
        if self._ended is not None:
            self._branch(start, stop, logits - state.logits[rows].logsumexp(dim=-1, keepdim=True))
            return
        states = [reading.state for reading in self.readings[start:stop] for _ in range(width)]
        states += [None] * (rows.stop - rows.start - len(states))
        tokens = self._decoder.advance(logits, state.generated[rows], state.counts[rows], states)
        chosen = logits.gather(1, tokens[:, None])[:, 0]
        state.take(rows, tokens, chosen - logits.logsumexp(dim=-1))

    def _branch(self, start: int, stop: int, log_probs: torch.Tensor) -> None:
        """Let the beams of windows go on, keep those that end, and let their caches follow."""
        assert self._ended is not None
        state, width = self._state, self._width
        rows, windows = slice(start * width, stop * width), slice(start, stop)
        scores = state.score[rows].view(-1, width)
        branches = self._decoder.branch(log_probs.view(*scores.shape, -1), scores, state.ends[rows][::width])
        enough = self._ended.add(windows, branches.ended, state, rows)
        parents = state.go_on(rows, branches, enough)
        state.tables[rows] = self._paged.fork(state.tables[rows], state.own[rows], parents, state.lengths[rows])

    def _step(self, start: int, stop: int) -> None:
        """Feed the tokens chosen last."""
        blocks = self._blocks_needed()
        if self._graphs is not None and stop - start == len(self.readings):
            stop, blocks = self._graphs.size(stop, blocks)  # as it will be captured, so that its kernels are loaded
        self._step_windows(start, stop, blocks)

    def _choose_and_step(self, windows: int, blocks: int) -> None:
        self._choose(0, windows)
        self._step_windows(0, windows, blocks)

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
        return self._graphs.find(len(self.readings), self._blocks_needed(more), self._setting())

    def _capture(self) -> None:
        """Capture a step of the size in use, unless it has been or the rows cannot be captured."""
        if self._graphs is None or not self._uniform or self._find_graph(more=0) is not None:
            return
        try:
            self._graphs.capture(len(self.readings), self._blocks_needed(), self._setting())
        except RuntimeError as error:
            _logger.warning("decoding without CUDA graphs: the step could not be captured (%s)", error)
            self._graphs = None

    def _setting(self) -> tuple[LogitsRule, ...]:
        return tuple(governed.rule for governed in self._rules)

    def _blocks_needed(self, more: int = 0) -> int:
        """Blocks that hold every row, with so many tokens more."""
        longest = max(reading.length for reading in self.readings)
        return min(blocks_for(longest + more), self._paged.blocks_per_row)

    def _count_token(self) -> None:
        """One token more in each row, as far as the host knows."""
        for reading in self.readings:
            reading.length += 1

    def _split(self, compute: Callable[[int, int], None]) -> list[tuple[Window, Decoded | OasrError]]:
        """Compute all windows as one batch; where that fails, halves of it, until those at fault are alone.

        These are taken out and returned with the reason.
        """
        failed = isolate(self.readings, lambda readings: compute(readings[0].slot, readings[-1].slot + 1))
        if failed:
            self.remove(*(reading for reading, _ in failed))
        return [(reading.window, error) for reading, error in failed]

    def _step_windows(self, start: int, stop: int, blocks: int) -> None:
        state = self._state
        rows = slice(start * self._width, stop * self._width)
        tables, lengths = state.tables[rows, :blocks], state.lengths[rows]
        view = RowsView(self._paged, self._slots, slice(start, stop), tables, lengths, width=self._width)
        state.logits[rows] = self._head.step(state.tokens[rows], view)
        state.lengths[rows] += ~state.finished[rows]

    def _retire(self) -> list[tuple[Window, Decoded | OasrError]]:
        """Take the finished windows out. Of a step, this alone waits for the device."""
        n, width, state = len(self.readings), self._width, self._state
        flags = torch.stack((state.finished, state.finite, state.counts, state.score, state.silence))
        values = flags[:, : n * width].view(-1, n, width).transpose(0, 1).tolist()
        report = [(reading, each) for reading, each in zip(self.readings, values, strict=True) if all(each[0])]
        if not report:
            return []
        done: list[tuple[Window, Decoded | OasrError]] = []
        slots = torch.tensor([reading.slot for reading, _ in report], device=flags.device)
        generated = state.generated.view(-1, width, state.generated.shape[1])[slots].tolist()
        ended = self._ended.take(slots) if self._ended is not None else [[] for _ in report]
        for (reading, (_, finite, counts, scores, silence)), rows, texts in zip(report, generated, ended, strict=True):
            assert reading.prompt is not None
            live = [(score, row[: int(count)]) for score, row, count in zip(scores, rows, counts, strict=True)]
            live.sort(key=itemgetter(0), reverse=True)
            live = live[: max(0, width - len(texts))]  # a beam that has not ended counts where too few have
            heard = None if isnan(silence[0]) else silence[0]
            try:
                best = self._ranked(texts + live, reading.window.options, reading.prompt.end_token)
            except Exception as error:  # of a search that ranks
                done.append((reading.window, as_error(error)))
                continue
            done.append((reading.window, Decoded(best, heard, all(finite), reading.prompt.notes, reading.encoded)))
        self.remove(*(reading for reading, _ in report))
        return done

    def _ranked(
        self, texts: list[tuple[float, list[int]]], options: DecodingOptions, end: int
    ) -> tuple[Hypothesis, ...]:
        """Summed log-probabilities and tokens as hypotheses, the best first."""
        texts = [text for text in texts if text[0] != -inf] or texts[:1]
        texts.sort(key=lambda text: self._decoder.rank(text[0], len(text[1]), options), reverse=True)
        return tuple(
            Hypothesis(tuple(tokens[:-1] if tokens[-1] == end else tokens), score / len(tokens))
            for score, tokens in texts
        )

    def remove(self, *removed: Reading) -> None:
        """Take windows out; the last ones move into their places."""
        for reading in removed:
            self.release(reading)
        kept = [reading for reading in self.readings if reading not in removed]
        holes = [reading.slot for reading in removed if reading.slot < len(kept)]
        movers = [reading for reading in kept if reading.slot >= len(kept)]
        if movers:
            sources = torch.tensor([reading.slot for reading in movers], device=self._device)
            targets = torch.tensor(holes, device=self._device)
            self._slots.move(sources, targets)
            if self._ended is not None:
                self._ended.move(sources, targets)
            beside = torch.arange(self._width, device=self._device)
            rows = [(slots[:, None] * self._width + beside).flatten() for slots in (sources, targets)]
            self._state.move(*rows)
        for reading, slot in zip(movers, holes, strict=True):
            reading.slot = slot
        for slot in range(len(kept), len(self.readings)):
            self._slots.release(slot)
        self._state.clear(slice(len(kept) * self._width, len(self.readings) * self._width))
        self.readings = sorted(kept, key=lambda reading: reading.slot)

    def regroup(self) -> None:
        """Work out which rows each rule governs: when rows come or go, not at every step."""
        slots: dict[LogitsRule, list[int]] = {}
        for reading in self.readings:
            rows = range(reading.slot * self._width, (reading.slot + 1) * self._width)
            for rule in reading.prompt.rules if reading.prompt else ():
                slots.setdefault(rule, []).extend(rows)
        total = len(self.readings) * self._width
        self._rules = [_Governed(rule, each, total, self._device) for rule, each in slots.items()]
        everywhere = all(governed.index is None for governed in self._rules)
        self._uniform = bool(self.readings) and everywhere and all(each.state is None for each in self.readings)


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
