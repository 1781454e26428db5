"""Kaldi's filter banks are those of kaldi-native-fbank, torchaudio and the toolkits' recorded features."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from torch.nn.utils.rnn import pad_sequence
from torchaudio.compliance import kaldi

from oasr.audio.read import read_audio
from oasr.features.config import KaldiFbankConfig
from oasr.features.kaldi_fbank import KaldiFbank

RATE = 16_000
LENGTHS = [0, 1, 8, 79, 80, 144, 159, 160, 399, 400, 401, 5000, 16_000]
WINDOWS = ["povey", "hamming", "hanning", "rectangular", "blackman"]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"snip_edges": False, "high_freq": -400.0},
    {"waveform_scale": 32768.0},
    {"mel_bins": 40, "low_freq": 60.0, "high_freq": 7000.0},
    {"preemphasis": 0.0, "remove_dc_offset": False},
    {"frame_length_ms": 32.0, "frame_shift_ms": 12.5, "snip_edges": False},
    {"sample_rate": 8000},
]
RECORDED = [
    "models/icefall-zipformer-digits",
    "models/icefall-zipformer-streaming-digits",
    "models/wenet-u2pp-digits",
    "goldens/zipformer-ctc-only",
    "goldens/zipformer-six-stacks",
    "goldens/zipformer-six-stacks-causal",
    "goldens/wenet-conv2d6",
    "goldens/wenet-old-style-batch-norm",
]


def noise(samples: int, seed: int = 0) -> torch.Tensor:
    return 0.1 + 0.3 * torch.randn(samples, generator=torch.Generator().manual_seed(seed))


def features(waveform: torch.Tensor, **options: Any) -> torch.Tensor:
    batch = KaldiFbank(KaldiFbankConfig(**options)).extract(waveform[None], torch.tensor([len(waveform)]))
    assert batch.lengths.tolist() == [batch.frames.shape[1]]
    return batch.frames[0]


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Within 1e-4, but for one band in a thousand that is so quiet that float32 transforms round it differently."""
    assert actual.shape == expected.shape
    error = (actual - expected).abs()
    assert int((error > 1e-4).sum()) <= 1e-3 * error.numel()
    assert float(error.amax() if error.numel() else 0) < 1e-3


def by_torchaudio(waveform: torch.Tensor, **options: Any) -> torch.Tensor:
    config = KaldiFbankConfig(**options)
    return kaldi.fbank(
        waveform[None] * config.waveform_scale,
        num_mel_bins=config.mel_bins,
        sample_frequency=config.sample_rate,
        frame_length=config.frame_length_ms,
        frame_shift=config.frame_shift_ms,
        window_type=config.window,
        snip_edges=config.snip_edges,
        low_freq=config.low_freq,
        high_freq=config.high_freq,
        preemphasis_coefficient=config.preemphasis,
        remove_dc_offset=config.remove_dc_offset,
        dither=0.0,
        energy_floor=0.0,
    )


def by_native_fbank(waveform: torch.Tensor, **options: Any) -> torch.Tensor:
    knf = pytest.importorskip("kaldi_native_fbank")
    config = KaldiFbankConfig(**options)
    wanted = knf.FbankOptions()
    wanted.mel_opts.num_bins = config.mel_bins
    wanted.mel_opts.low_freq = config.low_freq
    wanted.mel_opts.high_freq = config.high_freq
    wanted.frame_opts.samp_freq = config.sample_rate
    wanted.frame_opts.frame_length_ms = config.frame_length_ms
    wanted.frame_opts.frame_shift_ms = config.frame_shift_ms
    wanted.frame_opts.window_type = config.window
    wanted.frame_opts.snip_edges = config.snip_edges
    wanted.frame_opts.preemph_coeff = config.preemphasis
    wanted.frame_opts.remove_dc_offset = config.remove_dc_offset
    wanted.frame_opts.dither = 0.0
    computer = knf.OnlineFbank(wanted)
    computer.accept_waveform(config.sample_rate, (waveform * config.waveform_scale).tolist())
    computer.input_finished()
    frames = [torch.from_numpy(computer.get_frame(i).copy()) for i in range(computer.num_frames_ready)]
    return torch.stack(frames) if frames else torch.zeros(0, config.mel_bins)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("samples", [513, 5000, 16_000])
def test_frames_are_those_of_torchaudio(samples: int, options: dict[str, Any], window: str) -> None:
    options = options | {"window": window}
    assert_same(features(noise(samples), **options), by_torchaudio(noise(samples), **options))


