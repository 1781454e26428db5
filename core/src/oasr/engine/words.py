"""Words and their times, from the frames at which a search heard each token."""

import math

from oasr.engine.joining import is_spaceless
from oasr.engine.window import Hypothesis
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import Word

_WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"  # as SentencePiece spells the blank before a word


def spelled_words(said: Hypothesis, tokenizer: Tokenizer, shift: float, seconds: float) -> list[Word]:
    """The words of a hypothesis, in seconds from where it begins, within `seconds`.

    A word begins at its first token, `shift` seconds a frame, and ends behind its last; its confidence is the mean
    probability of its tokens. Characters of scripts without blanks are words of their own.
    """
    stream = tokenizer.stream()
    texts: list[str] = []
    tokens: list[list[int]] = []
    """Indices of the tokens of each word."""
    pending: list[int] = []
    for index, piece in enumerate(tokenizer.pieces(said.tokens)):
        text = stream.push([said.tokens[index]])
        pending.append(index)
        begins = piece.startswith(_WORD_START) or text[:1].isspace()
        if not text.strip():
            if begins and texts:  # a blank by itself: what follows is another word
                texts.append("")
                tokens.append([])
            continue
        before = texts[-1] if texts else ""
        if not texts or (before and (begins or is_spaceless(before[-1]) or is_spaceless(text.lstrip()[0]))):
            texts.append("")
            tokens.append([])
        texts[-1] += text.strip()
        tokens[-1] += pending
        pending = []
    if texts:
        texts[-1] += stream.finish().strip()
        tokens[-1] += pending
    words = []
    for text, indices in zip(texts, tokens, strict=True):
        if not text:
            continue
        start = min(said.frames[indices[0]] * shift, seconds)
        end = min((said.frames[indices[-1]] + 1) * shift, seconds)
        words.append(Word(text, start, max(start, end), _confidence(said, indices)))
    return words


def _confidence(said: Hypothesis, indices: list[int]) -> float:
    probabilities = [min(1.0, math.exp(said.log_probs[index])) for index in indices]
    return sum(probabilities) / len(probabilities)
