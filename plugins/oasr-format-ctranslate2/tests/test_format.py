"""model.bin is read as CTranslate2 writes it, in every version and number type, and damage is never read past."""

import json
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from oasr.errors import CheckpointError
from oasr_format_ctranslate2.format import CTranslate2Format

TYPES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}
BFLOAT16 = 5


def text(value: str) -> bytes:
    return struct.pack("<H", len(value.encode()) + 1) + value.encode() + b"\0"


def variable(name: str, value: numpy.ndarray, version: int, code: int | None = None) -> bytes:
    data = value.tobytes()
    head = text(name) + struct.pack("<B", value.ndim) + struct.pack(f"<{value.ndim}I", *value.shape)
    if version < 4:
        return head + struct.pack("<BI", value.itemsize, value.size) + data
    return head + struct.pack("<BI", TYPES[value.dtype.name] if code is None else code, len(data)) + data


def model_bin(
    variables: Mapping[str, Any], aliases: Mapping[str, str] | None = None, version: int = 6, spec: str = "WhisperSpec"
) -> bytes:
    """What CTranslate2's writer of that version puts out."""
    content = struct.pack("<I", version)
    if version >= 2:
        content += text(spec) + struct.pack("<I", 3)
    content += struct.pack("<I", len(variables))
    content += b"".join(variable(name, numpy.asarray(value), version) for name, value in variables.items())
    if version >= 3:
        pairs = (aliases or {}).items()
        content += struct.pack("<I", len(pairs)) + b"".join(text(alias) + text(target) for alias, target in pairs)
    return content