@pytest.mark.oracle
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("samples", [401, 16_000])
def test_frames_are_those_of_kaldi_native_fbank(samples: int, options: dict[str, Any], window: str) -> None:
    options = options | {"window": window}
    assert_same(features(noise(samples), **options), by_native_fbank(noise(samples), **options))


@pytest.mark.oracle
@pytest.mark.parametrize("snip_edges", [True, False])
@pytest.mark.parametrize("samples", LENGTHS)
def test_short_audio_has_the_frames_of_kaldi_native_fbank(samples: int, snip_edges: bool) -> None:
    assert_same(features(noise(samples), snip_edges=snip_edges), by_native_fbank(noise(samples), snip_edges=snip_edges))


@pytest.mark.parametrize("folder", RECORDED)
def test_frames_are_those_that_the_toolkit_recorded(shared: Callable[[str], Path], folder: str) -> None:
    root = shared(folder)
    expected = json.loads((root / "expected.json").read_text())
    facts, clip = expected["feature_options"], expected["clips"][0]
    options = {"snip_edges": facts["snip_edges"], "high_freq": float(facts["high_freq_hz"])}
    if facts["waveform_range"].startswith("int16"):
        options["waveform_scale"] = 32768.0
    samples = read_audio(root / clip["path_relative_to_this_file"], target_rate=RATE).samples
    recorded = load_file(root / "expected.safetensors")[expected["features_tensor"]]
    assert_same(features(samples, **options), recorded)


@pytest.mark.parametrize("samples", [*LENGTHS, 16_001, 48_123])
@pytest.mark.parametrize(("stack", "stride"), [(7, 6), (5, 1), (4, 3), (1, 2), (2, 5)])
def test_stacks_repeat_the_first_and_the_last_frame(samples: int, stack: int, stride: int) -> None:
    single = list(features(noise(samples)))
    left = (stack - 1) // 2
    padded = [*single[:1] * left, *single, *single[-1:] * stack * stride]
    rows = [torch.cat(padded[start : start + stack]) for start in range(0, len(single), stride)]
    stacked = features(noise(samples), lfr_stack=stack, lfr_stride=stride)
    expected = torch.stack(rows) if rows else torch.zeros(0, 80 * stack)
    torch.testing.assert_close(stacked, expected, atol=1e-5, rtol=0)


def test_normalisation_comes_after_stacking() -> None:
    shift = torch.linspace(-12, -3, 240)
    scale = torch.linspace(0.1, 0.4, 240)
    plain = features(noise(9000), lfr_stack=3, lfr_stride=2)
    normalised = features(noise(9000), lfr_stack=3, lfr_stride=2, cmvn_shift=shift.tolist(), cmvn_scale=scale.tolist())
    torch.testing.assert_close(normalised, (plain + shift) * scale)


@pytest.mark.parametrize("snip_edges", [True, False])
def test_rows_of_a_batch_are_as_they_are_alone(snip_edges: bool) -> None:
    frontend = KaldiFbank(KaldiFbankConfig(snip_edges=snip_edges))
    waveforms = [noise(samples, seed) for seed, samples in enumerate(LENGTHS)]
    together = frontend.extract(pad_sequence(waveforms, batch_first=True), torch.tensor(LENGTHS))
    for row, waveform in enumerate(waveforms):
        alone = features(waveform, snip_edges=snip_edges)
        assert int(together.lengths[row]) == len(alone)
        torch.testing.assert_close(alone, together.frames[row, : len(alone)], atol=1e-5, rtol=0)


def test_more_frames_than_are_computed_at_once_are_the_same_frames() -> None:
    long = noise(RATE * 200)
    assert_same(features(long), by_torchaudio(long))


def test_what_streams_hold_does_not_grow() -> None:
    frontend = KaldiFbank(KaldiFbankConfig(snip_edges=False, lfr_stack=7, lfr_stride=6))
    stream = frontend.stream()
    for seed in range(50):
        frontend.advance([stream], [noise(1234, seed)], [False])
    assert len(stream.samples) < 1000
    assert len(stream.bands) < 10


@pytest.mark.parametrize(
    "options",
    [
        {"high_freq": 9000.0},
        {"low_freq": 7700.0, "high_freq": -400.0},
        {"cmvn_shift": [1.0]},
        {"cmvn_shift": [1.0] * 80, "cmvn_scale": [1.0] * 40},
        {"window": "gauss"},
        {"frame_shift_ms": 0.01},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        KaldiFbankConfig(**options)
