"""The folder that says what tokens stand for: data/lang_bpe_500, data/lang_char, ... or the release itself."""

import re
from collections.abc import Iterable
from pathlib import Path

from oasr.checkpoint.damage import is_there, shortened
from oasr.errors import CheckpointError
from oasr_format_icefall.settings import SETTINGS

_SYMBOLS, _SENTENCEPIECE = "tokens.txt", "bpe.model"
# Symbols of decoding graphs, which are not outputs of the model.
_DISAMBIGUATION = re.compile(r"#\d+")
_BYTE_LEVEL = "bbpe"


def token_files(
    folders: Iterable[Path], chosen: Path | None, vocabulary_size: int | None, path: Path
) -> dict[str, Path]:
    """The files that fit a vocabulary, by role: `sentencepiece`, `symbols` or both.

    Looks in the folder chosen, or else in those given and in their data/lang_*. `vocabulary_size` None fits any. Raises
    `CheckpointError` about `path` when nothing fits, or folders that differ do.
    """
    around = [at for folder in folders for at in (folder, *sorted(folder.glob("data/lang_*")))]
    candidates = [chosen] if chosen else around
    found = {folder: files for folder in dict.fromkeys(candidates) if (files := _files(folder))}
    if not found:
        raise CheckpointError(
            f"{path} comes without its tokens: neither {_SYMBOLS} nor {_SENTENCEPIECE} is in "
            f"{shortened([str(folder) for folder in candidates])}. Put them into data/lang_bpe_500 or the like, or "
            f"name the folder in {SETTINGS} as lang_dir."
        )
    sizes = {folder: _size(files) for folder, files in found.items()}
    fitting = [folder for folder, size in sizes.items() if None in (size, vocabulary_size) or size == vocabulary_size]
    if not fitting:
        listed = shortened([f"{folder} has {size}" for folder, size in sizes.items()])
        raise CheckpointError(
            f"{path}: the weights know {vocabulary_size} tokens, but {listed}: they belong to another model."
        )
    if len({found[folder]["symbols"].read_bytes() for folder in fitting if "symbols" in found[folder]}) > 1:
        several = shortened([str(folder) for folder in fitting])
        raise CheckpointError(f"{path}: different tokens are in {several}. Name one in {SETTINGS} as lang_dir.")
    folder = max(fitting, key=lambda folder: len(found[folder]))
    if _BYTE_LEVEL in folder.name or is_there(folder / f"{_BYTE_LEVEL}.model"):
        raise CheckpointError(
            f"{path}: the tokens of {folder} are pieces of bytes (byte-level BPE), which are not supported."
        )
    return found[folder]


def _files(folder: Path) -> dict[str, Path]:
    roles = {"sentencepiece": folder / _SENTENCEPIECE, "symbols": folder / _SYMBOLS}
    return {role: file for role, file in roles.items() if is_there(file)}


def _size(files: dict[str, Path]) -> int | None:
    """How many tokens a model has to know; None when there is only a SentencePiece model."""
    if "symbols" not in files:
        return None
    path = files["symbols"]
    largest = -1
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not text: {error}.") from error
    for number, line in enumerate(lines, 1):
        symbol, _, index = line.strip().rpartition(" ")
        if not line.strip() or _DISAMBIGUATION.fullmatch(symbol.strip()):
            continue
        if not symbol or not index.isdecimal():
            raise CheckpointError(f"{path}: line {number} is not a symbol and its number: {line[:40]!r}.")
        largest = max(largest, int(index))
    return largest + 1
