"""Computes what the scheduler planned: encoding, prompts, and the decode steps of all rows as one batch."""

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
from oasr.errors import DeviceError, ModelError, OasrError
from oasr.interfaces.architecture import Architecture, EncoderOutput
from oasr.interfaces.decoder import LabelSynchronousDecoder
from oasr.interfaces.frontend import Frontend
from oasr.interfaces.heads import AutoregressiveHead, Prompt
from oasr.interfaces.logits_rule import LogitsRule
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import DecodingOptions

_logger = logging.getLogger(__name__)

_STEPS_PER_SYNC = (
    8  # of captured steps: a finished row idles for at most seven, and the device need not wait for the host
)


@dataclass(eq=False, slots=True)
class Window:
    """A stretch of one request's audio, short enough to encode at once."""

    key: int
    samples: torch.Tensor
    """float32 (samples,) on the CPU."""
    options: DecodingOptions
    language: str | None
    """None until the model has named it, or for good where it cannot."""
    language_probability: float | None = None
    """Of the language the model named, among those allowed; None when it was not asked."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What was read in a window: tokens without the end token, and their mean log-probability."""

    tokens: tuple[int, ...]
    avg_logprob: float
    finite: bool
    """False when the model computed NaN or infinity; the tokens are worthless then."""
    notes: tuple[str, ...]


@dataclass(eq=False, slots=True)
class _Row:
    window: Window
    slot: int
    state: Any
    prompt: Prompt | None = None
    lease: Lease = field(default_factory=lambda: Lease(()))
    length: int = 0
    """Tokens in the cache, as far as the host knows: a row that has finished unseen holds fewer."""


