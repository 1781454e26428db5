"""Shallow fusion with an n-gram model in the ARPA format, over the tokens of the checkpoint.

The model is an automaton: its states are histories, and a token that a history has not seen is looked up in the next
shorter one, at the price of a back-off weight (Katz, 1987).
"""

import math
from dataclasses import dataclass
from pathlib import Path

import torch

from oasr.errors import ConfigError
from oasr.interfaces.tokenizer import Tokenizer
from oasr_decoder_ctc.beams import NGRAMS

_BEGIN, _UNKNOWN = "<s>", "<unk>"
_IMPOSSIBLE = -99.0  # log10, as ARPA files write it
_LN10 = math.log(10)


@dataclass(frozen=True, slots=True)
class NGrams:
    """An ARPA file as it stands: log10 probabilities and back-off weights by words."""

    path: Path
    orders: tuple[dict[tuple[str, ...], tuple[float, float]], ...]

    @classmethod
    def read(cls, path: Path) -> "NGrams":
        """Raises `ConfigError` for a file that cannot be read as ARPA."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"decoder.lm: {path}: not a readable ARPA file: {error}") from error
        orders: list[dict[tuple[str, ...], tuple[float, float]]] = []
        ended = False
        for number, line in enumerate(map(str.strip, lines), start=1):
            if line == f"\\{len(orders) + 1}-grams:":
                orders.append({})
            elif line == "\\end\\":
                ended = True
                break
            elif orders and line:
                fields = line.split()
                order = len(orders)
                try:
                    values = [float(fields[0]), *map(float, fields[order + 1 :]), 0.0]
                    words = tuple(fields[1 : order + 1])
                    if len(words) != order or len(values) > 3:
                        raise ValueError
                except ValueError:
                    raise ConfigError(f"decoder.lm: {path}, line {number}: no {order}-gram: {line[:80]!r}") from None
                orders[-1][words] = (values[0], values[1])
        if not orders or not ended:
            raise ConfigError(
                f"decoder.lm: {path}: not an ARPA file, or cut short: \\1-grams: and \\end\\ are expected"
            )
        return cls(path, tuple(orders))

    def over(self, tokenizer: Tokenizer, vocabulary_size: int, weight: float) -> "NGramBias":
        """The automaton over the ids of a vocabulary, some of which may have no piece. Other n-grams are left out.

        Raises `ConfigError` when the model knows none of the vocabulary.
        """
        vocabulary = tokenizer.pieces(range(tokenizer.size))
        size = max(len(vocabulary), vocabulary_size)
        begin, unknown, stride = size, size + 1, size + 2
        ids = {piece: token for token, piece in reversed(list(enumerate(vocabulary)))}
        ids |= {_BEGIN: begin, _UNKNOWN: unknown}
        known = [
            {tuple(ids[word] for word in words): values for words, values in ngrams.items() if ids.keys() >= set(words)}
            for ngrams in self.orders
        ]
        words = [token if (token,) in known[0] else unknown for token in range(size)]
        if set(words) == {unknown}:
            raise ConfigError(
                f"decoder.lm: {self.path} is over words such as {next(iter(self.orders[0]))[0]!r}, none of which is a "
                f"token of the checkpoint: train it on texts spelt in tokens"
            )
        known[0].setdefault((unknown,), (_IMPOSSIBLE, 0.0))
        histories = [(), *(ngram for ngrams in known[:-1] for ngram in ngrams)]
        states = {history: state for state, history in enumerate(histories)}

        def longest(history: tuple[int, ...]) -> int:
            while history not in states:
                history = history[1:]
            return states[history]

        # An n-gram whose history is not in the file is never looked up.
        found = sorted(
            (states[ngram[:-1]] * stride + ngram[-1], value, longest(ngram))
            for ngrams in known
            for ngram, (value, _) in ngrams.items()
            if ngram[:-1] in states
        )
        keys, values, following = zip(*found, strict=True)
        shorter = [0, *(longest(history[1:]) for history in histories[1:])]
        penalties = [0.0, *(known[len(history) - 1][history][1] for history in histories[1:])]
        scale = weight * _LN10
        return NGramBias(
            start=longest((begin,)),
            words=torch.tensor(words),
            order=len(self.orders),
            stride=stride,
            keys=torch.tensor(keys),
            log_probs=torch.tensor(values, dtype=torch.float64) * scale,
            following=torch.tensor(following),
            shorter=torch.tensor(shorter),
            penalties=torch.tensor(penalties, dtype=torch.float64) * scale,
        )


@dataclass(frozen=True, slots=True)
class NGramBias:
    """Weighted natural log-probability of each token after those before it; the end of a text has none.

    Arcs are sorted by `state * stride + word`.
    """

    start: int
    words: torch.Tensor
    """int64 (vocabulary,): the word of each token; one for all tokens that the model does not know."""
    order: int
    stride: int
    keys: torch.Tensor
    log_probs: torch.Tensor
    following: torch.Tensor
    shorter: torch.Tensor
    """int64 (states,): the next shorter history."""
    penalties: torch.Tensor
    """float64 (states,): back-off weights."""

    column = NGRAMS

    def to(self, device: torch.device) -> "NGramBias":
        """The same tables on a device; itself when they are there."""
        if self.keys.device == device:
            return self
        numbers = (self.order, self.stride)
        tables = (self.keys, self.log_probs, self.following, self.shorter, self.penalties)
        return NGramBias(self.start, self.words.to(device), *numbers, *(table.to(device) for table in tables))

    def extend(self, states: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wanted = self.words[tokens][:, None].expand(-1, states.shape[1], -1)
        histories = states[:, :, None].expand_as(wanted)
        gain = torch.zeros(wanted.shape, dtype=torch.float64, device=states.device)
        arcs = torch.zeros_like(wanted)
        found = torch.zeros_like(wanted, dtype=torch.bool)
        for _ in range(self.order):
            keys = histories * self.stride + wanted
            places = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
            arcs = torch.where(found, arcs, places)
            found = found | (self.keys[arcs] == keys)
            gain = gain + self.penalties[histories].masked_fill(found, 0.0)
            histories = torch.where(found, histories, self.shorter[histories])
        return gain + self.log_probs[arcs], self.following[arcs]

    def promise(self, states: torch.Tensor) -> float:
        return 0.0
