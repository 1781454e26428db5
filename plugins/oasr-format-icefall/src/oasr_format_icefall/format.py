"""The layout of icefall, k2's recipes: `exp` with weights beside `data/lang_*`, or all of it in one folder.

No file says what the model is: it is told by the names of its tensors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoint.damage import shortened
from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint, CheckpointFormat, Match
from oasr_format_icefall.lang import token_files
from oasr_format_icefall.settings import SETTINGS, settings_for
from oasr_format_icefall.weights import SUFFIXES, is_torchscript, read_weights

if TYPE_CHECKING:
    import torch

_SNIFFED_BYTES = 1_000_000
_MOST_FILES = 20
_MARK = b"encoder_embed.conv.0.weight"  # of every acoustic model of icefall; names stand before the weights
_EXPORTS = ("jit_script", "cpu_jit", "encoder_jit", "decoder_jit", "joiner_jit")

# What each kind of model calls the first weights of its attention or recurrence.
_ZIPFORMER = re.compile(r"encoder\.encoders\.0\.(encoder\.)?layers\.0\.self_attn_weights\.in_proj\.weight")
_REFUSED = {
    "a Zipformer of the first version (pruned_transducer_stateless7)": re.compile(
        r"encoder\.encoders\.0\.(encoder\.)?layers\.0\.self_attn\.in_proj\.weight"
    ),
    "an LSTM": re.compile(r"encoder\.encoder\.layers\.0\.lstm\..*"),
    "an Emformer": re.compile(r"encoder\.encoder\.emformer_layers\.0\..*|encoder\.emformer_layers\.0\..*"),
    "a Conformer of icefall": re.compile(r"encoder\.encoder\.layers\.0\.self_attn\..*"),
}
_OUTPUTS = ("ctc_output.1.weight", "joiner.output_linear.weight")


class IcefallFormat(CheckpointFormat):
    """Recognises weights by the name of their first tensor, and releases by their layout."""

    @classmethod
    def match(cls, path: Path) -> Match | None:
        if path.is_file():
            return Match(0.95, f"it is {SETTINGS}") if path.name == SETTINGS else _match_file(path)
        if not path.is_dir():
            return None
        folders = (path, path / "exp")
        if any(os.path.lexists(folder / SETTINGS) for folder in folders):
            return Match(0.95, f"{SETTINGS} is there")
        files = [file for folder in folders for file in sorted(folder.glob("*.pt"))][:_MOST_FILES]
        matches = (match for file in files if (match := _match_file(file)))
        if files and any(path.glob("data/lang_*")):
            return next(matches, Match(0.6, f"{files[0].relative_to(path)} is there, and data/lang_*"))
        return next(matches, None)

    def open(self, path: Path) -> Checkpoint:
        return IcefallCheckpoint(path)


class IcefallCheckpoint(Checkpoint):
    """`config` holds training parameters: what a training checkpoint states, then what `icefall.json` does."""

    architecture = "zipformer"
    naming = "icefall"
    generation: Mapping[str, Any] = {}

    def __init__(self, path: Path):
        self.path = path
        settings = settings_for(path)
        release = path.parent if path.name == SETTINGS else path
        exp = settings.exp_dir or (release / "exp" if (release / "exp").is_dir() else release)
        self._weights = read_weights(exp if release.is_dir() else release, settings)
        shapes = self._weights.shapes()
        _require_zipformer(path, shapes)
        self.config: Mapping[str, Any] = {**self._weights.parameters, **settings.model}
        around = [release, exp, exp.parent] if release.is_dir() else [release.parent, release.parent.parent]
        outputs = next((shapes[name][0] for name in _OUTPUTS if name in shapes), None)
        self.files = token_files(around, settings.lang_dir, outputs, path)

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self._weights.shapes()

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        return self._weights.tensors()


def _match_file(path: Path) -> Match | None:
    if path.suffix not in SUFFIXES or not path.is_file():
        return None
    with path.open("rb") as file:
        if _MARK in file.read(_SNIFFED_BYTES):
            return Match(0.9, f"{path.name} holds {_MARK.decode()}")
    if path.name.startswith(_EXPORTS) and is_torchscript(path):
        return Match(0.5, f"{path.name} is a TorchScript export")
    return None


def _require_zipformer(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    if any(_ZIPFORMER.fullmatch(name) for name in shapes):
        return
    for model, name_of_it in _REFUSED.items():
        if any(name_of_it.fullmatch(name) for name in shapes):
            raise CheckpointError(
                f"{path} is {model}, which is not supported; of icefall's models only the Zipformer of 2023 is."
            )
    raise CheckpointError(f"{path} is no Zipformer: its tensors are {shortened(sorted(shapes))}.")
