"""A converted checkpoint loads bit for bit as the original, and a conversion never leaves or destroys anything else."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from oasr.checkpoint import convert as conversion
from oasr.checkpoint.convert import convert
from oasr.checkpoint.load import load
from oasr.checkpoint.safetensors_file import read_tensors
from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError
from oasr.registry import Registry


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    path = tmp_path / "source" / "tokenizer.json"
    path.parent.mkdir()
    path.write_text('{"a": "ü"}', encoding="utf-8")
    return path


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["out", "模型 dir/ü (1)", "תיקייה/Модель 2"])
def test_the_conversion_loads_bit_for_bit(
    name: str, dtype: torch.dtype, toy: Callable, toy_tensors: dict, registry: Registry, tmp_path: Path
) -> None:
    source = toy(
        left__weight=toy_tensors["left.weight"].half(),
        left__bias=toy_tensors["left.bias"].half(),
        out__weight=toy_tensors["out.weight"].bfloat16(),
    )
    converted = open_checkpoint(convert(source, registry, tmp_path / name), registry)
    expected = load(source, registry, dtype, "cpu")
    loaded = load(converted, registry, dtype, "cpu")
    for name, tensor in expected.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_number_types_are_kept_and_joined_ones_widened(
    toy: Callable, toy_tensors: dict, registry: Registry, tmp_path: Path
) -> None:
    source = toy(left__weight=toy_tensors["left.weight"].half(), out__weight=toy_tensors["out.weight"].bfloat16())
    stored = dict(read_tensors(convert(source, registry, tmp_path / "out") / "model.safetensors"))
    assert stored["fused.weight"].dtype == torch.float32
    assert stored["out.weight"].dtype == torch.bfloat16
    assert stored["counts"].dtype == torch.int64


def test_configuration_defaults_and_side_files_come_along(
    toy: Callable, registry: Registry, tmp_path: Path, tokenizer: Path
) -> None:
    source = toy()
    source.files = {"tokenizer": tokenizer}
    converted = open_checkpoint(convert(source, registry, tmp_path / "out"), registry)
    assert converted.architecture == "toy"
    assert converted.config == {"width": 2}
    assert converted.generation == {"length": 7}
    assert converted.files["tokenizer"].read_text(encoding="utf-8") == '{"a": "ü"}'
    assert converted.files["tokenizer"].parent == tmp_path / "out"


def test_the_weights_are_as_readable_as_the_description(toy: Callable, registry: Registry, tmp_path: Path) -> None:
    folder = convert(toy(), registry, tmp_path / "out")
    assert (folder / "model.safetensors").stat().st_mode == (folder / "oasr.json").stat().st_mode


def test_side_files_of_one_name_are_kept_apart(
    toy: Callable, registry: Registry, tmp_path: Path, tokenizer: Path
) -> None:
    twin = tmp_path / "twin" / "tokenizer.json"
    twin.parent.mkdir()
    twin.write_text("twin")
    source = toy()
    source.files = {"tokenizer": tokenizer, "other": twin}
    converted = open_checkpoint(convert(source, registry, tmp_path / "out"), registry)
    assert converted.files["other"].read_text() == "twin"
    assert converted.files["tokenizer"].read_text(encoding="utf-8") == '{"a": "ü"}'


def test_an_empty_folder_is_filled(toy: Callable, registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    convert(toy(), registry, tmp_path / "out")
    assert (tmp_path / "out" / "oasr.json").exists()


def test_the_current_folder_is_filled_in_place(
    toy: Callable, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    convert(toy(), registry, Path())
    assert {path.name for path in Path.cwd().iterdir()} == {"oasr.json", "model.safetensors"}
    with pytest.raises(CheckpointError, match="add --force"):
        convert(toy(), registry, Path())
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_earlier_conversion_is_replaced_only_when_forced(toy: Callable, registry: Registry, tmp_path: Path) -> None:
    convert(toy(), registry, tmp_path / "out")
    changed = toy(out__weight=torch.full((2, 2), 9.0))
    with pytest.raises(CheckpointError, match="add --force"):
        convert(changed, registry, tmp_path / "out")
    convert(changed, registry, tmp_path / "out", force=True)
    model = load(open_checkpoint(tmp_path / "out", registry), registry, torch.float32, "cpu")
    assert model.out.weight.unique().tolist() == [9.0]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("force", [False, True])
def test_foreign_files_are_never_replaced(force: bool, toy: Callable, registry: Registry, tmp_path: Path) -> None:
    convert(toy(), registry, tmp_path / "out")
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match=r"thesis\.txt"):
        convert(toy(), registry, tmp_path / "out", force)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CheckpointError, match="is a file"):
        convert(toy(), registry, tmp_path / "file", force)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "years of work"
    assert (tmp_path / "file").read_text() == "mine"


def test_a_conversion_that_fails_leaves_nothing(
    toy: Callable, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(conversion, "save_file", fail)
    with pytest.raises(CheckpointError, match="out cannot be written: no space left"):
        convert(toy(), registry, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_does_not_fit_writes_nothing(toy: Callable, registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"1 missing: out\.weight"):
        convert(toy(out__weight=None), registry, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "has format 2; this release reads format 1"),
        ({"config": None}, "has no config"),
        ({"files": {"tokenizer": "../tokenizer.json"}}, "not a file beside it"),
        ({"files": {"tokenizer": "gone.json"}}, r"gone\.json is missing"),
    ],
)
def test_a_damaged_description_is_refused(
    change: dict, message: str, toy: Callable, registry: Registry, tmp_path: Path
) -> None:
    folder = convert(toy(), registry, tmp_path / "out")
    description = json.loads((folder / "oasr.json").read_text())
    (folder / "oasr.json").write_text(json.dumps({**description, **change}))
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(folder, registry)


def test_truncated_weights_are_refused(toy: Callable, registry: Registry, tmp_path: Path) -> None:
    folder = convert(toy(), registry, tmp_path / "out")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="truncated"):
        load(open_checkpoint(folder, registry), registry, torch.float32, "cpu")


def test_what_killed_conversions_left_is_cleared_by_the_next_to_the_same_place(
    toy: Callable, registry: Registry, tmp_path: Path
) -> None:
    old, new, other = (tmp_path / name for name in (".out.0a1b2c3d.partial", ".out.1a1b2c3d.partial", ".o.partial"))
    for partial in (old, new, other):
        partial.mkdir()
        (partial / "model.safetensors").touch()
    for partial in (old, other):
        for path in (partial / "model.safetensors", partial):
            os.utime(path, (0, time.time() - 2 * 60 * 60))
    convert(toy(), registry, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".o.partial", new.name, "out"]


@pytest.mark.parametrize("letter", ["n", "ü"])
def test_the_longest_name_a_file_system_takes_is_written_and_replaced(
    toy: Callable, registry: Registry, tmp_path: Path, letter: str
) -> None:
    destination = tmp_path / (letter * (255 // len(letter.encode())))
    convert(toy(), registry, destination)
    convert(toy(), registry, destination, force=True)
    assert list(tmp_path.iterdir()) == [destination]


def test_a_destination_that_cannot_be_is_refused_in_words(toy: Callable, registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match=r"file/x cannot be written: .*file is not a folder"):
        convert(toy(), registry, tmp_path / "file" / "x")
    with pytest.raises(CheckpointError, match="n cannot be written: File name too long"):
        convert(toy(), registry, tmp_path / ("n" * 300))
    (tmp_path / "link").symlink_to("nowhere")
    convert(toy(), registry, tmp_path / "link")
    assert (tmp_path / "nowhere" / "oasr.json").is_file()
