"""The device-side state of the rows being decoded."""

from dataclasses import dataclass

import torch

from oasr.interfaces.decoder import Branches, Breadth


@dataclass(slots=True)
class RowState:
    """One entry of every tensor for each row; rows in use are the first ones, those of a window are consecutive."""

    logits: torch.Tensor
    """float32 (rows, vocabulary): of the next token."""
    tables: torch.Tensor
    """int64 (rows, blocks): blocks of the paged cache; 0 where there is none."""
    own: torch.Tensor
    """int64 (rows, blocks): those of them that belong to the row, to write to."""
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
    """float32 (rows,): summed log-probability of the generated tokens; -inf for a beam that does not count."""
    silence: torch.Tensor
    """float32 (rows,): probability that nobody speaks; NaN where the model does not tell."""
    finite: torch.Tensor
    """bool (rows,): every distribution so far was finite."""
    finished: torch.Tensor
    """bool (rows,): there is nothing left to choose for it; all rows of a window with beams finish at once."""

    @classmethod
    def empty(cls, rows: int, vocabulary: int, blocks: int, most_tokens: int, device: torch.device) -> "RowState":
        def integers(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        return cls(
            logits=torch.zeros(rows, vocabulary, device=device),
            tables=integers(rows, blocks),
            own=integers(rows, blocks),
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

    def go_on(self, rows: slice, branches: Branches, enough: torch.Tensor) -> torch.Tensor:
        """Record how beams go on, but for those of windows that have finished; returns the parent of each row.

        `enough` bool (windows,) says which windows finish now.
        """
        width = branches.tokens.shape[1]
        finished, counts = self.finished[rows], self.counts[rows]
        stay = finished.clone()
        own = torch.arange(len(finished), device=finished.device)
        first = own - own % width
        parents = torch.where(stay, own, first + branches.parents.flatten())
        tokens = torch.where(stay, self.ends[rows], branches.tokens.flatten())
        self.tokens[rows] = tokens
        self.generated[rows] = self.generated[rows][parents]
        self.generated[rows].scatter_(1, counts[:, None], tokens[:, None])
        self.score[rows] = torch.where(stay, self.score[rows], branches.scores.flatten())
        # Any row that computed NaN spoils its window: its share of the probability is unknown.
        sound = branches.scores[:, :1].isfinite().expand(-1, width).flatten()
        self.finite[rows] &= stay | sound
        counts += ~stay
        finished |= enough.repeat_interleave(width) | (counts >= self.limits[rows]) | ~self.finite[rows]
        return parents

    def move(self, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Overwrite rows by as many others."""
        for tensor in self._tensors():
            tensor[targets] = tensor[sources]

    def clear(self, rows: slice) -> None:
        """Detach rows: padding of a captured batch computes them too, and must write to nobody."""
        self.tables[rows] = 0
        self.own[rows] = 0
        self.lengths[rows] = 0
        self.counts[rows] = 0
        self.finished[rows] = True


class FinishedBeams:
    """The hypotheses of each window that have ended, on the device: no more than the search asks for."""

    def __init__(self, windows: int, breadth: Breadth, most_tokens: int, device: torch.device):
        self._most = breadth.finished
        # One place more than is kept: what finds no room is written there.
        self.tokens = torch.zeros(windows, self._most + 1, most_tokens + 1, dtype=torch.int64, device=device)
        self.counts = torch.zeros(windows, self._most + 1, dtype=torch.int64, device=device)
        self.scores = torch.zeros(windows, self._most + 1, device=device)
        self.filled = torch.zeros(windows, dtype=torch.int64, device=device)

    def add(self, windows: slice, scores: torch.Tensor, state: RowState, rows: slice) -> torch.Tensor:
        """Keep what ends now, best first; returns bool (windows,), which windows have as many as they need.

        scores (windows, beams) float32: summed log-probability with the end token, -inf for beams that go on.
        """
        width = scores.shape[1]
        best, order = scores.sort(dim=1, descending=True, stable=True)
        filled = self.filled[windows]
        place = filled[:, None] + torch.arange(width, device=scores.device)
        kept = (best > -torch.inf) & (place < self._most) & ~state.finished[rows].view(-1, width)
        place = place.clamp(max=self._most - 1).masked_fill(~kept, self._most)
        counts = state.counts[rows].view(-1, width).gather(1, order)
        tokens = state.generated[rows].view(*scores.shape, -1)
        tokens = tokens.gather(1, order[:, :, None].expand(-1, -1, tokens.shape[2]))
        ends = state.ends[rows].view(-1, width)
        tokens.scatter_(2, counts[:, :, None], ends[:, :, None])
        self.tokens[windows].scatter_(1, place[:, :, None].expand_as(tokens), tokens)
        self.counts[windows].scatter_(1, place, counts + 1)
        self.scores[windows].scatter_(1, place, best)
        filled += kept.sum(dim=1)
        return filled >= self._most

    def take(self, windows: torch.Tensor) -> list[list[tuple[float, list[int]]]]:
        """What each of the windows (windows,) has: summed log-probability and tokens, the end token included."""
        held = (self.filled, self.scores, self.counts, self.tokens)
        rows = zip(*(tensor[windows].tolist() for tensor in held), strict=True)
        return [[(scores[i], tokens[i][: counts[i]]) for i in range(filled)] for filled, scores, counts, tokens in rows]

    def move(self, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Overwrite windows by as many others."""
        for tensor in (self.tokens, self.counts, self.scores, self.filled):
            tensor[targets] = tensor[sources]
