"""The network keeps the laws of architectures."""

from collections.abc import Callable
from pathlib import Path

import pytest

from oasr.testing import ArchitectureSuite, PluginSuite


class TestPlugin(PluginSuite):
    plugin = "oasr_conformer.plugin"


class TestStreaming(ArchitectureSuite):
    component = "conformer"

    @pytest.fixture
    def checkpoint(self, shared: Callable[[str], Path]) -> Path:
        return shared("models/wenet-u2pp-digits/checkpoint")


class TestWhole(ArchitectureSuite):
    component = "conformer"

    @pytest.fixture
    def checkpoint(self, shared: Callable[[str], Path]) -> Path:
        return shared("goldens/wenet-old-style-batch-norm/checkpoint")
