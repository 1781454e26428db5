"""Run by `test_mutants.py` in a process of its own; pytest does not collect a file of this name by itself."""

import json
from pathlib import Path

import pytest

from mutants import plugin
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

_REGISTRY = sealed_registry(plugin)


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    return write_toy(tmp_path_factory.mktemp("toys") / "toy")


class Sealed:
    @pytest.fixture
    def registry(self):
        return _REGISTRY


class TestPlugin(PluginSuite):
    plugin = "mutants.plugin"


class TestNeighbourly(Sealed, DecoderSuite):
    component = "neighbourly"


class TestInPlace(Sealed, DecoderSuite):
    component = "inplace"


class TestSharedDice(Sealed, DecoderSuite):
    component = "shareddice"


class TestAmnesiac(Sealed, DecoderSuite):
    component = "amnesiac"


class TestHearsPadding(Sealed, DecoderSuite):
    component = "hearspadding"


class TestNewestFirst(Sealed, BatchingSuite):
    component = "newestfirst"


class TestTooMany(Sealed, BatchingSuite):
    component = "toomany"


class TestIdle(Sealed, BatchingSuite):
    component = "idle"


class TestLoudestOfAll(Sealed, FrontendSuite):
    component = "loudestofall"


class TestForgetful(Sealed, FrontendSuite):
    component = "forgetful"


class TestHasty(Sealed, TokenizerSuite):
    component = "hasty"

    @pytest.fixture
    def files(self, tmp_path):
        return {"tokenizer": write_tokenizer(tmp_path / "toy-tokenizer.json")}


class TestCareless(Sealed, FormatSuite):
    component = "careless"

    @pytest.fixture
    def checkpoint(self, toy):
        return toy


class _Mutant(Sealed, ArchitectureSuite):
    @pytest.fixture
    def checkpoint(self, toy, tmp_path) -> Path:
        folder = tmp_path / "mutant"
        folder.mkdir()
        for file in toy.iterdir():
            (folder / file.name).symlink_to(file)
        description = json.loads((toy / "oasr.json").read_text()) | {"architecture": self.component}
        (folder / "oasr.json").unlink()
        (folder / "oasr.json").write_text(json.dumps(description))
        return folder


class TestPaddingMatters(_Mutant):
    component = "paddingmatters"


class TestNeighboursMatter(_Mutant):
    component = "neighboursmatter"


class TestForgetsItsCache(_Mutant):
    component = "forgetsitscache"


class TestDeafToHotwords(_Mutant):
    component = "deaftohotwords"


class TestKnown(Sealed, DecoderSuite):
    component = "inplace"
    expected_failures = {  # noqa: RUF012
        "test_it_leaves_logits_and_history_as_they_were": "known",
        "test_tokens_are_in_the_vocabulary": "passes after all",
    }
