"""Joins the files of a slow byte-level BPE tokenizer to one tokenizer.json, for folders that have no other."""

from collections.abc import Mapping
from pathlib import Path

from oasr.checkpoint.byte_level_bpe import tokenizer_json
from oasr.checkpoint.derived_file import derived_json
from oasr.checkpoint.json_file import read_object
from oasr.errors import CheckpointError


def joined_tokenizer(files: Mapping[str, Path]) -> Path:
    """A tokenizer.json made of vocab.json, merges.txt and what names added tokens.

    Raises `CheckpointError` when a file is damaged.
    """
    vocabulary = read_object(files["vocab"])
    pairs = [line.split(" ") for line in _lines(files["merges"]) if line and not line.startswith("#version")]
    if any(len(pair) != 2 for pair in pairs):
        raise CheckpointError(f"{files['merges']} has lines that are not two pieces.")
    merges = [(left, right) for left, right in pairs]
    unknown = [piece for pair in merges for piece in pair if piece not in vocabulary]
    if unknown:
        raise CheckpointError(f"{files['merges']} merges {unknown[0]!r}, which {files['vocab'].name} does not have.")
    control = {**_control(vocabulary), **_added(files)}
    return derived_json("tokenizer.json", tokenizer_json(vocabulary, merges, control))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not text: {error}.") from error


def _control(vocabulary: Mapping[str, int]) -> dict[str, int]:
    return {token: number for token, number in vocabulary.items() if token.startswith("<|") and token.endswith("|>")}


def _added(files: Mapping[str, Path]) -> dict[str, int]:
    if "added_tokens" in files:
        return read_object(files["added_tokens"])
    if "tokenizer_config" in files:
        added = read_object(files["tokenizer_config"]).get("added_tokens_decoder", {})
        return {token["content"]: int(number) for number, token in added.items()}
    return {}
