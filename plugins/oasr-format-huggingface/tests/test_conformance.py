"""The format keeps the laws of formats, whether weights are whole, in shards or pickled."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from oasr.testing import FormatSuite, PluginSuite

WEIGHTS = {"a": torch.arange(6000.0).reshape(60, 100), "b": torch.zeros(2, dtype=torch.float16)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "original"
    path.mkdir()
    (path / "config.json").write_text('{"architectures": ["AcmeForSpeech"], "model_type": "acme"}')
    (path / "generation_config.json").write_text('{"suppress_tokens": [1]}')
    (path / "tokenizer.json").write_text("{}")
    return path


class TestPlugin(PluginSuite):
    plugin = "oasr_format_huggingface.plugin"


class TestWhole(FormatSuite):
    component = "huggingface"

    @pytest.fixture
    def checkpoint(self, folder: Path) -> Path:
        save_file(WEIGHTS, folder / "model.safetensors")
        return folder


class TestShards(FormatSuite):
    component = "huggingface"

    @pytest.fixture
    def checkpoint(self, folder: Path) -> Path:
        places = {name: f"model-{number:05}-of-00002.safetensors" for number, name in enumerate(WEIGHTS, 1)}
        for name, file in places.items():
            save_file({name: WEIGHTS[name]}, folder / file)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
        return folder


class TestPickle(FormatSuite):
    component = "huggingface"

    @pytest.fixture
    def checkpoint(self, folder: Path) -> Path:
        torch.save(WEIGHTS, folder / "pytorch_model.bin")
        return folder
