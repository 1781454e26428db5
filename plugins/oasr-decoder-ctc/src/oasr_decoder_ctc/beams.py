"""The beams of a prefix search, as tensors: many rows take a frame in one step, and the host never waits.

A prefix is known by a hash of its tokens. It holds the probability of all paths that spell it, apart for those that end
in a blank and those that end in its last token (Hannun et al., 2014), and the likeliest path of either kind, which
says at which frame each token was heard. A path is a chain of nodes, one a token; a node is named by the frame and the
place in the beam at which it was made, and is never changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

# Columns of `scores`.
BLANK, SPOKEN, BLANK_PATH, SPOKEN_PATH, BONUS = range(5)
# Columns of `links`; the last two are states of biases.
HASH, PARENT, LAST, BLANK_CHAIN, SPOKEN_CHAIN, BEFORE, HOTWORDS, NGRAMS = range(8)

_NEVER = -torch.inf
_MULTIPLIER = 0x2545F4914F6CDD1D  # odd; of xorshift* (Vigna, 2016)
_NO_TOKEN = -1


class Bias(Protocol):
    """Prefers some texts to others, beyond what the model hears: an automaton that reads their tokens."""

    column: int
    """Of `links`, for its states."""

    def extend(self, states: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Gain and next state, (rows, beam, any), of texts in states (rows, beam) and tokens (rows, any) after them."""

    def promise(self, states: torch.Tensor) -> torch.Tensor | float:
        """What texts in these states may gain yet: counts when beams are compared, not in their scores."""


