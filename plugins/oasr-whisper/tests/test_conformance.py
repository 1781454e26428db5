"""The network and its own format keep the laws of their kinds."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from oasr.testing import ArchitectureSuite, FormatSuite, PluginSuite


class TestPlugin(PluginSuite):
    plugin = "oasr_whisper.plugin"


class TestWhisper(ArchitectureSuite):
    component = "whisper"

    @pytest.fixture
    def checkpoint(self, shared: Callable[[str], Path]) -> Path:
        return shared("goldens/whisper-multilingual/checkpoint")


class TestOpenAIFormat(FormatSuite):
    component = "openai-whisper"

    @pytest.fixture
    def checkpoint(self, tmp_path: Path) -> Path:
        pytest.importorskip("whisper", reason="a .pt has no tokenizer of its own: pip install openai-whisper")
        path = tmp_path / "original" / "tiny.pt"
        path.parent.mkdir()
        dims = {"n_audio_ctx": 1500, "n_vocab": 51865}
        torch.save({"dims": dims, "model_state_dict": {"w": torch.randn(60, 50), "b": torch.zeros(60)}}, path)
        return path
