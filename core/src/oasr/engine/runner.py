"""Computes what the scheduler planned: encoding, prompts, and the decode steps of all rows as one batch."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from oasr.cache.paged import Lease, PagedCache, blocks_for
from oasr.cache.slots import SlotCache
from oasr.cache.view import RowsView
from oasr.engine.graphs import StepGraphs
from oasr.engine.rows import RowState
from oasr.errors import DeviceError, OasrError
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
        self._rules: list[tuple[LogitsRule, torch.Tensor | None]] = []
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
        rows = []
        for window in windows:
            slot = self._slots.acquire()
            if slot is None:
                break
            rows.append(_Row(window, slot, self._decoder.start(window.options, self.model.device)))
        self._rows += rows
        failed: dict[Window, OasrError] = {}
        self._encode(rows, failed)
        self._group_rules()
        return [row.window for row in rows if row in self._rows], failed

    @torch.inference_mode()
    def advance(self) -> list[tuple[Window, Decoded | OasrError]]:
        """Decode one token of every row, on a GPU several; returns the windows that finished."""
        if self._graphs is not None and self._uniform and self._replay(self._graphs):
            done = self._retire()
        else:
            self._choose(len(self._rows))
            done = self._retire() + self._step()
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
                failed[rows[0].window] = _as_error(error)
                self._remove(rows[0], scrub=True)
                return
            _logger.debug("a batch of %d windows failed (%s); splitting it", len(rows), error)
            left = [row for row in rows if row in self._rows]
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
            for i in asking:
                self._paged.release(rows[i].lease)
        languages = list(self._head.language_tokens.items())
        scores = logits[:, [token for _, token in languages]].tolist()
        for i, row_scores in zip(asking, scores, strict=True):
            window = rows[i].window
            if not all(map(math.isfinite, row_scores)):
                continue  # the window will be found out when it is decoded
            allowed = [
                (score, code)
                for score, (code, _) in zip(row_scores, languages, strict=True)
                if not window.options.languages or code in window.options.languages
            ]
            window.language = max(allowed)[1]

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

    def _choose(self, n: int) -> None:
        """Take the next token of the first rows from their logits."""
        state = self._state
        logits = state.logits[:n]
        for rule, rows in self._rules:
            if rows is None:
                logits = rule.apply(logits, state.generated[:n], state.counts[:n])
            else:
                logits[rows] = rule.apply(logits[rows], state.generated[rows], state.counts[rows])
        states = [row.state for row in self._rows] + [None] * (n - len(self._rows))
        tokens = self._decoder.advance(logits, state.generated[:n], state.counts[:n], states)
        chosen = logits.gather(1, tokens[:, None])[:, 0]
        state.take(tokens, chosen - logits.logsumexp(dim=-1))

    def _choose_and_step(self, rows: int, blocks: int) -> None:
        self._choose(rows)
        self._step_rows(0, rows, blocks)

    def _replay(self, graphs: StepGraphs) -> bool:
        """Decode several tokens as captured. False when they cannot be captured; the rows are as before then."""
        rules = tuple(rule for rule, _ in self._rules)
        try:
            for _ in range(_STEPS_PER_SYNC):
                graphs.run(len(self._rows), self._next_blocks(), self._state.rows, self._paged.blocks_per_row, rules)
        except RuntimeError as error:
            _logger.warning("decoding without CUDA graphs: the step could not be captured (%s)", error)
            self._graphs = None
            return False
        return True

    def _next_blocks(self) -> int:
        """Blocks that hold every row once each has one token more."""
        for row in self._rows:
            row.length += 1
        return min(max(blocks_for(row.length) for row in self._rows), self._paged.blocks_per_row)

    def _step(self) -> list[tuple[Window, Decoded | OasrError]]:
        """Feed the tokens chosen last; rows that cannot go on are taken out and returned with the reason."""
        failed: list[tuple[_Row, OasrError]] = []
        if self._rows:
            self._step_split(0, len(self._rows), self._next_blocks(), failed)
        if failed:
            self._remove(*(row for row, _ in failed), scrub=True)
        return [(row.window, error) for row, error in failed]

    def _step_split(self, start: int, stop: int, blocks: int, failed: list[tuple[_Row, OasrError]]) -> None:
        try:
            self._step_rows(start, stop, blocks)
        except Exception as error:
            if stop - start == 1:
                failed.append((self._rows[start], _as_error(error)))
                return
            _logger.debug("a decode step of %d rows failed (%s); splitting it", stop - start, error)
            middle = (start + stop) // 2
            self._step_split(start, middle, blocks, failed)
            self._step_split(middle, stop, blocks, failed)

    def _step_rows(self, start: int, stop: int, blocks: int) -> None:
        rows = slice(start, stop)
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
        for row in removed:
            if scrub:
                self._paged.scrub(row.lease)
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
        self._rules = [
            (rule, None if len(rows) == len(self._rows) else torch.tensor(rows, device=self.model.device))
            for rule, rows in governed.items()
        ]
        self._uniform = all(rows is None for _, rows in self._rules) and all(row.state is None for row in self._rows)


def _as_error(error: Exception) -> OasrError:
    if isinstance(error, OasrError):
        return error
    if isinstance(error, torch.OutOfMemoryError):
        return DeviceError(f"Out of memory, also for this window alone: {error}")
    wrapped = DeviceError(f"The model failed on this window: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
