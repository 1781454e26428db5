"""Prefix beam search, as icefall and WeNet compute it (Hannun et al., 2014; Graves, 2012)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.decoder import FrameSynchronousDecoder, Spelling
from oasr.interfaces.heads import CTCHead
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import DecodingOptions
from oasr_decoder_ctc.beams import Beams, Bias, Frames
from oasr_decoder_ctc.chains import Chain, Heard
from oasr_decoder_ctc.config import PrefixBeamConfig
from oasr_decoder_ctc.hotwords import ContextGraph, ContextGraphs, spelled
from oasr_decoder_ctc.ngram import NGramBias, NGrams
from oasr_decoder_ctc.refusals import refuse


@dataclass(frozen=True, slots=True)
class _Batch:
    """The searches of some rows after the frames that they read together; all tensors begin with the row."""

    beams: Beams
    ages: torch.Tensor
    """int64 (rows,): frames read."""
    quiet: torch.Tensor
    """bool (rows,): whether the last frame was as good as blank."""


@dataclass(eq=False, slots=True)
class _Row:
    """One search."""

    width: int
    graph: ContextGraph
    batch: _Batch | None = None
    index: int = 0
    """Its place in the batch."""
    chains: list[Chain | None] = field(default_factory=list)
    """Of its beams: those of paths that end in a blank, then those of paths that end in a token."""
    heard: list[tuple[Heard, int]] = field(default_factory=list)
    """Batches, and the place in each, that the chains do not know yet."""
    found: list[Spelling] = field(default_factory=lambda: [Spelling((), (), (), 0.0)])
    """As of when the chains were followed last."""


class CTCPrefixBeam(FrameSynchronousDecoder):
    """Sums over all paths that spell the same prefix. Only the likeliest tokens of a frame continue prefixes.

    A score is the log-probability of the tokens, with what hotwords and the n-gram model add. A token's frame is where
    the likeliest path of its hypothesis has it last.
    """

    head = "ctc"

    def __init__(self, config: PrefixBeamConfig):
        self._config = config
        self._ngrams = NGrams.read(config.lm) if config.lm else None
        self._lm: NGramBias | None = None
        self._lm_tokenizer: Tokenizer | None = None

    def check(self, options: DecodingOptions) -> None:
        refuse(options)

    def start(self, head: CTCHead, options: DecodingOptions, tokenizer: Tokenizer) -> _Row:
        if self._ngrams is not None and self._lm_tokenizer is not tokenizer:
            self._lm = self._ngrams.over(tokenizer, head.vocabulary_size, self._config.lm_weight)
            self._lm_tokenizer = tokenizer
        phrases = spelled(options.hotwords, tokenizer, self._config.hotword_score)
        width = options.beam if options.beam > 1 else self._config.beam
        return _Row(width, ContextGraph.of(phrases, head.vocabulary_size), chains=[None] * (2 * width))

    @torch.inference_mode()
    def advance(self, head: CTCHead, encoded: EncoderOutput, rows: Sequence[_Row]) -> None:
        if not rows or not encoded.frames.shape[1]:
            return
        log_probs = head.log_probs(encoded.frames)
        for width in {row.width for row in rows}:
            members = [index for index, row in enumerate(rows) if row.width == width]
            chosen = slice(None) if len(members) == len(rows) else members
            self._advance(head, log_probs[chosen], encoded.lengths[chosen], [rows[index] for index in members])

    def spellings(self, row: _Row) -> list[Spelling]:
        for heard, index in row.heard:
            row.chains = heard.follow(index, row.chains)
        if row.heard:
            heard, index = row.heard[-1]
            row.found = heard.spellings(index, row.chains)
            row.heard.clear()
        return row.found

    def _advance(self, head: CTCHead, log_probs: torch.Tensor, lengths: torch.Tensor, rows: Sequence[_Row]) -> None:
        """The rows have the same width."""
        device = log_probs.device
        biases: list[Bias] = []
        if any(row.graph.phrases for row in rows):
            biases.append(ContextGraphs([row.graph for row in rows], device))
        if self._lm is not None:
            self._lm = self._lm.to(device)
            biases.append(self._lm)
        batch = self._gather(rows, device)
        time = log_probs.shape[1]
        places = torch.arange(time, device=device).expand(len(rows), -1)
        quiet, counts = batch.quiet, lengths
        if self._config.skip_blank is not None:
            silent = log_probs[..., head.blank] > math.log(self._config.skip_blank)
            before = torch.cat((quiet[:, None], silent[:, :-1]), dim=1)
            kept = ~(silent & before) & (places < lengths[:, None])
            quiet = torch.where(lengths > 0, silent.gather(1, (lengths - 1).clamp(min=0)[:, None])[:, 0], quiet)
            counts = kept.sum(dim=1)
            time = int(counts.max())
            places = (~kept).int().argsort(dim=1, stable=True)[:, :time]
            log_probs = log_probs[torch.arange(len(rows), device=device)[:, None], places]
        ages = batch.ages + lengths
        beams = batch.beams
        if time:
            frames = Frames.of(log_probs, counts, head.blank, rows[0].width)
            beams, nodes = beams.advance(frames, time, biases)
            heard = Heard(beams, nodes, batch.ages[:, None] + places)
            for index, row in enumerate(rows):
                row.heard.append((heard, index))
        after = _Batch(beams, ages, quiet)
        for index, row in enumerate(rows):
            row.batch, row.index = after, index

    def _gather(self, rows: Sequence[_Row], device: torch.device) -> _Batch:
        """The states of rows, which come from several batches, as one."""
        first = rows[0].batch
        if (
            first is not None
            and len(first.ages) == len(rows)
            and all(row.batch is first and row.index == index for index, row in enumerate(rows))
        ):
            return first
        new = _Batch(
            Beams.empty(rows[0].width, self._lm.start if self._lm else 0, device),
            torch.zeros(1, dtype=torch.int64, device=device),
            torch.zeros(1, dtype=torch.bool, device=device),
        )
        parts = [(row.batch or new, row.index if row.batch else 0) for row in rows]
        return _Batch(
            Beams(
                torch.stack([batch.beams.scores[index] for batch, index in parts]),
                torch.stack([batch.beams.links[index] for batch, index in parts]),
            ),
            torch.stack([batch.ages[index] for batch, index in parts]),
            torch.stack([batch.quiet[index] for batch, index in parts]),
        )
