"""Symbol tables: a token and its id a line, as icefall (tokens.txt) and WeNet (units.txt, words.txt) have them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from oasr.errors import CheckpointError
from oasr.tokenizers.pieces import PieceTokenizer

_LINE = re.compile(r"(.*?)[ \t]+(\d+)\s*")
_AUXILIARY = re.compile(r"#\d+")


class SymbolTokenizer(PieceTokenizer):
    """BPE pieces, bytes or characters; text is spelt with as few tokens as possible."""

    def __init__(self, files: Mapping[str, Path]):
        path = files.get("symbols")
        if path is None:
            raise CheckpointError("The checkpoint has no symbol table; copy tokens.txt or units.txt beside the weights")
        super().__init__(read_symbols(path))


def read_symbols(path: Path) -> Sequence[str]:
    """The tokens of a symbol table by id, without the auxiliary ones (#0, #1, ...) that a lexicon adds at the end.

    Raises `CheckpointError` when a line is malformed, or an id is missing or given twice.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: not a readable symbol table: {error}") from error
    symbols: dict[int, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise CheckpointError(f"{path}, line {number}: expected a token and its id, not {line[:80]!r}")
        token = int(found[2])
        if token in symbols:
            raise CheckpointError(f"{path}, line {number}: id {token} is that of {symbols[token]!r} already")
        symbols[token] = found[1] or " "
    missing = next((token for token in range(len(symbols)) if token not in symbols), None)
    if not symbols or missing is not None:
        raise CheckpointError(f"{path}: no token has id {missing or 0}; the table is cut short or of something else")
    table = [symbols[token] for token in range(len(symbols))]
    while table and _AUXILIARY.fullmatch(table[-1]):
        table.pop()
    return table
