"""Trained models read spoken digits as they do in icefall: our features, our tokens, the likeliest path."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from oasr.audio import read_audio
from oasr.checkpoint.sniff import open_checkpoint
from oasr.interfaces.frontend import FeatureBatch
from oasr.plugin import Kind
from oasr.registry import default_registry

OFFLINE = "models/icefall-zipformer-digits"
STREAMING = "models/icefall-zipformer-streaming-digits"
SILENCE = -23.025850929940457
PADDING = 30
"""Frames of silence that icefall appends for causal models."""


@pytest.fixture
def features(shared: Callable[[str], Path], device: str) -> dict[str, torch.Tensor]:
    """Features (time, bins) of each file, by its name."""
    facts = {"mel_bins": 80, "high_freq": -400.0, "snip_edges": False}
    frontend = default_registry().create(Kind.FRONTEND, "kaldi-fbank", facts).to(device)
    found = {}
    for path in sorted(shared("models/digits-audio").glob("*.flac")):
        samples = read_audio(path, target_rate=16_000).samples.to(device)
        found[path.name] = frontend.extract(samples[None], torch.tensor([len(samples)], device=device)).frames[0]
    return found


def expected(recorded: Any, key: str) -> dict[str, str]:
    return {each["path"]: each[key] for each in recorded.values["digits_audio"]["files"]}


def text(recorded: Any, encoded: torch.Tensor) -> str:
    """What the likeliest token of each frame spells."""
    head = recorded.model.head("ctc")
    tokens = head.log_probs(encoded[None])[0].argmax(dim=-1).unique_consecutive().tolist()
    files = open_checkpoint(recorded.folder / "checkpoint", default_registry()).files
    tokenizer = default_registry().construct(Kind.TOKENIZER, recorded.model.facts.tokenizer, files)
    return str(tokenizer.decode([token for token in tokens if token != head.blank]))


@pytest.mark.parametrize("name", [OFFLINE, STREAMING])
def test_whole_files(
    read_recorded: Callable[[str, str], Any], features: dict[str, torch.Tensor], device: str, name: str
) -> None:
    recorded = read_recorded(name, device)
    found = {}
    for file, frames in features.items():
        given = FeatureBatch(frames[None], torch.tensor([len(frames)], device=device))
        found[file] = text(recorded, recorded.model.encode(given).frames[0])
    assert found == expected(recorded, "ctc_greedy")


@pytest.mark.parametrize("chunk", [(16, 64), (32, 128)])
def test_with_the_attention_of_chunks(
    read_recorded: Callable[[str, str], Any], features: dict[str, torch.Tensor], device: str, chunk: tuple[int, int]
) -> None:
    recorded = read_recorded(STREAMING, device)
    encoder = recorded.model.streaming(chunk[0] // 2, chunk[1] // 2)
    found = {}
    for file, frames in features.items():
        padded = F.pad(frames, (0, 0, 0, PADDING), value=SILENCE)
        given = FeatureBatch(padded[None], torch.tensor([len(padded)], device=device))
        found[file] = text(recorded, encoder.encode_whole(given).frames[0])
    key = f"ctc_greedy_masked_chunk{chunk[0]}_left{chunk[1]}_with_30_padding_frames"
    assert found == expected(recorded, key)
