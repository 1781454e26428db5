"""Hotwords: texts that hold certain phrases are preferred.

An Aho-Corasick automaton (1975) over token ids finds every occurrence of every phrase, overlapping ones too, in one
pass, as the context graphs of icefall and WeNet do. A phrase found adds its score for each of its tokens. A phrase
begun is promised as much for the tokens it has, so that a beam does not lose it half-way; a promise is no part of a
score, and is taken back when the text goes on otherwise.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from oasr.errors import RequestError
from oasr.interfaces.tokenizer import Tokenizer
from oasr_decoder_ctc.beams import HOTWORDS

_SCORED = re.compile(r"(.*\S)\s+:(\d+(?:\.\d+)?)\s*")

Phrase = tuple[tuple[int, ...], float]
"""Token ids, and the score of each of them."""


def spelled(hotwords: Sequence[str], tokenizer: Tokenizer, score: float) -> tuple[Phrase, ...]:
    """Hotwords as token ids; one may end in a score of its own, as in `ATLANTA :3.5`.

    Raises `RequestError` for one that the vocabulary cannot spell.
    """
    phrases: dict[tuple[int, ...], float] = {}
    for hotword in hotwords:
        scored = _SCORED.fullmatch(hotword)
        text, own = (scored[1], float(scored[2])) if scored else (hotword, score)
        tokens = tuple(tokenizer.encode(text))
        if not tokens:
            raise RequestError(f"hotword {hotword!r} has no tokens; name a word")
        phrases[tokens] = max(own, phrases.get(tokens, 0.0))
    return tuple(phrases.items())


@dataclass(frozen=True, slots=True, eq=False)
class ContextGraph:
    """The automaton of some phrases; state 0 has read nothing of any."""

    phrases: int
    columns: torch.Tensor
    """int64 (vocabulary,): column of each token; 0 for those in no phrase."""
    following: torch.Tensor
    """int64 (states, columns)."""
    gains: torch.Tensor
    """float64 (states, columns): scores of the phrases that end with the token."""
    promises: torch.Tensor
    """float64 (states,): most that is promised to a phrase begun so."""

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, phrases: tuple[Phrase, ...], vocabulary_size: int) -> "ContextGraph":
        """The same graph for the same phrases, so that rows share its tables."""
        alphabet = sorted({token for tokens, _ in phrases for token in tokens})
        columns = torch.zeros(vocabulary_size, dtype=torch.int64)
        columns[alphabet] = torch.arange(1, len(alphabet) + 1)
        children: list[dict[int, int]] = [{}]
        promises, rewards = [0.0], [0.0]
        for tokens, score in phrases:
            state = 0
            for depth, token in enumerate(tokens, start=1):
                column = int(columns[token])
                if column not in children[state]:
                    children[state][column] = len(children)
                    children.append({})
                    promises.append(0.0)
                    rewards.append(0.0)
                state = children[state][column]
                if depth < len(tokens):
                    promises[state] = max(promises[state], score * depth)
            rewards[state] += score * len(tokens)
        following = torch.zeros(len(children), len(alphabet) + 1, dtype=torch.int64)
        failure = [0] * len(children)
        queue = deque([0])
        while queue:  # breadth first: where a state fails to is complete before it
            state = queue.popleft()
            following[state] = following[failure[state]]
            for column, child in children[state].items():
                failure[child] = int(following[state, column]) if state else 0
                following[state, column] = child
                rewards[child] += rewards[failure[child]]
                promises[child] = max(promises[child], promises[failure[child]])
                queue.append(child)
        gains = torch.tensor(rewards, dtype=torch.float64)[following]
        return cls(len(phrases), columns, following, gains, torch.tensor(promises, dtype=torch.float64))


class ContextGraphs:
    """The graphs of a batch of rows as one table."""

    column = HOTWORDS

    def __init__(self, graphs: Sequence[ContextGraph], device: torch.device):
        distinct = list(dict.fromkeys(graphs))
        sizes = [graph.following.numel() for graph in distinct]
        which = torch.tensor([distinct.index(graph) for graph in graphs])
        first = torch.tensor([0, *sizes]).cumsum(0)[which]
        first_state = torch.tensor([0, *(len(graph.promises) for graph in distinct)]).cumsum(0)[which]
        width = torch.tensor([graph.following.shape[1] for graph in graphs])
        self._which, self._first, self._first_state, self._width = (
            tensor.to(device)[:, None] for tensor in (which, first, first_state, width)
        )
        tables = [_tables(graph, device) for graph in distinct]
        columns, following, gains, promises = zip(*tables, strict=True)
        self._columns, self._promises = torch.stack(columns), torch.cat(promises)
        self._following, self._gains = torch.cat(following), torch.cat(gains)

    def extend(self, states: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        columns = self._columns[self._which, tokens]
        index = (self._first + states * self._width)[:, :, None] + columns[:, None]
        return self._gains[index], self._following[index]

    def promise(self, states: torch.Tensor) -> torch.Tensor:
        first = self._first_state if states.ndim == 2 else self._first_state[..., None]
        return self._promises[first + states]


@lru_cache(maxsize=64)
def _tables(graph: ContextGraph, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Columns, and the rest flat, on a device: live audio comes back for them with every chunk."""
    tables = (graph.columns, graph.following.flatten(), graph.gains.flatten(), graph.promises)
    return tuple(table.to(device) for table in tables)
