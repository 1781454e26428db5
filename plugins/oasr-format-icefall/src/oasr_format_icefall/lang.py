"""The folder that says what tokens stand for: data/lang_bpe_500, data/lang_char, ... or the release itself."""

from collections.abc import Iterable
from pathlib import Path

from oasr.checkpoint.damage import is_there, shortened
from oasr.errors import CheckpointError
from oasr.tokenizers.symbols import read_symbols
from oasr_format_icefall.settings import SETTINGS

_ROLES = {"sentencepiece": ("bpe.model", "bbpe.model"), "symbols": ("tokens.txt",)}
"""Names of the files of each role; `bbpe.model` is of bytes."""


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
            f"{path} comes without its tokens: neither tokens.txt nor bpe.model is in "
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
    for role in _ROLES:
        if len({found[folder][role].read_bytes() for folder in fitting if role in found[folder]}) > 1:
            several = shortened([str(folder) for folder in fitting])
            raise CheckpointError(f"{path}: different tokens are in {several}. Name one in {SETTINGS} as lang_dir.")
    folder = max(fitting, key=lambda folder: len(found[folder]))
    return found[folder]


def _files(folder: Path) -> dict[str, Path]:
    files = ((role, folder / name) for role, names in _ROLES.items() for name in names)
    return {role: file for role, file in files if is_there(file)}


def _size(files: dict[str, Path]) -> int | None:
    """How many tokens there are; None when only a SentencePiece model knows."""
    return len(read_symbols(files["symbols"])) if "symbols" in files else None
