"""Core's own components pass the kit that plugins are held to."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from oasr.builtin import plugin
from oasr.registry import Registry
from oasr.testing import BatchingSuite, FormatSuite, FrontendSuite, PluginSuite, TokenizerSuite
from oasr.testing.toys.checkpoint import write_tokenizer, write_toy
from oasr.tokenizers.byte_map import spell

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


class TestSymbolTokenizer(Builtins, TokenizerSuite):
    component = "symbols"
    lossless = False
    samples = ("HELLO WORLD", "AÉ日", "日本", " A  日", "")

    @pytest.fixture
    def files(self, tmp_path: Path) -> Mapping[str, Path]:
        path = tmp_path / "tokens.txt"
        tokens = ["<blk>", "<unk>", *"▁HELOWRDA日本", "▁HE", "LL", "本日", *(f"<0x{byte:02X}>" for byte in range(256))]
        path.write_text("".join(f"{token} {i}\n" for i, token in enumerate(tokens)), encoding="utf-8")
        return {"symbols": path}


class TestSymbolTokenizerOfBytes(Builtins, TokenizerSuite):
    component = "symbols"
    lossless = False
    samples = ("你好 吗", "abc é", " c  你", "")

    @pytest.fixture
    def files(self, tmp_path: Path) -> Mapping[str, Path]:
        path = tmp_path / "tokens.txt"
        letters = sorted({letter for text in self.samples for letter in spell(text)} - {" "})
        tokens = ["<blk>", "▁", *letters, f"▁{spell('你')}", "▁ab"]
        path.write_text("".join(f"{token} {i}\n" for i, token in enumerate(tokens)), encoding="utf-8")
        return {"symbols": path}


class TestSentencePieceTokenizer(Builtins, TokenizerSuite):
    component = "sentencepiece"
    lossless = False
    samples = ("HELLO WORLD", "THE BROWN FOX'S", "  A  B ", "")

    @pytest.fixture
    def files(self, shared: Callable[[str], Path]) -> Mapping[str, Path]:
        pytest.importorskip("sentencepiece")
        return {"sentencepiece": shared("goldens/zipformer-ctc-only/checkpoint/data/lang_bpe_120/bpe.model")}


class TestNativeFormat(Builtins, FormatSuite):
    component = "oasr"

    @pytest.fixture
    def checkpoint(self, toy: Path) -> Path:
        return toy


class TestBucketed(Builtins, BatchingSuite):
    component = "bucketed"