def write(folder: Path, content: bytes, config: dict | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.bin").write_bytes(content)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def read(folder: Path) -> dict[str, torch.Tensor]:
    checkpoint = CTranslate2Format().open(folder)
    tensors = dict(checkpoint.tensors())
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == dict(checkpoint.shapes())
    return tensors


WEIGHT = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_every_binary_version_that_names_its_model(tmp_path: Path, version: int) -> None:
    folder = write(tmp_path, model_bin({"encoder/num_heads": numpy.int16(4), "a/weight": WEIGHT}, version=version))
    assert torch.equal(read(folder)["a/weight"], torch.from_numpy(WEIGHT))
    checkpoint = CTranslate2Format().open(folder)
    assert checkpoint.architecture == "WhisperSpec"
    assert checkpoint.config["variables"] == {"encoder/num_heads": 4}


@pytest.mark.parametrize("kind", ["float32", "float16", "int32"])
def test_numbers_are_kept_in_the_stored_type(tmp_path: Path, kind: str) -> None:
    tensor = read(write(tmp_path, model_bin({"a": WEIGHT.astype(kind)})))["a"]
    assert tensor.dtype == getattr(torch, kind)
    assert tensor.tolist() == WEIGHT.tolist()


def test_bfloat16(tmp_path: Path) -> None:
    expected = torch.tensor([1.5, -2.0, 3.25], dtype=torch.bfloat16)
    raw = expected.view(torch.int16).numpy()
    content = struct.pack("<I", 6) + text("S") + struct.pack("<II", 1, 1) + variable("a", raw, 6, BFLOAT16)
    tensor = read(write(tmp_path, content + struct.pack("<I", 0)))["a"]
    assert tensor.dtype == torch.bfloat16
    assert torch.equal(tensor, expected)


@pytest.mark.parametrize("shape", [(4, 6), (4, 2, 3)], ids=["linear", "convolution"])
def test_int8_has_one_scale_a_row(tmp_path: Path, shape: tuple[int, ...]) -> None:
    stored = numpy.arange(24, dtype=numpy.int8).reshape(shape)
    scale = numpy.array([1, 2, 4, 8], dtype=numpy.float32)
    tensors = read(write(tmp_path, model_bin({"a/weight": stored, "a/weight_scale": scale})))
    assert set(tensors) == {"a/weight"}
    expected = stored / scale.reshape(-1, *[1] * (stored.ndim - 1))
    assert tensors["a/weight"].dtype == torch.float32
    assert tensors["a/weight"].tolist() == expected.tolist()


def test_int16_has_one_scale(tmp_path: Path) -> None:
    stored = numpy.array([[1024, -512], [256, 0]], dtype=numpy.int16)
    tensors = read(write(tmp_path, model_bin({"a/weight": stored, "a/weight_scale": numpy.float32(1024)})))
    assert tensors["a/weight"].tolist() == [[1.0, -0.5], [0.25, 0.0]]


def test_scales_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    variables = {"a/weight": numpy.ones((2, 2), numpy.int8), "a/weight_scale": numpy.ones(3, numpy.float32)}
    with pytest.raises(CheckpointError, match="2 rows and 3 scales"):
        read(write(tmp_path, model_bin(variables)))


def test_an_alias_covers_the_scale_too(tmp_path: Path) -> None:
    variables = {"a/weight": numpy.full((2, 2), 4, numpy.int8), "a/weight_scale": numpy.full(2, 2, numpy.float32)}
    aliases = {"b/weight": "a/weight", "b/weight_scale": "a/weight_scale"}
    tensors = read(write(tmp_path, model_bin(variables, aliases)))
    assert set(tensors) == {"a/weight", "b/weight"}
    assert tensors["b/weight"].tolist() == [[2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize("name", ["plain", "模型 dir/ü (1)", "תיקייה/Модель 2"])
def test_side_files_beside_the_weights_in_any_folder(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / name, model_bin({"a": WEIGHT}), {"suppress_ids": [1]})
    for side in ("tokenizer.json", "vocabulary.txt", "preprocessor_config.json"):
        (folder / side).write_text("{}")
    for path in (folder, folder / "model.bin"):
        assert CTranslate2Format.match(path) is not None
        checkpoint = CTranslate2Format().open(path)
        assert checkpoint.config["suppress_ids"] == [1]
        assert {role: path.name for role, path in checkpoint.files.items()} == {
            "tokenizer": "tokenizer.json",
            "vocabulary": "vocabulary.txt",
            "preprocessor": "preprocessor_config.json",
        }
        assert "a" in dict(checkpoint.tensors())


def test_the_tensors_do_not_write_through_to_the_file(tmp_path: Path) -> None:
    folder = write(tmp_path, model_bin({"a": WEIGHT}))
    before = (folder / "model.bin").read_bytes()
    read(folder)["a"].zero_()
    assert (folder / "model.bin").read_bytes() == before


def test_other_files_called_model_bin_are_not_taken(tmp_path: Path) -> None:
    assert CTranslate2Format.match(write(tmp_path / "zip", b"PK\x03\x04" + bytes(300))) is None
    assert CTranslate2Format.match(write(tmp_path / "ggml", b"lmgg" + bytes(300))) is None
    assert CTranslate2Format.match(write(tmp_path / "short", b"\6\0")) is None
    assert CTranslate2Format.match(tmp_path) is None
    assert CTranslate2Format.match(tmp_path / "nowhere") is None


def test_an_empty_file_is_recognised_and_called_empty(tmp_path: Path) -> None:
    folder = write(tmp_path, b"")
    assert CTranslate2Format.match(folder) is not None
    with pytest.raises(CheckpointError, match=r"model\.bin is empty \(0 bytes\)"):
        CTranslate2Format().open(folder)


def test_a_newer_version_is_recognised_and_refused_by_number(tmp_path: Path) -> None:
    folder = write(tmp_path, model_bin({"a": WEIGHT}, version=7))
    assert CTranslate2Format.match(folder) is not None
    with pytest.raises(CheckpointError, match="binary version 7; versions 1 to 6 are known"):
        CTranslate2Format().open(folder)


def test_version_1_does_not_name_its_model(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not name the model"):
        CTranslate2Format().open(write(tmp_path, model_bin({"a": WEIGHT}, version=1)))


def test_a_file_cut_anywhere_is_truncated(tmp_path: Path) -> None:
    whole = model_bin({"encoder/num_heads": numpy.int16(4), "a": WEIGHT}, {"b": "a"})
    for size in range(1, len(whole)):
        with pytest.raises(CheckpointError, match="truncated"):
            CTranslate2Format().open(write(tmp_path, whole[:size]))


def test_one_changed_byte_is_an_error_or_another_value_and_nothing_else(tmp_path: Path) -> None:
    whole = model_bin({"encoder/num_heads": numpy.int16(4), "a": WEIGHT}, {"b": "a"})
    refused = 0
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        try:
            read(write(tmp_path, bytes(damaged)))
        except CheckpointError:
            refused += 1
    assert refused > len(whole) / 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model_bin({"a": WEIGHT}) + b"\0", "1 bytes after its end"),
        (model_bin({"a": WEIGHT}, {"b": "c"}), "alias b of c cannot be resolved"),
        (model_bin({"a": WEIGHT}, {"a": "a"}), "alias a of a cannot be resolved"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        CTranslate2Format().open(write(tmp_path, content))


def test_a_config_that_is_not_json_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, model_bin({"a": WEIGHT}))
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json is not valid JSON"):
        CTranslate2Format().open(folder)


def test_sniffing_and_shapes_do_not_import_torch(tmp_path: Path) -> None:
    folder = write(tmp_path, model_bin({"a": WEIGHT}))
    code = (
        "import sys; from pathlib import Path; from oasr_format_ctranslate2.format import CTranslate2Format as F;"
        "p = Path(sys.argv[1]); assert F.match(p); assert F().open(p).shapes(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "vocabulary.json"])
def test_a_side_file_that_leads_nowhere_is_not_taken_as_absent(tmp_path: Path, name: str) -> None:
    write(tmp_path, model_bin({"a": numpy.ones(2, "float32")}))
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to("nowhere")
    with pytest.raises(CheckpointError, match=f"{name} is a link that leads nowhere"):
        CTranslate2Format().open(tmp_path)


def test_weights_that_lead_nowhere_are_recognised_and_refused(tmp_path: Path) -> None:
    (tmp_path / "model.bin").symlink_to("nowhere")
    assert CTranslate2Format.match(tmp_path) is not None
    with pytest.raises(CheckpointError, match=r"model\.bin is a link that leads nowhere"):
        CTranslate2Format().open(tmp_path)
