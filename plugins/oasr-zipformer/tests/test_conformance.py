"""The network keeps the laws of architectures."""

from collections.abc import Callable
from pathlib import Path

import pytest

from oasr.testing import ArchitectureSuite, PluginSuite


class TestPlugin(PluginSuite):
    plugin = "oasr_zipformer.plugin"


class TestZipformer(ArchitectureSuite):
    component = "zipformer"

    @pytest.fixture
    def checkpoint(self, shared: Callable[[str], Path]) -> Path:
        return shared("goldens/zipformer-six-stacks/checkpoint")


class TestCausalZipformer(ArchitectureSuite):
    component = "zipformer"

    @pytest.fixture
    def checkpoint(self, shared: Callable[[str], Path]) -> Path:
        return shared("goldens/zipformer-six-stacks-causal/checkpoint")