class Runner:
    """One model on one device, with its caches and the rows in flight. Rows in use are always the first ones.

    A failure belongs to one window: a batch that fails is split until the window at fault is alone.
    """

    def __init__(
        self,
        model: Architecture,
        frontend: Frontend,
        tokenizer: Tokenizer,
        decoder: LabelSynchronousDecoder,
        rows: int,
    ):
        self.model = model
        self.rows = rows
        self._frontend = frontend
        self._tokenizer = tokenizer
        self._decoder = decoder
        self._head: AutoregressiveHead = model.head("autoregressive")
        layout = self._head.cache_layout
        device = model.device
        self._paged = PagedCache(layout.paged, rows, device, model.dtype)
        self._slots = SlotCache(layout.slots, rows, device, model.dtype)
        self._state = RowState.empty(
            rows, self._head.vocabulary_size, self._paged.blocks_per_row, layout.paged.max_tokens, device
        )
        self._rows: list[_Row] = []
        self._rules: list[tuple[LogitsRule, list[int]]] = []
        self._uniform = False
        self._graphs = StepGraphs(self._choose_and_step) if device.type == "cuda" else None

    @property
    def busy(self) -> bool:
        return bool(self._rows)

    @property
    def detects_language(self) -> bool:
        return bool(self._head.language_prompt)

    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for what the model or the search cannot honour."""
        self._head.check(options)
        self._decoder.check(options)

    def frames(self, samples: int) -> int:
        """Feature frames a window of so many samples costs."""
        return self._frontend.frames(samples)

    @torch.inference_mode()
    def start(self, windows: Sequence[Window]) -> tuple[list[Window], dict[Window, OasrError]]:
        """Encode windows and read their prompts. Returns those that decode now and those that failed.

        A window in neither found no room and can be given again.
        """
        rows: list[_Row] = []
        failed: dict[Window, OasrError] = {}
        for window in windows:
            try:
                state = self._decoder.start(window.options, self.model.device)
            except Exception as error:
                failed[window] = as_error(error)
                continue
            slot = self._slots.acquire()
            if slot is None:
                break
            rows.append(_Row(window, slot, state))
        self._rows += rows
        self._encode(rows, failed)
        self._group_rules()
        return [row.window for row in rows if row in self._rows], failed

    @torch.inference_mode()
    def advance(self) -> list[tuple[Window, Decoded | OasrError]]:
        """Decode one token of every row, on a GPU several; returns the windows that finished."""
        if self._graphs is not None and self._uniform and self._replay(self._graphs):
            done = self._retire()
        else:
            done = self._split(self._choose) + self._retire() + self._split(self._step)
            self._count_token()
        if done:
            self._group_rules()
        return done

    def drop(self, window: Window) -> None:
        """Forget a window that is being decoded."""
        for row in self._rows:
            if row.window is window:
                self._remove(row)
                self._group_rules()
                return

    def _encode(self, rows: Sequence[_Row], failed: dict[Window, OasrError]) -> None:
        if not rows:
            return
        try:
            self._encode_batch(rows, failed)
        except Exception as error:
            if len(rows) == 1:
                failed[rows[0].window] = as_error(error)
                self._remove(rows[0], scrub=True)
                return
            _logger.debug("a batch of %d windows failed (%s); splitting it", len(rows), error)
            left = [row for row in rows if row in self._rows]
            self._paged.scrub(*(row.lease for row in left))
            for row in left:
                self._paged.release(row.lease)
            half = len(left) // 2
            self._encode(left[:half], failed)
            self._encode(left[half:], failed)

    def _encode_batch(self, rows: Sequence[_Row], failed: dict[Window, OasrError]) -> None:
        encoded = self.encode([row.window.samples for row in rows])
        self._detect_languages(rows, encoded)
        ready = []
        for index, row in enumerate(rows):
            try:
                row.prompt = self._head.prompt(row.window.options, row.window.language, self._tokenizer)
            except OasrError as error:
                failed[row.window] = error
                self._remove(row)
                continue
            lease = self._paged.reserve(len(row.prompt.tokens) + row.prompt.max_new_tokens)
            if lease is None:
                self._remove(row)
                continue
            row.lease = lease
            ready.append(index)
        if ready:
            kept = torch.tensor(ready, device=encoded.frames.device)
            self._begin([rows[i] for i in ready], EncoderOutput(encoded.frames[kept], encoded.lengths[kept]))

    def encode(self, samples: Sequence[torch.Tensor]) -> EncoderOutput:
        """Features and encoder of waveforms (samples,) of any lengths up to the model's window."""
        device = self.model.device
        lengths = [len(each) for each in samples]
        # Each waveform goes straight to its row: padding on the host would copy the whole batch once more.
        waveforms = torch.zeros(len(samples), max(lengths), device=device)
        for row, waveform in zip(waveforms, samples, strict=True):
            row[: len(waveform)].copy_(waveform)
        # float32 means float32: cuDNN would round the convolutions of the encoder to TF32.
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            features = self._frontend.extract(waveforms, torch.tensor(lengths, device=device))
            return self.model.encode(features)

    def _detect_languages(self, rows: Sequence[_Row], encoded: EncoderOutput) -> None:
        """Let the model name the language of the rows that do not say it: the likeliest of those allowed."""
        asking = [i for i, row in enumerate(rows) if row.window.language is None]
        if not asking or not self._head.language_prompt:
            return
        index = torch.tensor(asking, device=encoded.frames.device)
        prompts = [self._head.language_prompt] * len(asking)
        for i in asking:
            # Room for the longest prompt is kept for each row taken, so this much is there.
            lease = self._paged.reserve(len(self._head.language_prompt))
            assert lease is not None
            rows[i].lease = lease
        try:
            logits = self._prefill(
                [rows[i] for i in asking], prompts, EncoderOutput(encoded.frames[index], encoded.lengths[index])
            )
        finally:
            self._paged.scrub(*(rows[i].lease for i in asking))
            for i in asking:
                self._paged.release(rows[i].lease)
        codes = list(self._head.language_tokens)
        scores = logits[:, list(self._head.language_tokens.values())].cpu()
        for i, row_scores in zip(asking, scores, strict=True):
            window = rows[i].window
            if not row_scores.isfinite().all():
                continue  # the window will be found out when it is decoded
            allowed = [n for n, code in enumerate(codes) if code in (window.options.languages or codes)]
            probability, best = row_scores[allowed].softmax(dim=0).max(dim=0)
            window.language, window.language_probability = codes[allowed[int(best)]], float(probability)

    def _begin(self, rows: Sequence[_Row], encoded: EncoderOutput) -> None:
        prompts = [row.prompt for row in rows if row.prompt is not None]
        for row, prompt in zip(rows, prompts, strict=True):
            row.length = len(prompt.tokens)
        logits = self._prefill(rows, [prompt.tokens for prompt in prompts], encoded)
        device = logits.device
        self._state.begin(
            rows=torch.tensor([row.slot for row in rows], device=device),
            logits=logits,
            lengths=torch.tensor([len(prompt.tokens) for prompt in prompts], device=device),
            limits=torch.tensor([prompt.max_new_tokens for prompt in prompts], device=device),
            ends=torch.tensor([prompt.end_token for prompt in prompts], device=device),
        )

    def _prefill(self, rows: Sequence[_Row], prompts: Sequence[Sequence[int]], encoded: EncoderOutput) -> torch.Tensor:
        device = self.model.device
        longest = max(len(prompt) for prompt in prompts)
        tokens = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        slots = torch.tensor([row.slot for row in rows], device=device)
        width = self._paged.blocks_per_row
        tables = [[*row.lease.blocks, *[0] * (width - len(row.lease.blocks))] for row in rows]
        self._state.tables[slots] = torch.tensor(tables, device=device)
        view = RowsView(
            self._paged,
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
        used = min(stop, len(self._rows))
        for rule, slots in self._rules:
            governed = [slot - start for slot in slots if start <= slot < stop]
            if len(governed) == used - start:
                logits = rule.apply(logits, state.generated[rows], state.counts[rows])
            elif governed:
                index = torch.tensor(governed, device=logits.device)
                logits[index] = rule.apply(logits[index], state.generated[rows][index], state.counts[rows][index])
        states = [row.state for row in self._rows[rows]] + [None] * (stop - used)
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
        """Decode several tokens as captured. False when they cannot be captured; the rows are as before then."""
        rules = tuple(rule for rule, _ in self._rules)
        try:
            for _ in range(_STEPS_PER_SYNC):
                blocks = self._blocks_needed()
                graphs.run(len(self._rows), blocks, self._state.rows, self._paged.blocks_per_row, rules)
                self._count_token()
        except RuntimeError as error:
            _logger.warning("decoding without CUDA graphs: the step could not be captured (%s)", error)
            self._graphs = None
            return False
        return True

    def _blocks_needed(self) -> int:
        """Blocks that hold every row once each has one token more than the host has counted."""
        return min(max(blocks_for(row.length + 1) for row in self._rows), self._paged.blocks_per_row)

    def _count_token(self) -> None:
        for row in self._rows:
            row.length += 1

    def _split(self, compute: Callable[[int, int], None]) -> list[tuple[Window, Decoded | OasrError]]:
        """Compute all rows as one batch; where that fails, halves of it, until the rows at fault are alone.

        These are taken out and returned with the reason.
        """
        failed: list[tuple[_Row, OasrError]] = []

        def attempt(start: int, stop: int) -> None:
            if start == stop:
                return
            try:
                compute(start, stop)
            except Exception as error:
                if stop - start == 1:
                    failed.append((self._rows[start], as_error(error)))
                    return
                _logger.debug("a decode step of %d rows failed (%s); splitting it", stop - start, error)
                middle = (start + stop) // 2
                attempt(start, middle)
                attempt(middle, stop)

        attempt(0, len(self._rows))
        if failed:
            self._remove(*(row for row, _ in failed), scrub=True)
        return [(row.window, error) for row, error in failed]

    def _step_rows(self, rows: slice, blocks: int) -> None:
        state = self._state
        view = RowsView(self._paged, self._slots, rows, state.tables[rows, :blocks], state.lengths[rows])
        state.logits[rows] = self._head.step(state.tokens[rows], view)
        state.lengths[rows] += ~state.finished[rows]

    def _retire(self) -> list[tuple[Window, Decoded | OasrError]]:
        """Take the finished rows out. This is the one place that waits for the device."""
        done: list[tuple[Window, Decoded | OasrError]] = []
        n = len(self._rows)
        state = self._state
        flags = torch.stack((state.finished[:n], state.finite[:n], state.counts[:n], state.score[:n]))
        report = [(row, *values) for row, values in zip(self._rows, flags.T.tolist(), strict=True) if values[0]]
        if not report:
            return done
        generated = state.generated[torch.tensor([row.slot for row, *_ in report], device=flags.device)].tolist()
        for (row, _, finite, count, score), tokens in zip(report, generated, strict=True):
            assert row.prompt is not None
            kept = tokens[: int(count)]
            if kept[-1] == row.prompt.end_token:
                kept.pop()
            if not finite:
                self._paged.scrub(row.lease)
            done.append((row.window, Decoded(tuple(kept), score / count, bool(finite), row.prompt.notes)))
        self._remove(*(row for row, *_ in report))
        return done

    def _remove(self, *removed: _Row, scrub: bool = False) -> None:
        """Take rows out; the last rows move into their places."""
        if scrub:
            self._paged.scrub(*(row.lease for row in removed))
        for row in removed:
            self._paged.release(row.lease)
        kept = [row for row in self._rows if row not in removed]
        holes = [row.slot for row in removed if row.slot < len(kept)]
        movers = [row for row in kept if row.slot >= len(kept)]
        if movers:
            sources = torch.tensor([row.slot for row in movers], device=self.model.device)
            targets = torch.tensor(holes, device=self.model.device)
            self._slots.move(sources, targets)
            self._state.move(sources, targets)
        for row, slot in zip(movers, holes, strict=True):
            row.slot = slot
        for slot in range(len(kept), len(self._rows)):
            self._slots.release(slot)
        self._state.clear(slice(len(kept), len(self._rows)))
        self._rows = sorted(kept, key=lambda row: row.slot)

    def _group_rules(self) -> None:
        """Which rows each rule governs, worked out when rows come or go, not at every step."""
        governed: dict[LogitsRule, list[int]] = {}
        for row in self._rows:
            for rule in row.prompt.rules if row.prompt else ():
                governed.setdefault(rule, []).append(row.slot)
        self._rules = list(governed.items())
        everywhere = all(len(slots) == len(self._rows) for slots in governed.values())
        self._uniform = everywhere and all(row.state is None for row in self._rows)


def as_error(error: Exception) -> OasrError:
    """What one input failed of: an error raised on purpose as it is, any other wrapped."""
    if isinstance(error, OasrError):
        return error
    if isinstance(error, torch.OutOfMemoryError):
        return DeviceError(f"Out of memory, also for this window alone: {error}")
    wrapped = ModelError(f"The model failed on this window: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
