"""Tokenizers stored as `tokenizer.json`, read by the `tokenizers` library."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import tokenizers

from oasr.errors import CheckpointError, RequestError
from oasr.interfaces.tokenizer import Tokenizer

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class HuggingFaceTokenizer(Tokenizer):
    """Any model the library reads: byte-level BPE, WordPiece, Unigram."""

    def __init__(self, files: Mapping[str, Path]):
        path = files.get("tokenizer")
        if path is None:
            raise CheckpointError(
                "The checkpoint has no tokenizer.json; copy it from the original model beside the weights"
            )
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for whatever is wrong with the file
            raise CheckpointError(f"{path}: not a readable tokenizer: {error}") from error
        self._tokenizer.encode_special_tokens = True

    @property
    def size(self) -> int:
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._piece(token) for token in ids]

    def _piece(self, token: int) -> str:
        piece = self._tokenizer.id_to_token(token) if token >= 0 else None
        if piece is None:
            raise RequestError(f"Token id {token} is outside the vocabulary of {self.size}")
        return piece

    def stream(self) -> "_Stream":
        return _Stream(self)


class _Stream:
    """Decodes all ids so far on each push: a transcript window is short, and only that is always right.

    Bytes that do not yet make a character decode to one replacement character at the end; it is held back until more
    bytes complete or refute it.
    """

    def __init__(self, tokenizer: HuggingFaceTokenizer):
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._shown = 0

    def push(self, ids: Sequence[int]) -> str:
        self._ids.extend(ids)
        text = self._tokenizer.decode(self._ids)
        return self._show(text.removesuffix(_REPLACEMENT))

    def finish(self) -> str:
        return self._show(self._tokenizer.decode(self._ids))

    def _show(self, text: str) -> str:
        delta = text[self._shown :]
        self._shown = max(self._shown, len(text))
        return delta
