"""The paths of a search on the host: chains of tokens that share their beginnings.

What no beam needs any more is forgotten with the last chain that goes through it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch

from oasr.interfaces.decoder import Spelling
from oasr_decoder_ctc.beams import BLANK, BLANK_PATH, BONUS, SPOKEN, SPOKEN_PATH, Beams, Nodes


class Chain(NamedTuple):
    """A token and what was said before it."""

    before: Chain | None
    token: int
    frame: int
    log_prob: float

    @classmethod
    def spelling(cls, chain: Chain | None, score: float) -> Spelling:
        """The tokens of a chain from the first to the last."""
        links = []
        while chain is not None:
            links.append(chain)
            chain = chain.before
        links.reverse()
        return Spelling(
            tuple(link.token for link in links),
            tuple(link.frame for link in links),
            tuple(link.log_prob for link in links),
            score,
        )


class Heard:
    """What a batch of frames did to the beams of its rows; on the host once somebody asks."""

    def __init__(self, beams: Beams, nodes: Nodes, frames: torch.Tensor):
        """frames int64 (rows, time): which frame of its row each was."""
        self._beams, self._nodes, self._frames = beams, nodes, frames
        self._width = beams.scores.shape[1]

    def follow(self, row: int, chains: Sequence[Chain | None]) -> list[Chain | None]:
        """The chains of a row's beams now, those of blanks before those of tokens, given what they were before."""
        tokens, before, log_probs, ends, frames = (each[row].ravel() for each in self._paths)
        parents = [chain and chain.before for chain in chains[self._width :]]
        earlier = [*chains, *parents]
        made: dict[int, Chain] = {}

        def chain_of(node: int) -> Chain | None:
            path = []
            while node >= 0 and node not in made:
                path.append(node)
                node = int(before[node])
            chain = made[node] if node >= 0 else earlier[-1 - node]
            for each in reversed(path):
                frame = int(frames[each // self._width])
                chain = made[each] = Chain(chain, int(tokens[each]), frame, float(log_probs[each]))
            return chain

        return [chain_of(int(node)) for node in ends]

    def spellings(self, row: int, chains: Sequence[Chain | None]) -> list[Spelling]:
        """The hypotheses of a row, the best first, given the chains of its beams."""
        scores, spaced = (each[row] for each in self._scores)
        alive = [place for place, score in enumerate(scores) if score > -math.inf]
        alive.sort(key=lambda place: -scores[place])
        found = [chains[place if spaced[place] else place + self._width] for place in alive]
        spellings = [Chain.spelling(chain, scores[place]) for chain, place in zip(found, alive, strict=True)]
        return spellings or [Spelling((), (), (), -math.inf)]

    @cached_property
    def _paths(self) -> tuple[Any, ...]:
        nodes = self._nodes
        ends = nodes.ends.transpose(1, 2)
        tensors = (nodes.tokens, nodes.before, nodes.log_probs, ends, self._frames)
        return tuple(tensor.cpu().contiguous().numpy() for tensor in tensors)

    @cached_property
    def _scores(self) -> tuple[list[list[float]], list[list[bool]]]:
        scores = self._beams.scores.cpu()
        total = torch.logaddexp(scores[..., BLANK], scores[..., SPOKEN]) + scores[..., BONUS]
        return total.tolist(), (scores[..., BLANK_PATH] > scores[..., SPOKEN_PATH]).tolist()
