"""A folder's weights are read from all the files they are in, and a damaged or ambiguous folder is refused by name."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from oasr.checkpoint.weight_folder import FolderWeights
from oasr.errors import CheckpointError

FIRST, SECOND = {"a": torch.arange(6.0).reshape(2, 3)}, {"b": torch.tensor([1.5, 2.5], dtype=torch.float16)}
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def write_index(folder: Path, places: dict[str, str], name: str = "model.safetensors.index.json") -> None:
    (folder / name).write_text(json.dumps({"weight_map": places}))


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    save_file({**FIRST, **SECOND}, tmp_path / "model.safetensors")
    return tmp_path


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    save_file(FIRST, tmp_path / SHARDS[0])
    save_file(SECOND, tmp_path / SHARDS[1])
    write_index(tmp_path, {"a": SHARDS[0], "b": SHARDS[1]})
    return tmp_path


def assert_complete(folder: Path) -> None:
    weights = FolderWeights(folder)
    assert dict(weights.shapes()) == {"a": (2, 3), "b": (2,)}
    tensors = dict(weights.tensors())
    assert torch.equal(tensors["a"], FIRST["a"])
    assert torch.equal(tensors["b"], SECOND["b"])
    assert tensors["b"].dtype == torch.float16


def test_one_file(whole: Path) -> None:
    assert_complete(whole)


def test_shards(sharded: Path) -> None:
    assert_complete(sharded)


def test_one_pickle(tmp_path: Path) -> None:
    torch.save({**FIRST, **SECOND}, tmp_path / "pytorch_model.bin")
    assert_complete(tmp_path)


def test_pickled_shards(tmp_path: Path) -> None:
    names = ("pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin")
    torch.save(FIRST, tmp_path / names[0])
    torch.save(SECOND, tmp_path / names[1], _use_new_zipfile_serialization=False)
    write_index(tmp_path, {"a": names[0], "b": names[1]}, "pytorch_model.bin.index.json")
    assert_complete(tmp_path)


def test_safetensors_win_over_a_pickle_beside_them(whole: Path) -> None:
    torch.save({"other": torch.ones(1)}, whole / "pytorch_model.bin")
    assert_complete(whole)


@pytest.mark.parametrize("kind", ["模型 dir/ü (1)", "תיקייה/Модель 2", "a b/c'd\"e[1]"])
def test_any_path_the_system_allows(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / kind
    folder.mkdir(parents=True)
    save_file({**FIRST, **SECOND}, folder / "model.safetensors")
    assert_complete(folder)


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / SHARDS[1]).unlink()
    with pytest.raises(CheckpointError, match=SHARDS[1]):
        FolderWeights(sharded)


def test_shards_without_their_index_are_incomplete(sharded: Path) -> None:
    (sharded / "model.safetensors.index.json").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors\.index\.json is missing"):
        FolderWeights(sharded)


@pytest.mark.parametrize("stray", ["model.safetensors", "model-00003-of-00003.safetensors"])
def test_a_second_set_of_weights_is_refused_by_name(sharded: Path, stray: str) -> None:
    save_file({"c": torch.ones(1)}, sharded / stray)
    with pytest.raises(CheckpointError, match=f"two sets of weights: {stray}"):
        FolderWeights(sharded)


def test_a_left_over_shard_beside_one_file_is_refused(whole: Path) -> None:
    save_file(FIRST, whole / SHARDS[0])
    with pytest.raises(CheckpointError, match=SHARDS[0]):
        FolderWeights(whole)


@pytest.mark.parametrize(
    "places",
    [
        {"a": SHARDS[0], "b": SHARDS[1], "c": SHARDS[1]},
        {"a": SHARDS[1], "b": SHARDS[1]},
    ],
    ids=["names a tensor that is not there", "names the wrong shard"],
)
def test_an_index_that_disagrees_with_its_files_is_refused(sharded: Path, places: dict[str, str]) -> None:
    write_index(sharded, {**places, "_": SHARDS[0]})
    with pytest.raises(CheckpointError, match="disagree about"):
        FolderWeights(sharded).shapes()


def test_an_index_may_not_lead_out_of_the_folder(sharded: Path) -> None:
    write_index(sharded, {"a": "../secret.safetensors"})
    with pytest.raises(CheckpointError, match="not a file beside it"):
        FolderWeights(sharded)


def test_a_tensor_in_two_shards_is_refused(sharded: Path) -> None:
    save_file({**FIRST, **SECOND}, sharded / SHARDS[1])
    with pytest.raises(CheckpointError, match=f"a is in {SHARDS[0]} and in {SHARDS[1]}"):
        FolderWeights(sharded).shapes()


def test_an_empty_file_says_so(whole: Path) -> None:
    (whole / "model.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"model\.safetensors is empty \(0 bytes\)"):
        FolderWeights(whole)


@pytest.mark.parametrize("keep", [1, 7, 8, 9, 60, -1, -5])
def test_a_truncated_file_is_refused_wherever_it_is_cut(whole: Path, keep: int) -> None:
    file = whole / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match=r"model\.safetensors (is truncated|is not a safetensors file)"):
        FolderWeights(whole).shapes()


def test_a_header_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [5], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(CheckpointError, match="damaged safetensors header"):
        FolderWeights(tmp_path).shapes()


def test_a_git_lfs_pointer_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(CheckpointError, match="git lfs pull"):
        FolderWeights(tmp_path)


def test_a_folder_without_weights_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model\.safetensors or pytorch_model\.bin is missing"):
        FolderWeights(tmp_path)


def test_a_pickle_of_something_else_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3, **FIRST}, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="entries that are not named tensors: epoch"):
        FolderWeights(tmp_path).shapes()


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F8_E5M2", "shape": [2], "data_offsets": ["a", 5]},
        {"dtype": "F8_E5M2", "shape": [2], "data_offsets": 5},
        {"dtype": "F8_E5M2", "data_offsets": [0, 2]},
        {"dtype": "F8_E5M2", "shape": "x", "data_offsets": [0, 2]},
        {"dtype": "F8_E5M2", "shape": [-1], "data_offsets": [0, 2]},
        {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]},
        5,
    ],
)
def test_a_header_of_another_shape_is_called_damaged(tmp_path: Path, entry: Any) -> None:
    header = json.dumps({"w": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(CheckpointError, match=r"model\.safetensors has a damaged safetensors header"):
        FolderWeights(tmp_path).shapes()


def test_json_nested_without_end_is_refused(tmp_path: Path, whole: Path) -> None:
    deep = b"[" * 200_000
    (whole / "model.safetensors").write_bytes(struct.pack("<Q", len(deep)) + deep)
    with pytest.raises(CheckpointError, match=r"model\.safetensors has a damaged"):
        FolderWeights(whole).shapes()
    (whole / "model.safetensors.index.json").write_bytes(deep)
    with pytest.raises(CheckpointError, match=r"index\.json is nested too deeply"):
        FolderWeights(whole)


@pytest.mark.parametrize("target", ["nowhere", "itself"])
def test_a_link_that_leads_nowhere_is_never_taken_for_a_file_that_is_absent(whole: Path, target: str) -> None:
    index = whole / "model.safetensors.index.json"
    index.symlink_to(index if target == "itself" else target)
    with pytest.raises(CheckpointError, match=r"index\.json is a link that leads nowhere"):
        FolderWeights(whole)
    index.unlink()
    torch.save({**FIRST, **SECOND}, whole / "pytorch_model.bin")
    (whole / "model.safetensors").unlink()
    (whole / "model.safetensors").symlink_to(whole / "model.safetensors" if target == "itself" else target)
    with pytest.raises(CheckpointError, match=r"model\.safetensors is a link that leads nowhere"):
        FolderWeights(whole)
