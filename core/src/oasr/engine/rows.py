"""The device-side state of the rows being decoded."""

from dataclasses import dataclass

import torch


@dataclass(slots=True)
class RowState:
    """One entry of every tensor for each row; rows in use are the first ones."""

    logits: torch.Tensor
    """float32 (rows, vocabulary): of the next token."""
    tables: torch.Tensor
    """int64 (rows, blocks): blocks of the paged cache; 0 where there is none."""
    generated: torch.Tensor
    """int64 (rows, most new tokens + 1): tokens after the prompt; what lies behind `counts` is not valid."""
    tokens: torch.Tensor
    """int64 (rows,): the token chosen last."""
    lengths: torch.Tensor
    """int64 (rows,): tokens in the cache."""
    counts: torch.Tensor
    """int64 (rows,): tokens generated, the end token included."""
    limits: torch.Tensor
    """int64 (rows,): most tokens to generate."""
    ends: torch.Tensor
    """int64 (rows,): the end token."""
    score: torch.Tensor
    """float32 (rows,): summed log-probability of the generated tokens."""
    silence: torch.Tensor
    """float32 (rows,): probability that nobody speaks; NaN where the model does not tell."""
    finite: torch.Tensor
    """bool (rows,): every distribution so far was finite."""
    finished: torch.Tensor
    """bool (rows,)"""

    @classmethod
    def empty(cls, rows: int, vocabulary: int, blocks: int, most_tokens: int, device: torch.device) -> "RowState":
        def integers(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        return cls(
            logits=torch.zeros(rows, vocabulary, device=device),
            tables=integers(rows, blocks),
            generated=integers(rows, most_tokens + 1),
            tokens=integers(rows),
            lengths=integers(rows),
            counts=integers(rows),
            limits=integers(rows),
            ends=integers(rows),
            score=torch.zeros(rows, device=device),
            silence=torch.zeros(rows, device=device),
            finite=torch.ones(rows, dtype=torch.bool, device=device),
            finished=torch.ones(rows, dtype=torch.bool, device=device),
        )

    @property
    def rows(self) -> int:
        return len(self.tokens)

    def _tensors(self) -> list[torch.Tensor]:
        return [getattr(self, name) for name in self.__slots__]

    def begin(
        self,
        rows: torch.Tensor,
        logits: torch.Tensor,
        silence: torch.Tensor | None,
        lengths: torch.Tensor,
        limits: torch.Tensor,
        ends: torch.Tensor,
    ) -> None:
        """Rows whose prompts have just been read; their `tables` are set already."""
        self.logits[rows] = logits
        self.lengths[rows] = lengths
        self.limits[rows] = limits
        self.ends[rows] = ends
        self.counts[rows] = 0
        self.score[rows] = 0
        self.silence[rows] = torch.nan if silence is None else silence
        self.finite[rows] = True
        self.finished[rows] = False

    def take(self, rows: slice, tokens: torch.Tensor, log_probs: torch.Tensor) -> None:
        """Record the next token of each row and its log-probability; finished rows stay as they are."""
        finished, counts = self.finished[rows], self.counts[rows]
        active = ~finished
        self.finite[rows] &= log_probs.isfinite() | finished
        tokens = torch.where(active, tokens, self.ends[rows])
        self.tokens[rows] = tokens
        self.generated[rows].scatter_(1, counts[:, None], tokens[:, None])
        self.score[rows] += torch.where(active, log_probs, 0.0)
        counts += active
        finished |= (tokens == self.ends[rows]) | (counts >= self.limits[rows]) | ~self.finite[rows]

    def move(self, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Overwrite rows by as many others."""
        for tensor in self._tensors():
            tensor[targets] = tensor[sources]

    def clear(self, rows: slice) -> None:
        """Detach rows: padding of a captured batch computes them too, and must write to nobody."""
        self.tables[rows] = 0
        self.lengths[rows] = 0
        self.counts[rows] = 0
        self.finished[rows] = True
