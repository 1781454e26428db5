"""Finds the files beside the weights.

The paths in train.yaml are those of the machine that trained the model. A file of that name beside the weights comes
first, then the names that releases use, and last the path itself.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oasr.checkpoint.damage import is_there, shortened
from oasr.errors import CheckpointError
from oasr_format_wenet.train_yaml import section

_SYMBOLS = ("units.txt", "words.txt", "lang_char.txt")


def symbols_file(folder: Path, config: Mapping[str, Any]) -> Path | None:
    """The table of symbols and their ids."""
    stated = section(config, "tokenizer_conf").get("symbol_table_path")
    return _find(folder, stated, _SYMBOLS) or _only(folder, "*units.txt", "symbol_table_path")


def sentencepiece_file(folder: Path, config: Mapping[str, Any]) -> Path | None:
    """The SentencePiece model, unless the tokens are of another kind."""
    if config.get("tokenizer", "bpe") != "bpe":
        return None
    stated = section(config, "tokenizer_conf").get("bpe_path")
    return _find(folder, stated, ()) or _only(folder, "*.model", "bpe_path")


def statistics_file(folder: Path, config: Mapping[str, Any]) -> Path | None:
    """The statistics of the features; None where the model takes features as they are.

    Raises `CheckpointError` when train.yaml asks for them and they are nowhere.
    """
    stated = section(config, "cmvn_conf").get("cmvn_file") if "cmvn" in config else config.get("cmvn_file")
    if stated is None or config.get("cmvn", "global_cmvn") is None:
        return None
    found = _find(folder, stated, ("global_cmvn",))
    if found is None:
        raise CheckpointError(
            f"{folder} has no global_cmvn: train.yaml asks for the statistics of the features ({stated}), and neither "
            "the weights nor a file beside them holds them. Copy the file from the release."
        )
    return found


def _find(folder: Path, stated: Any, names: Sequence[str]) -> Path | None:
    own = [stated] if isinstance(stated, str) and stated else []
    beside = [folder / Path(name).name for name in (*own, *names)]
    return next((path for path in (*beside, *map(Path, own)) if is_there(path)), None)


def _only(folder: Path, pattern: str, key: str) -> Path | None:
    found = sorted(path for path in folder.glob(pattern) if is_there(path))
    if len(found) > 1:
        raise CheckpointError(
            f"{folder} holds {shortened([path.name for path in found])}, and train.yaml does not say which belongs to "
            f"the model: leave one, or name it as tokenizer_conf.{key}."
        )
    return found[0] if found else None