@dataclass(frozen=True, slots=True)
class Frames:
    """The likeliest tokens of each frame."""

    tokens: torch.Tensor
    """int64 (rows, time, tokens)."""
    log_probs: torch.Tensor
    """float64 (rows, time, tokens); -inf for the blank."""
    blank: torch.Tensor
    """float64 (rows, time): log-probability of the blank; -inf where it is not among the likeliest."""
    lengths: torch.Tensor
    """int64 (rows,)."""

    @classmethod
    def of(cls, log_probs: torch.Tensor, lengths: torch.Tensor, blank: int, count: int) -> "Frames":
        """The `count` likeliest tokens of frames (rows, time, vocabulary)."""
        values, tokens = log_probs.topk(min(count, log_probs.shape[-1]), dim=-1)
        values = values.double()
        is_blank = tokens == blank
        return cls(
            tokens,
            values.masked_fill(is_blank, _NEVER),
            values.masked_fill(~is_blank, _NEVER).amax(dim=-1),
            lengths,
        )


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes that a batch of frames made, (rows, time, beam), and where the chains of its beams end.

    Node `time * beam + place` was made there. Chains of earlier batches have negative names, see `relinked`.
    """

    tokens: torch.Tensor
    before: torch.Tensor
    log_probs: torch.Tensor
    ends: torch.Tensor
    """int64 (rows, beam, 2): the chains of the path that ends in a blank and of that which ends in a token."""


@dataclass(frozen=True, slots=True)
class Beams:
    """scores float64 (rows, beam, 5) and links int64 (rows, beam, 8); a prefix of score -inf is none."""

    scores: torch.Tensor
    links: torch.Tensor

    @classmethod
    def empty(cls, beam: int, ngrams: int, device: torch.device) -> "Beams":
        """One row that has heard nothing; the n-gram model starts in the state `ngrams`, hotwords in state 0."""
        scores = torch.full((1, beam, 5), _NEVER, dtype=torch.float64, device=device)
        scores[:, 0, [BLANK, BLANK_PATH, SPOKEN_PATH]] = 0.0
        scores[..., BONUS] = 0.0
        links = torch.zeros(1, beam, 8, dtype=torch.int64, device=device)
        links[..., PARENT] = links[..., LAST] = _NO_TOKEN
        links[..., NGRAMS] = ngrams
        return cls(scores, links)

    @torch.inference_mode()
    def advance(self, frames: Frames, time: int, biases: Sequence[Bias]) -> tuple["Beams", Nodes]:
        """Read `time` frames; rows that have fewer keep their beams."""
        beams, width = self._relinked(), self.scores.shape[1]
        made: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        for index in range(time):
            following, log_probs = beams._step(
                frames.tokens[:, index], frames.log_probs[:, index], frames.blank[:, index], biases
            )
            following.links[..., SPOKEN_CHAIN] = torch.arange(width, device=log_probs.device) + index * width
            made.append((following.links[..., LAST], following.links[..., BEFORE], log_probs))
            goes_on = (index < frames.lengths)[:, None, None]
            beams = Beams(
                torch.where(goes_on, following.scores, beams.scores), torch.where(goes_on, following.links, beams.links)
            )
        tokens, before, values = (torch.stack(each, dim=1) for each in zip(*made, strict=True))
        return beams, Nodes(tokens, before, values, beams.links[..., [BLANK_CHAIN, SPOKEN_CHAIN]])

    def _relinked(self) -> "Beams":
        """Chains by negative names: those that end in a blank, those that end in a token, and the latter without it."""
        width = self.scores.shape[1]
        links = self.links.clone()
        links[..., BLANK_CHAIN : BEFORE + 1] = -1 - torch.arange(3 * width, device=links.device).view(3, width).T
        return Beams(self.scores, links)

    def _step(
        self, tokens: torch.Tensor, log_probs: torch.Tensor, blank: torch.Tensor, biases: Sequence[Bias]
    ) -> tuple["Beams", torch.Tensor]:
        """Read one frame: tokens and log_probs (rows, tokens), blank (rows,).

        Also returns the log-probability of the last token of each prefix in this frame, (rows, beam).
        """
        width = self.scores.shape[1]
        now = _Now.of(self, tokens, log_probs)
        staying, before, spelt_anew = self._stay(now, blank)
        growing = torch.where(now.is_last, now.spaced[:, :, None], now.total[:, :, None]) + log_probs[:, None]
        growing = growing.masked_fill(spelt_anew, _NEVER)
        bonus = self.scores[..., BONUS]
        stays = torch.logaddexp(staying[..., BLANK], staying[..., SPOKEN]) + bonus
        grows = growing + bonus[:, :, None]
        biased = []
        for bias in biases:
            states = self.links[..., bias.column]
            gain, following = bias.extend(states, tokens)
            biased.append((bias.column, gain, following))
            stays = stays + bias.promise(states)
            grows = grows + gain + bias.promise(following)

        chosen = torch.cat((stays, grows.flatten(1)), dim=1).topk(width, dim=1).indices
        is_new = chosen >= width
        grown = (chosen - width).clamp(min=0)
        source = torch.where(is_new, grown // tokens.shape[1], chosen)
        column = grown % tokens.shape[1]
        last = now.last.gather(1, source)
        token = torch.where(is_new, tokens.gather(1, column), last)
        value = torch.where(is_new, log_probs.gather(1, column), now.held.gather(1, source))
        path, chain = now.continued(source, last == token)
        scores = staying.gather(1, source[:, :, None].expand(-1, -1, 5))
        scores[..., BLANK].masked_fill_(is_new, _NEVER)
        scores[..., SPOKEN] = torch.where(is_new, growing.flatten(1).gather(1, grown), scores[..., SPOKEN])
        scores[..., BLANK_PATH].masked_fill_(is_new, _NEVER)
        scores[..., SPOKEN_PATH] = torch.where(is_new, path + value, scores[..., SPOKEN_PATH])
        links = self.links.gather(1, source[:, :, None].expand(-1, -1, 8))
        links[..., PARENT] = torch.where(is_new, links[..., HASH], links[..., PARENT])
        links[..., HASH] = torch.where(is_new, _hashed(links[..., HASH], token), links[..., HASH])
        links[..., LAST] = token
        links[..., BLANK_CHAIN] = now.chain.gather(1, source)
        links[..., BEFORE] = torch.where(is_new, chain, before.gather(1, source))
        for place, gain, following in biased:
            scores[..., BONUS] += gain.flatten(1).gather(1, grown).masked_fill(~is_new, 0.0)
            links[..., place] = torch.where(is_new, following.flatten(1).gather(1, grown), links[..., place])
        return Beams(scores, links), value

    def _stay(self, now: "_Now", blank: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Scores of the prefixes of the beam if they stay what they are, and the chains before their last tokens.

        They do by a blank, or by their last token, held; or they are spelt anew, from their parents. Also returns by
        which tokens (rows, beam, tokens) this last thing happens.
        """
        parents = self.links[..., PARENT][:, :, None] == self.links[..., HASH][:, None]  # (rows, child, parent)
        alive = now.total > _NEVER
        parents &= alive[:, :, None] & alive[:, None]
        origin = parents.int().argmax(dim=-1)
        again = now.last.gather(1, origin) == now.last
        anew = torch.where(again, now.spaced.gather(1, origin), now.total.gather(1, origin)) + now.held
        anew_path, chain = now.continued(origin, again)
        anew_path = anew_path + now.held
        orphan = ~parents.any(dim=-1)
        anew, anew_path = anew.masked_fill(orphan, _NEVER), anew_path.masked_fill(orphan, _NEVER)
        held_path = self.scores[..., SPOKEN_PATH] + now.held
        # The likelier path counts, but the frames are those of the new one wherever the parent ranks higher: so WeNet
        # has it (transformer/search.py).
        above = origin < torch.arange(origin.shape[1], device=origin.device)
        newer = (anew_path > held_path) | (above & (anew_path > _NEVER))
        scores = torch.stack(
            (
                now.total + blank[:, None],
                torch.logaddexp(self.scores[..., SPOKEN] + now.held, anew),
                now.path + blank[:, None],
                torch.maximum(held_path, anew_path),
                self.scores[..., BONUS],
            ),
            dim=-1,
        )
        spelt_anew = parents.transpose(1, 2).float() @ now.is_last.float() > 0
        return scores, torch.where(newer, chain, self.links[..., BEFORE]), spelt_anew


