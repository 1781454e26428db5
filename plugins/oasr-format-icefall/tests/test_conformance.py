"""The format keeps the laws of formats, for releases, flat folders and single files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from oasr.testing import FormatSuite, PluginSuite


class TestPlugin(PluginSuite):
    plugin = "oasr_format_icefall.plugin"


class TestRelease(FormatSuite):
    component = "icefall"

    @pytest.fixture
    def checkpoint(self, release: Path, save: Callable[..., Path]) -> Path:
        save(release / "exp" / "pretrained.pt")
        return release


class TestAverage(FormatSuite):
    component = "icefall"

    @pytest.fixture
    def checkpoint(self, release: Path, save_epoch: Callable[..., Path]) -> Path:
        save_epoch(release / "exp" / "epoch-1.pt", 1.0, 1.0, 10, exp_dir=Path("exp"))
        save_epoch(release / "exp" / "epoch-2.pt", 2.0, 1.5, 20, exp_dir=Path("exp"), notes="x" * 10_000)
        (release / "exp" / "icefall.json").write_text('{"epoch": 2}')
        return release


class TestFile(FormatSuite):
    component = "icefall"

    @pytest.fixture
    def checkpoint(self, release: Path, save: Callable[..., Path]) -> Path:
        path = save(release / "pretrained.pt")
        (release / "data" / "lang_bpe_4" / "tokens.txt").rename(release / "tokens.txt")
        return path
