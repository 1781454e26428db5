"""`icefall.json`: what a user adds to a checkpoint, under the names of the flags of icefall's own scripts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oasr.checkpoint.damage import is_there
from oasr.checkpoint.json_file import read_object
from oasr.errors import CheckpointError
from oasr.registry.hints import did_you_mean

SETTINGS = "icefall.json"
# Flags of decode.py.
_NUMBERS = ("epoch", "iter", "avg")
_FOLDERS = ("exp_dir", "lang_dir")
_AVERAGED = "use_averaged_model"
# Flags of train.py, and parameters it fixes.
_MODEL = (
    "num_encoder_layers",
    "downsampling_factor",
    "encoder_dim",
    "feedforward_dim",
    "cnn_module_kernel",
    "num_heads",
    "query_head_dim",
    "value_head_dim",
    "pos_head_dim",
    "feature_dim",
    "blank_id",
    "chunk_size",
    "left_context_frames",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Which weights to take, where the files are, and what the weights do not say."""

    path: Path | None = None
    epoch: int | None = None
    iter: int | None = None
    avg: int = 1
    """Checkpoints to average, those before the chosen one included."""
    use_averaged_model: bool | None = None
    """Whether to use the average that training kept; where there is one unless set."""
    exp_dir: Path | None = None
    lang_dir: Path | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    """Training parameters."""


def settings_for(path: Path) -> Settings:
    """The settings that stand in a folder, its `exp`, or with a file. Raises `CheckpointError` for damaged ones."""
    places = (path, path / "exp") if path.is_dir() else (path.parent, path.parent.parent)
    found = path if path.name == SETTINGS else next((at / SETTINGS for at in places if is_there(at / SETTINGS)), None)
    return _read(found) if found else Settings()


def _read(path: Path) -> Settings:
    content = read_object(path)
    known = (*_NUMBERS, *_FOLDERS, _AVERAGED, *_MODEL)
    for name, value in content.items():
        if name not in known:
            raise CheckpointError(f'{path} has "{name}", which is not known.{did_you_mean(name, known)}')
        if name in _NUMBERS and (type(value) is not int or value < 1):
            raise CheckpointError(f"{path}: {name} is {value!r}, where a number from 1 is expected.")
        if name == _AVERAGED and not isinstance(value, bool):
            raise CheckpointError(f"{path}: {name} is {value!r}, where true or false is expected.")
        if name in _FOLDERS and not (isinstance(value, str) and (path.parent / value).is_dir()):
            raise CheckpointError(f"{path}: {name} is {value!r}, which is no folder seen from {path.parent}.")
    if "epoch" in content and "iter" in content:
        raise CheckpointError(f"{path} has both epoch and iter; write one of them.")
    if not {"epoch", "iter"} & content.keys() and {"avg", _AVERAGED} & content.keys():
        raise CheckpointError(f"{path} says how to average, but neither epoch nor iter: write the last one to take.")
    return Settings(
        path,
        **{name: content[name] for name in (*_NUMBERS, _AVERAGED) if name in content},
        **{name: path.parent / content[name] for name in _FOLDERS if name in content},
        model={name: content[name] for name in _MODEL if name in content},
    )
