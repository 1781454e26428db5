"""openai/whisper's own file: a pickle of `dims` and `model_state_dict`, without a tokenizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoint.damage import is_there
from oasr.checkpoint.derived_file import derived_json
from oasr.checkpoint.pickles import named_tensors, read_pickle
from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint, CheckpointFormat, Match
from oasr_whisper.openai_tokenizer import package_tokenizer

if TYPE_CHECKING:
    import torch

_SNIFFED_BYTES = 1_000_000
_MARKS = (b"model_state_dict", b"dims", b"n_audio_ctx")


class OpenAIFormat(CheckpointFormat):
    """Recognises the file by the names in its pickle, which stands before the weights."""

    @classmethod
    def match(cls, path: Path) -> Match | None:
        if path.suffix not in (".pt", ".pth") or not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(_SNIFFED_BYTES)
        return Match(0.95, "a pickle with dims and model_state_dict") if all(mark in head for mark in _MARKS) else None

    def open(self, path: Path) -> Checkpoint:
        return OpenAICheckpoint(path)


class OpenAICheckpoint(Checkpoint):
    """`config` is `dims`. The tokenizer is `tokenizer.json` beside the file, or that of the package openai-whisper."""

    architecture = "whisper"
    naming = "openai"
    generation: Mapping[str, Any] = {}

    def __init__(self, path: Path):
        self.path = path
        content = read_pickle(path)
        parts = ("dims", "model_state_dict")
        if not isinstance(content, dict) or not all(isinstance(content.get(part), dict) for part in parts):
            raise CheckpointError(f"{path} does not hold the dictionaries dims and model_state_dict.")
        self.config = content["dims"]
        self._state = named_tensors(path, content["model_state_dict"])

    @cached_property
    def files(self) -> Mapping[str, Path]:  # type: ignore[override]  # derived on first use, since it takes a second
        beside = self.path.with_name("tokenizer.json")
        return {"tokenizer": beside if is_there(beside) else self._packaged_tokenizer()}

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in self._state.items()}

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self._state.items()

    def _packaged_tokenizer(self) -> Path:
        vocabulary_size = self.config.get("n_vocab", 0)
        try:
            content = package_tokenizer(vocabulary_size)
        except ValueError as error:
            raise CheckpointError(
                f"{self.path} comes without a tokenizer, and {error}. Put its tokenizer.json beside the file."
            ) from error
        if content is None:
            raise CheckpointError(
                f"{self.path} comes without a tokenizer. Put tokenizer.json of the same model beside the file, or "
                "install the package that has it: pip install openai-whisper"
            )
        return derived_json("tokenizer.json", content)
