"""Files that a checkpoint lacks and that are made from what it has, kept until the process ends."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from oasr.checkpoint.damage import blaming


def derived_json(name: str, content: Mapping[str, Any]) -> Path:
    """Write content to a new temporary file of that name and return its path."""
    with blaming(Path(tempfile.gettempdir()), "cannot hold temporary files"):
        path = Path(tempfile.mkdtemp(dir=_process_folder())) / name
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


@cache
def _process_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="oasr-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
