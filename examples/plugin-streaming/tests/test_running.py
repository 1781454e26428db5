"""Chunks give what the whole gives, for many streams at once; and an engine reads files and live audio with it."""

import math
from pathlib import Path

import pytest
import torch

from oasr.audio import Audio
from oasr.checkpoint.convert import save_native
from oasr.engine import ASREngine, EngineConfig
from oasr.interfaces.frontend import FeatureBatch
from oasr.testing import ArchitectureSuite, PluginSuite
from oasr.testing.streams import StreamRows, new_stream
from oasr.testing.weights import randomize
from oasr.types import LiveOptions

pytest.importorskip("acme_oasr_running", reason="pip install ./examples/plugin-streaming")

from acme_oasr_running.config import RunningConfig
from acme_oasr_running.model import Running

RATE = 16_000
CHUNK = 8


@pytest.fixture(scope="module")
def network() -> Running:
    running = Running(RunningConfig())
    randomize(running)
    return running


@pytest.fixture(scope="module")
def written(network: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of random weights."""
    folder = tmp_path_factory.mktemp("running")
    letters = [chr(ord("A") + index) for index in range(14)]
    pieces = ["<blk>", *(f"▁{letter}" for letter in letters), *(letter.lower() for letter in letters)]
    symbols = folder / "tokens.txt"
    symbols.write_text("".join(f"{piece} {index}\n" for index, piece in enumerate(pieces)), encoding="utf-8")
    return save_native(
        folder / "model",
        architecture="acme-running",
        config=network.config,
        state={name: tensor.detach() for name, tensor in network.state_dict().items()},
        files={"symbols": symbols},
        generation={},
    )


class TestPlugin(PluginSuite):
    plugin = "acme_oasr_running.plugin"


class TestRunning(ArchitectureSuite):
    component = "acme-running"

    @pytest.fixture
    def checkpoint(self, written: Path) -> Path:
        return written


@torch.inference_mode()
def test_streams_of_different_ages_share_a_batch(network: Running) -> None:
    """One stream begins two chunks before the other."""
    encoder = network.streaming(CHUNK, None)
    hop = encoder.shape.hop
    features = torch.randn(2, 6 * hop, network.config.mel_bins, generator=torch.Generator().manual_seed(0))
    streams = [new_stream(encoder.layout) for _ in features]
    heard: list[list[torch.Tensor]] = [[], []]
    for step in range(8):
        chunks = {
            row: features[row, start : start + hop]
            for row, late in enumerate((0, 2))
            if 0 <= (start := (step - late) * hop) < features.shape[1]
        }
        batch = FeatureBatch(torch.stack(list(chunks.values())), torch.full((len(chunks),), hop))
        encoded = encoder.encode_chunk(batch, StreamRows([streams[row] for row in chunks]))
        for row, frames in zip(chunks, encoded.frames, strict=True):
            heard[row].append(frames)
            streams[row].age += len(frames)
    whole = encoder.encode_whole(FeatureBatch(features, torch.full((2,), features.shape[1])))
    for row, frames in enumerate(heard):
        torch.testing.assert_close(torch.cat(frames), whole.frames[row], rtol=0, atol=1e-5)


def test_an_engine_reads_live_audio_as_it_reads_files(written: Path) -> None:
    endless = LiveOptions(endpoint_silence=math.inf, longest_segment=math.inf)
    samples = 0.2 * torch.randn(2 * RATE, generator=torch.Generator().manual_seed(0))
    with ASREngine(EngineConfig(model=str(written), device="cpu")) as engine:
        with engine.stream(live=endless) as session:
            for piece in samples.split(RATE // 10):
                session.push(piece)
        assert session.transcript.text
        assert session.transcript.text == engine.transcribe(Audio(samples, RATE, "noise")).text
