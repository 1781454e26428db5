"""The format keeps the laws of formats: releases, training checkpoints, averages."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from oasr.testing import FormatSuite, PluginSuite


class TestPlugin(PluginSuite):
    plugin = "oasr_format_wenet.plugin"


class TestRelease(FormatSuite):
    component = "wenet"

    @pytest.fixture
    def checkpoint(self, release: Callable[..., Path]) -> Path:
        return release()


class TestStatisticsInAFile(FormatSuite):
    component = "wenet"

    @pytest.fixture
    def checkpoint(self, release: Callable[..., Path], weights: dict[str, torch.Tensor]) -> Path:
        folder = release()
        bare = {name: tensor for name, tensor in weights.items() if "cmvn" not in name}
        torch.save(bare, folder / "final.pt")
        return folder


class TestTrainingCheckpoint(FormatSuite):
    component = "wenet"

    @pytest.fixture
    def checkpoint(self, release: Callable[..., Path], weights: dict[str, torch.Tensor]) -> Path:
        path = release() / "epoch_3.pt"
        torch.save({f"module.{name}": tensor for name, tensor in weights.items()}, path)
        return path


class TestAverage(FormatSuite):
    component = "wenet"

    @pytest.fixture
    def checkpoint(self, release: Callable[..., Path], weights: dict[str, torch.Tensor]) -> Path:
        folder = release()
        torch.save({**weights, "encoder.after_norm.weight": torch.zeros(8000)}, folder / "epoch_1.pt")
        (folder / "wenet.json").write_text('{"average": ["epoch_1.pt", "final.pt"]}')
        return folder
