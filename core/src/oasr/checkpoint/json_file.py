"""Reads the JSON files of a checkpoint."""

import json
from pathlib import Path
from typing import Any

from oasr.checkpoint.damage import require_sound
from oasr.errors import CheckpointError


def read_object(path: Path) -> dict[str, Any]:
    """Content of a JSON file that holds an object.

    Raises `CheckpointError` when it is missing, empty, truncated or holds something else.
    """
    require_sound(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:  # covers text that is not UTF-8
        raise CheckpointError(f"{path} is not valid JSON: {error}.") from error
    except RecursionError:
        raise CheckpointError(f"{path} is nested too deeply.") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds a {type(content).__name__} where an object is expected.")
    return content


def file_beside(path: Path, name: Any) -> Path:
    """The file that a JSON file names. Raises `CheckpointError` for whatever is no name of a file in its folder."""
    if not isinstance(name, str) or Path(name).name != name:
        raise CheckpointError(f"{path} names {name!r}, which is not a file beside it.")
    return path.parent / name
