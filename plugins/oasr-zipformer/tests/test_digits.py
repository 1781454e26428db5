"""Trained models read spoken digits as they do in icefall: as one batch, live, and with the attention of chunks."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from oasr.audio import Audio, read_audio
from oasr.checkpoint.sniff import open_checkpoint
from oasr.engine import ASREngine, EngineConfig
from oasr.interfaces.frontend import FeatureBatch
from oasr.plugin import Kind
from oasr.registry import default_registry
from oasr.types import LiveOptions

OFFLINE = "models/icefall-zipformer-digits"
STREAMING = "models/icefall-zipformer-streaming-digits"
CHUNKS = [(16, 64), (32, 128)]
"""Chunk sizes and left contexts in frames of 20 ms, two of which are an encoder frame."""
SILENCE = -23.025850929940457
PADDING = 30
"""Frames of silence that icefall appends for causal models."""


@pytest.fixture(scope="module")
def recordings(shared: Callable[[str], Path]) -> dict[str, Audio]:
    """By name; two of them are long."""
    paths = sorted(shared("models/digits-audio").glob("*.flac"))
    return {path.name: read_audio(path, target_rate=16_000) for path in paths}


@pytest.fixture(scope="module")
def live_engine(shared: Callable[[str], Path], device: str) -> ASREngine:
    return ASREngine(EngineConfig(model=shared(STREAMING) / "checkpoint", device=device, dtype="float32"))


def expected(folder: Path, key: str) -> dict[str, str]:
    files = json.loads((folder / "expected.json").read_text())["digits_audio"]["files"]
    return {each["path"]: each[key] for each in files}


def limited(chunk: tuple[int, int]) -> str:
    """The key of texts read with the attention of chunks."""
    return f"ctc_greedy_masked_chunk{chunk[0]}_left{chunk[1]}_with_{PADDING}_padding_frames"


@pytest.mark.parametrize("name", [OFFLINE, STREAMING])
def test_as_batches(shared: Callable[[str], Path], recordings: dict[str, Audio], device: str, name: str) -> None:
    with ASREngine(EngineConfig(model=shared(name) / "checkpoint", device=device, dtype="float32")) as engine:
        transcripts = engine.transcribe(list(recordings.values()))
    found = dict(zip(recordings, (transcript.text for transcript in transcripts), strict=True))
    assert found == expected(shared(name), "ctc_greedy")


@pytest.mark.parametrize("chunk", CHUNKS)
def test_live(
    shared: Callable[[str], Path], recordings: dict[str, Audio], live_engine: ASREngine, chunk: tuple[int, int]
) -> None:
    """Pushed in pieces of any length, and without endpoints, which the recorded texts have not."""
    chance = random.Random(0)
    live = LiveOptions(chunk[0] / 50, chunk[1] / 50, endpoint_silence=math.inf, longest_segment=math.inf)
    found = {}
    for name, audio in recordings.items():
        with live_engine.stream(live=live) as session:
            left = audio.samples
            while len(left):
                piece, left = left.tensor_split([chance.randrange(100, 8000)])
                session.push(piece)
        found[name] = session.transcript.text
    assert found == expected(shared(STREAMING), limited(chunk))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_with_the_attention_of_chunks(
    read_recorded: Callable[[str, str], Any], recordings: dict[str, Audio], device: str, chunk: tuple[int, int]
) -> None:
    recorded = read_recorded(STREAMING, device)
    encoder, head = recorded.model.streaming(chunk[0] // 2, chunk[1] // 2), recorded.model.head("ctc")
    facts = recorded.model.facts
    registry = default_registry()
    frontend = registry.create(Kind.FRONTEND, facts.frontend, facts.frontend_options).to(device)
    files = open_checkpoint(recorded.folder / "checkpoint", registry).files
    tokenizer = registry.construct(Kind.TOKENIZER, facts.tokenizer, files)
    found = {}
    for name, audio in recordings.items():
        samples = audio.samples.to(device)
        features = frontend.extract(samples[None], torch.tensor([len(samples)], device=device))
        padded = FeatureBatch(F.pad(features.frames, (0, 0, 0, PADDING), value=SILENCE), features.lengths + PADDING)
        best = head.log_probs(encoder.encode_whole(padded).frames)[0].argmax(dim=-1).unique_consecutive()
        found[name] = tokenizer.decode([token for token in best.tolist() if token != head.blank])
    assert found == expected(recorded.folder, limited(chunk))