@dataclass(frozen=True, slots=True)
class _Now:
    """What follows from beams, and from a frame, for every prefix; (rows, beam) unless stated."""

    spaced: torch.Tensor
    """Score of the paths that end in a blank."""
    spaced_path: torch.Tensor
    spaced_chain: torch.Tensor
    total: torch.Tensor
    """Score of all paths."""
    path: torch.Tensor
    """Score of the likeliest path."""
    chain: torch.Tensor
    """The chain of the likeliest path."""
    last: torch.Tensor
    is_last: torch.Tensor
    """bool (rows, beam, tokens): whether a token of the frame is the last of a prefix."""
    held: torch.Tensor
    """Log-probability of the last token in the frame."""

    @classmethod
    def of(cls, beams: Beams, tokens: torch.Tensor, log_probs: torch.Tensor) -> "_Now":
        spaced, spoken, spaced_path, spoken_path, _ = beams.scores.unbind(-1)
        last, spaced_chain, spoken_chain = beams.links[..., LAST : SPOKEN_CHAIN + 1].unbind(-1)
        is_last = tokens[:, None] == last[:, :, None]
        return cls(
            spaced=spaced,
            spaced_path=spaced_path,
            spaced_chain=spaced_chain,
            total=torch.logaddexp(spaced, spoken),
            path=torch.maximum(spaced_path, spoken_path),
            chain=torch.where(spaced_path > spoken_path, spaced_chain, spoken_chain),
            last=last,
            is_last=is_last,
            held=log_probs[:, None].masked_fill(~is_last, _NEVER).amax(dim=-1),
        )

    def continued(self, source: torch.Tensor, repeats: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Path and chain that go on with a new token, from prefixes at `source`, (rows, any).

        Where the token repeats the last one, a blank has to part them.
        """
        return (
            torch.where(repeats, self.spaced_path.gather(1, source), self.path.gather(1, source)),
            torch.where(repeats, self.spaced_chain.gather(1, source), self.chain.gather(1, source)),
        )


def _hashed(prefixes: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Hashes of prefixes that were extended; int64 arithmetic wraps around."""
    mixed = (prefixes ^ (tokens + 1)) * _MULTIPLIER
    return mixed ^ (mixed >> 29)
