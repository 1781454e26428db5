"""Core's own components pass the kit that plugins are held to."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from oasr.builtin import plugin
from oasr.registry import Registry
from oasr.testing import BatchingSuite, FormatSuite, FrontendSuite, PluginSuite, TokenizerSuite
from oasr.testing.toys.checkpoint import write_tokenizer, write_toy

_REGISTRY = Registry.from_modules()


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy(tmp_path_factory.mktemp("toys") / "toy")


class Builtins:
    @pytest.fixture
    def registry(self) -> Registry:
        return _REGISTRY


class TestPlugin(Builtins, PluginSuite):
    plugin = plugin.__name__


class TestLogMel(Builtins, FrontendSuite):
    component = "log-mel"
    options: ClassVar = {"window_seconds": 1.0}


class TestKaldiFbank(Builtins, FrontendSuite):
    component = "kaldi-fbank"
    seconds = (0.03, 0.11, 0.5, 0.737, 1.0)


class TestKaldiFbankWithMirroredEdges(Builtins, FrontendSuite):
    component = "kaldi-fbank"
    options: ClassVar = {"snip_edges": False, "high_freq": -400.0}


class TestKaldiFbankOfLowFrameRate(Builtins, FrontendSuite):
    component = "kaldi-fbank"
    seconds = (0.03, 0.11, 0.5, 0.737, 1.0)
    options: ClassVar = {
        "window": "hamming",
        "waveform_scale": 32768.0,
        "lfr_stack": 7,
        "lfr_stride": 6,
        "cmvn_shift": [-10.0] * 560,
        "cmvn_scale": [0.2] * 560,
    }


class TestHuggingFaceTokenizer(Builtins, TokenizerSuite):
    component = "huggingface"

    @pytest.fixture
    def files(self, tmp_path: Path) -> Mapping[str, Path]:
        return {"tokenizer": write_tokenizer(tmp_path / "toy-tokenizer.json")}


class TestNativeFormat(Builtins, FormatSuite):
    component = "oasr"

    @pytest.fixture
    def checkpoint(self, toy: Path) -> Path:
        return toy


class TestBucketed(Builtins, BatchingSuite):
    component = "bucketed"
