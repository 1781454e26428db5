"""Checkpoints with recorded values, and random networks of any configuration."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from safetensors.torch import load_file

from oasr.audio import read_audio
from oasr.checkpoint.load import load
from oasr.checkpoint.sniff import open_checkpoint
from oasr.interfaces.frontend import FeatureBatch
from oasr.registry import default_registry
from oasr.testing.weights import randomize
from oasr_zipformer.config import StackConfig, ZipformerConfig
from oasr_zipformer.model import Zipformer


@pytest.fixture(autouse=True)
def _exact() -> Iterator[None]:
    """No gradients, and no convolutions rounded to TF32, as in the engine."""
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


@dataclass(frozen=True)
class Recorded:
    """A checkpoint and what icefall computed from it in float32."""

    folder: Path
    model: Zipformer
    values: dict[str, Any]
    tensors: dict[str, torch.Tensor]

    def features(self, clip: int) -> FeatureBatch:
        """Of one clip: as recorded, or else by the library that made those."""
        told = self.values["clips"][clip]
        frames = self.tensors.get(f"{told['clip']}.features")
        if frames is None:
            audio = read_audio(self.folder / told["path_relative_to_this_file"], target_rate=16_000)
            frames = kaldi_features(audio.samples).to(self.model.device)
        assert len(frames) == told["num_feature_frames"]
        return batch([frames])


def kaldi_features(samples: torch.Tensor) -> torch.Tensor:
    """(time, bins), with the options of icefall's pretrained.py."""
    kaldi = pytest.importorskip("kaldi_native_fbank", reason="features of most clips: pip install kaldi-native-fbank")
    options = kaldi.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.snip_edges = False
    options.mel_opts.num_bins = 80
    options.mel_opts.high_freq = -400
    fbank = kaldi.OnlineFbank(options)
    fbank.accept_waveform(16_000, samples.numpy())
    fbank.input_finished()
    return torch.from_numpy(numpy.stack([fbank.get_frame(index) for index in range(fbank.num_frames_ready)]))


@pytest.fixture(scope="session")
def read_recorded(shared: Callable[[str], Path]) -> Callable[[str, str], Recorded]:
    """Read a folder of recorded values onto a device."""

    @cache
    def read(name: str, device: str) -> Recorded:
        folder = shared(name)
        registry = default_registry()
        model = load(open_checkpoint(folder / "checkpoint", registry), registry, torch.float32, device)
        values = json.loads((folder / "expected.json").read_text())
        return Recorded(folder, model, values, load_file(folder / "expected.safetensors", device))

    return read


@pytest.fixture(scope="session")
def random_model(device: str) -> Callable[[bool], Zipformer]:
    """A network of random weights, causal or not, that reacts to everything it hears."""

    @cache
    def make(causal: bool) -> Zipformer:
        with torch.inference_mode():
            model = Zipformer(small_config(causal))
            randomize(model)
            return model.eval().to(device)

    return make


def small_config(causal: bool) -> ZipformerConfig:
    sizes = {"layers": 1, "heads": 2, "query_size": 8, "value_size": 4, "position_size": 4, "feed_forward": 32}
    stacks = [(1, 16, 15), (2, 24, 9), (4, 32, 7), (8, 24, 5), (2, 20, 9)]
    return ZipformerConfig(
        mel_bins=80,
        stacks=tuple(
            StackConfig(downsampling=factor, width=width, kernel=kernel, **sizes) for factor, width, kernel in stacks
        ),
        position_width=48,
        output_downsampling=2,
        vocabulary_size=20,
        blank=0,
        ctc=True,
        transducer=None,
        causal=causal,
        chunks=(8, 16),
        left_contexts=(16, 32),
        tokenizer="symbols",
    )


def batch(rows: list[torch.Tensor], padding: float = 0.0) -> FeatureBatch:
    """Features (time, bins) of several rows, padded with anything."""
    frames = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=padding)
    return FeatureBatch(frames, torch.tensor([len(row) for row in rows], device=frames.device))


@pytest.fixture(scope="session")
def make_batch() -> Callable[..., FeatureBatch]:
    return batch


@pytest.fixture(scope="session")
def noise(device: str) -> Callable[[int, int], torch.Tensor]:
    """Features of so many frames, different for each seed."""

    def make(frames: int, seed: int = 0) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return (3.0 * torch.randn(frames, 80, generator=generator) - 8.0).to(device)

    return make
