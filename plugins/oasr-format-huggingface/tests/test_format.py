"""Folders as transformers writes them are recognised and opened, and what is incomplete is named."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from oasr.errors import CheckpointError
from oasr_format_huggingface.format import HuggingFaceFormat

CONFIG = {"architectures": ["AcmeForSpeech"], "model_type": "acme", "size": 3}
WEIGHTS = {"a": torch.ones(2, 3), "b": torch.zeros(2)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "模型 dir" / "ü (1)"
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(CONFIG))
    save_file(WEIGHTS, path / "model.safetensors")
    return path


def test_a_folder_is_opened(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"suppress_tokens": [1]}')
    (folder / "tokenizer.json").write_text("{}")
    (folder / "preprocessor_config.json").write_text("{}")
    assert HuggingFaceFormat.match(folder).why == "config.json names AcmeForSpeech"
    checkpoint = HuggingFaceFormat().open(folder)
    assert (checkpoint.architecture, checkpoint.naming) == ("AcmeForSpeech", "huggingface")
    assert checkpoint.config == CONFIG
    assert checkpoint.generation == {"suppress_tokens": [1]}
    assert set(checkpoint.files) == {"tokenizer", "preprocessor"}
    assert dict(checkpoint.shapes()) == {"a": (2, 3), "b": (2,)}
    assert torch.equal(dict(checkpoint.tensors())["a"], WEIGHTS["a"])


def test_without_classes_the_type_names_the_architecture(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "acme"}')
    assert HuggingFaceFormat().open(folder).architecture == "acme"
    assert HuggingFaceFormat().open(folder).generation == {}


@pytest.mark.parametrize("config", ['{"lang_ids": [1]}', '{"architectures": []}', "[]", "{"])
def test_a_config_that_names_no_model_is_not_taken_without_weights(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config)
    assert HuggingFaceFormat.match(tmp_path) is None


def test_a_damaged_config_beside_weights_is_named(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "ac')
    assert HuggingFaceFormat.match(folder) is not None
    with pytest.raises(CheckpointError, match=r"config\.json is not valid JSON"):
        HuggingFaceFormat().open(folder)


def test_a_folder_without_weights_is_recognised_and_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert HuggingFaceFormat.match(folder) is not None
    with pytest.raises(CheckpointError, match=r"model\.safetensors or pytorch_model\.bin is missing"):
        HuggingFaceFormat().open(folder).shapes()


def test_an_adapter_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    (tmp_path / "adapter_model.safetensors").touch()
    assert HuggingFaceFormat.match(tmp_path) is not None
    with pytest.raises(CheckpointError, match="merge it into its base model"):
        HuggingFaceFormat().open(tmp_path)


def test_other_paths_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert HuggingFaceFormat.match(tmp_path) is None
    assert HuggingFaceFormat.match(tmp_path / "a.txt") is None
    assert HuggingFaceFormat.match(tmp_path / "nowhere") is None


SENTENCES = ["Hello, world! it's 12:30", "  two  spaces\n", "¿qué? 你好 שלום हिन्दी 🎉", "<|en|> spelt out"]


def test_a_tokenizer_is_joined_from_its_files(folder: Path, shared: Any) -> None:
    source = shared("goldens/whisper-multilingual/checkpoint")
    for name in ("vocab.json", "merges.txt", "added_tokens.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    joined = Tokenizer.from_file(str(HuggingFaceFormat().open(folder).files["tokenizer"]))
    whole = Tokenizer.from_file(str(source / "tokenizer.json"))
    assert joined.get_vocab() == whole.get_vocab()
    for sentence in SENTENCES:
        ids = whole.encode(sentence, add_special_tokens=False).ids
        assert joined.encode(sentence, add_special_tokens=False).ids == ids
        assert joined.decode(ids) == whole.decode(ids)


def test_added_tokens_may_stand_in_the_tokenizer_config(folder: Path, shared: Any) -> None:
    source = shared("goldens/whisper-multilingual/checkpoint")
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    joined = Tokenizer.from_file(str(HuggingFaceFormat().open(folder).files["tokenizer"]))
    assert joined.token_to_id("<|notimestamps|>") == 526


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("merges.txt", "#version: 0.2\na\n", "lines that are not two pieces"),
        ("merges.txt", "#version: 0.2\na q\n", "merges 'q', which vocab.json does not have"),
        ("vocab.json", "[]", "holds a list"),
    ],
)
def test_damaged_tokenizer_files_are_named(folder: Path, name: str, content: str, message: str) -> None:
    (folder / "vocab.json").write_text('{"a": 0, "b": 1, "ab": 2}')
    (folder / "merges.txt").write_text("#version: 0.2\na b\n")
    (folder / name).write_text(content)
    with pytest.raises(CheckpointError, match=message):
        HuggingFaceFormat().open(folder)


def test_sniffing_and_shapes_do_not_import_torch(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from oasr_format_huggingface.format import HuggingFaceFormat as F;"
        "p = Path(sys.argv[1]); assert F.match(p); assert F().open(p).shapes(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)


@pytest.mark.parametrize("name", ["generation_config.json", "tokenizer.json", "preprocessor_config.json"])
def test_a_side_file_that_leads_nowhere_is_not_taken_as_absent(folder: Path, name: str) -> None:
    (folder / name).symlink_to("nowhere")
    with pytest.raises(CheckpointError, match=f"{name} is a link that leads nowhere"):
        HuggingFaceFormat().open(folder)


def test_a_configuration_that_leads_nowhere_is_recognised_and_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("config.json")
    assert HuggingFaceFormat.match(folder).why == "weights are there, and config.json is damaged"
    with pytest.raises(CheckpointError, match=r"config\.json is a link that leads nowhere"):
        HuggingFaceFormat().open(folder)
