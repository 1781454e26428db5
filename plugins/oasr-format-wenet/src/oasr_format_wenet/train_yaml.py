"""Reads train.yaml, WeNet's description of a model, and says which network it describes."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from oasr.checkpoint.damage import require_sound
from oasr.errors import CheckpointError

NAME = "train.yaml"

_MODELS = ("asr_model", "ctl_model", "k2_model")
"""Networks of the same shape; they differ in how they were trained."""
_ENCODERS = ("conformer", "transformer")


def read_train_yaml(checkpoint: Path) -> Mapping[str, Any]:
    """The description of a folder or of a file in it.

    Raises `CheckpointError` when train.yaml is missing, damaged or no mapping.
    """
    path = description_of(checkpoint)
    if not os.path.lexists(path):
        raise CheckpointError(
            f"{checkpoint} comes without {NAME}, which says what the weights do not tell, such as whether convolutions "
            f"look ahead. Copy it from the release or the training to {path}."
        )
    require_sound(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (yaml.YAMLError, ValueError) as error:  # ValueError covers text that is not UTF-8 and impossible dates
        raise CheckpointError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from error
    except RecursionError:
        raise CheckpointError(f"{path} is nested too deeply.") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds a {type(content).__name__} where a mapping is expected.")
    return content


def description_of(checkpoint: Path) -> Path:
    """Where train.yaml of a folder, or of a file in it, is."""
    return (checkpoint if checkpoint.is_dir() else checkpoint.parent) / NAME


def architecture(checkpoint: Path, config: Mapping[str, Any]) -> str:
    """The component that runs the model. Raises `CheckpointError` naming a model of WeNet that is another network."""
    model, encoder = config.get("model", "asr_model"), config.get("encoder", "conformer")
    variant = None
    if "predictor" in config or model == "transducer":
        variant = "a transducer"
    elif "paraformer" in config or model == "paraformer":
        variant = "a Paraformer"
    elif model == "whisper" or config.get("tokenizer") == "whisper":
        variant = "a Whisper in WeNet's layout; use the original, which is read as it is"
    elif model not in _MODELS:
        variant = f"the model {model}"
    elif encoder not in _ENCODERS:
        variant = f"the encoder {encoder}"
    if variant is None:
        return "conformer"
    raise CheckpointError(
        f"{description_of(checkpoint)} describes {variant}. Of WeNet's models, those with a conformer or "
        "transformer encoder and a CTC output are read, with or without attention decoders."
    )


def section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of the configuration that may be absent; what is no mapping is refused where it is read."""
    content = config.get(name)
    return content if isinstance(content, dict) else {}
