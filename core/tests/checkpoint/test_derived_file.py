"""What a checkpoint lacks is made in a temporary folder."""

import json
import tempfile
from pathlib import Path

import pytest

from oasr.checkpoint.derived_file import derived_json
from oasr.errors import CheckpointError


def test_files_of_one_name_do_not_meet() -> None:
    paths = [derived_json("tokenizer.json", {"number": number}) for number in range(2)]
    assert [json.loads(path.read_text())["number"] for path in paths] == [0, 1]
    assert {path.name for path in paths} == {"tokenizer.json"}


def test_a_full_disk_is_blamed_on_the_temporary_folder_and_not_on_the_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CheckpointError, match=f"{tempfile.gettempdir()} cannot hold temporary files: No space left"):
        derived_json("tokenizer.json", {})
