"""The toys pass the kit that plugins are held to."""

from pathlib import Path

import pytest

from oasr.registry import Registry
from oasr.testing import ArchitectureSuite, DecoderSuite, FrontendSuite, sealed_registry
from oasr.testing.toys.checkpoint import write_toy
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
