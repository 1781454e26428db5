"""Whether the table of symbols beside a checkpoint is that of its weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint

_ENDS = ("<sos/eos>", "<eos>")


def symbol_faults(checkpoint: Checkpoint, vocabulary_size: int, decoder: Mapping[str, Any] | None) -> list[str]:
    """What is wrong with the table, in the words of an error message; nothing when it fits."""
    if "symbols" not in checkpoint.files:
        return ["the table of symbols (units.txt or words.txt), which turns ids into text, is missing"]
    path = checkpoint.files["symbols"]
    ids = _read(path)
    faults = []
    if (count := 1 + max(ids.values(), default=-1)) != vocabulary_size:
        faults.append(f"{path.name} has {count} symbols, the weights have {vocabulary_size}")
    faults += [
        f"{path.name} has {symbol} at {ids[symbol]}, train.yaml says {decoder['end']}"
        for symbol in _ENDS
        if decoder and ids.get(symbol, decoder["end"]) != decoder["end"]
    ]
    return faults


def _read(path: Path) -> dict[str, int]:
    """Lines of a symbol and its id."""
    try:
        lines = [line.split() for line in path.read_text(encoding="utf-8-sig").split("\n") if line.strip()]
        return {symbol: int(number) for symbol, number in lines}
    except ValueError as error:  # covers text that is not UTF-8
        raise CheckpointError(f"{path} is not a table of a symbol and its id in each line: {error}.") from error
