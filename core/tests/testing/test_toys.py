"""Core's own components and the toys pass the kit that plugins are held to."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from oasr.builtin import plugin as builtin
from oasr.registry import Registry
from oasr.testing import (
    ArchitectureSuite,
    BatchingSuite,
    DecoderSuite,
    FormatSuite,
    FrontendSuite,
    PluginSuite,
    TokenizerSuite,
    sealed_registry,
)
from oasr.testing.toys.checkpoint import write_tokenizer, write_toy
from oasr.testing.toys.config import ToyConfig

_REGISTRY = sealed_registry()


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy(tmp_path_factory.mktemp("toys") / "toy")


@pytest.fixture(scope="module")
def monolingual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy(tmp_path_factory.mktemp("toys") / "monolingual", ToyConfig(languages=()), seed=1)


class Sealed:
    @pytest.fixture
    def registry(self) -> Registry:
        return _REGISTRY


class TestBuiltins(PluginSuite):
    plugin = builtin.__name__

    @pytest.fixture
    def registry(self) -> Registry:
        return Registry.from_modules()


class TestToyArchitecture(Sealed, ArchitectureSuite):
    component = "toy"

    @pytest.fixture
    def checkpoint(self, toy: Path) -> Path:
        return toy


class TestMonolingualToy(TestToyArchitecture):
    @pytest.fixture
    def checkpoint(self, monolingual: Path) -> Path:
        return monolingual


class TestToyFrontend(Sealed, FrontendSuite):
    component = "toy-blocks"


class TestToyDecoder(Sealed, DecoderSuite):
    component = "toy-greedy"


class TestLogMel(Sealed, FrontendSuite):
    component = "log-mel"
    options: ClassVar = {"window_seconds": 1.0}


class TestHuggingFaceTokenizer(Sealed, TokenizerSuite):
    component = "huggingface"

    @pytest.fixture
    def files(self, toy: Path) -> Mapping[str, Path]:
        return {"tokenizer": write_tokenizer(toy.parent / "tokenizer.json")}


class TestNativeFormat(Sealed, FormatSuite):
    component = "oasr"

    @pytest.fixture
    def checkpoint(self, toy: Path) -> Path:
        return toy


class TestBucketed(Sealed, BatchingSuite):
    component = "bucketed"
