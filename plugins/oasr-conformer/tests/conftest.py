"""Recorded values of WeNet, and the networks they were computed with."""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.utils.rnn import pad_sequence

from oasr.audio import read_audio
from oasr.checkpoint.load import load
from oasr.checkpoint.sniff import open_checkpoint
from oasr.interfaces.architecture import Architecture
from oasr.interfaces.frontend import FeatureBatch
from oasr.plugin import Kind
from oasr.registry import default_registry

GOLDENS = [
    "goldens/wenet-conv2d6",
    "goldens/wenet-conv2d8",
    "goldens/wenet-old-style-batch-norm",
    "goldens/wenet-transformer-decoder",
    "models/wenet-u2pp-digits",
]


class Recorded(NamedTuple):
    model: Architecture
    features: list[torch.Tensor]
    """(time, bins) of each clip."""
    values: dict[str, Any]
    tensors: dict[str, torch.Tensor]


@pytest.fixture(scope="session", params=GOLDENS, ids=lambda name: name.rpartition("/")[2])
def recorded(request: pytest.FixtureRequest, shared: Callable[[str], Path], device: str) -> Recorded:
    return _recorded(shared(request.param), device)


@lru_cache
def _recorded(folder: Path, device: str) -> Recorded:
    registry = default_registry()
    model = load(open_checkpoint(folder / "checkpoint", registry), registry, torch.float32, device)
    values = json.loads((folder / "expected.json").read_text())
    tensors = load_file(folder / "expected.safetensors", device)
    frontend = registry.create(Kind.FRONTEND, model.facts.frontend, model.facts.frontend_options).to(device)
    features = []
    for clip in values["clips"]:
        samples = read_audio(folder / clip["path_relative_to_this_file"], target_rate=16_000).samples.to(device)
        features.append(frontend.extract(samples[None], torch.tensor([len(samples)], device=device)).frames[0])
    return Recorded(model, features, values, tensors)


@pytest.fixture(scope="session")
def batch() -> Callable[[Sequence[torch.Tensor]], FeatureBatch]:
    """Features of several clips as a right-padded batch."""

    def pad(rows: Sequence[torch.Tensor]) -> FeatureBatch:
        lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
        return FeatureBatch(pad_sequence(list(rows), batch_first=True), lengths)

    return pad
