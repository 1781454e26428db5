"""Greedy search: the likeliest token of each frame, repetitions and blanks left out (Graves et al., 2006)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch

from oasr.errors import RequestError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.decoder import FrameSynchronousDecoder, Spelling
from oasr.interfaces.heads import CTCHead
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import DecodingOptions
from oasr_decoder_ctc.refusals import refuse


class _Heard:
    """The tokens that begin in the frames of a batch; on the host once somebody asks."""

    def __init__(self, tokens: torch.Tensor, log_probs: torch.Tensor, begins: torch.Tensor, frames: torch.Tensor):
        """All (rows, time)."""
        self._tensors = (tokens, log_probs, begins, frames)

    @cached_property
    def rows(self) -> list[list[tuple[int, int, float]]]:
        """Token, frame and log-probability of each, row by row."""
        tokens, log_probs, begins, frames = self._tensors
        counts = begins.sum(dim=1).tolist()
        found = list(zip(*(each[begins].tolist() for each in (tokens, frames, log_probs)), strict=True))
        rows, start = [], 0
        for count in counts:
            rows.append(found[start : start + count])
            start += count
        del self._tensors
        return rows


@dataclass(eq=False, slots=True)
class _Row:
    """One search."""

    last: torch.Tensor | None = None
    """Likeliest token of the last frame, int64 (); None before the first."""
    age: torch.Tensor | None = None
    """Frames read, int64 ()."""
    score: torch.Tensor | None = None
    """Summed log-probability, float64 ()."""
    unread: list[tuple[_Heard, int]] = field(default_factory=list)
    """Batches, and the place in each, that `said` does not hold yet."""
    said: list[tuple[int, int, float]] = field(default_factory=list)


class CTCGreedy(FrameSynchronousDecoder):
    """There is one hypothesis; its score is the log-probability of the path, and a token's frame its first."""

    head = "ctc"

    def __init__(self, config: ComponentConfig | None):
        """There is nothing to set."""

    def check(self, options: DecodingOptions) -> None:
        refuse(options)
        if options.beam > 1:
            raise RequestError("ctc-greedy follows one hypothesis: leave beam at 1, or use the decoder ctc-prefix-beam")
        if options.hotwords:
            raise RequestError("ctc-greedy knows no hotwords: use the decoder ctc-prefix-beam")

    def start(self, head: CTCHead, options: DecodingOptions, tokenizer: Tokenizer) -> _Row:
        return _Row()

    def advance(self, head: CTCHead, encoded: EncoderOutput, rows: Sequence[_Row]) -> None:
        if not rows or not encoded.frames.shape[1]:
            return
        log_probs, tokens = head.log_probs(encoded.frames).max(dim=-1)
        lengths, device = encoded.lengths, tokens.device
        nothing, zero = torch.tensor(head.blank, device=device), torch.zeros((), dtype=torch.int64, device=device)
        last = torch.stack([nothing if row.last is None else row.last for row in rows])
        ages = torch.stack([zero if row.age is None else row.age for row in rows])
        scores = torch.stack([zero.double() if row.score is None else row.score for row in rows])
        time = torch.arange(tokens.shape[1], device=device)
        valid = time < lengths[:, None]
        before = torch.cat((last[:, None], tokens[:, :-1]), dim=1)
        begins = valid & (tokens != head.blank) & (tokens != before)
        heard = _Heard(tokens, log_probs, begins, ages[:, None] + time)
        scores += log_probs.double().masked_fill(~valid, 0.0).sum(dim=1)
        ends = tokens.gather(1, (lengths - 1).clamp(min=0)[:, None])[:, 0]
        last, ages = torch.where(lengths > 0, ends, last), ages + lengths
        for index, row in enumerate(rows):
            row.last, row.age, row.score = last[index], ages[index], scores[index]
            row.unread.append((heard, index))

    def spellings(self, row: _Row) -> list[Spelling]:
        for heard, index in row.unread:
            row.said += heard.rows[index]
        row.unread.clear()
        tokens, frames, log_probs = zip(*row.said, strict=True) if row.said else ((), (), ())
        return [Spelling(tokens, frames, log_probs, 0.0 if row.score is None else float(row.score))]
