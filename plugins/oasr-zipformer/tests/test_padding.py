"""A row of a padded batch is what it is alone, however short, and however long the others are."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.frontend import FeatureBatch
from oasr_zipformer.model import Zipformer

TOLERANCE = 1e-4
MANY = [500, 167, 9, 300, 8, 123, 124, 125, 126, 64, 31]

Encode = Callable[[FeatureBatch], EncoderOutput]
Model = Callable[[bool], Zipformer]
MakeBatch = Callable[..., FeatureBatch]
Noise = Callable[..., torch.Tensor]


@pytest.fixture(params=["not causal", "causal", "in chunks"])
def encode(request: pytest.FixtureRequest, random_model: Model) -> Encode:
    """Each way to encode whole inputs."""
    model = random_model(request.param != "not causal")
    return model.streaming(8, 16).encode_whole if request.param == "in chunks" else model.encode


def assert_rows_are_as_alone(encode: Encode, make_batch: MakeBatch, rows: list[torch.Tensor], padding: float) -> None:
    together = encode(make_batch(rows, padding))
    assert together.frames.isfinite().all()
    for row, features in enumerate(rows):
        alone = encode(make_batch([features]))
        length = int(alone.lengths)
        assert length == int(together.lengths[row])
        torch.testing.assert_close(together.frames[row, :length], alone.frames[0, :length], atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("padding", [0.0, -23.03, 1e4, torch.nan])
def test_random_weights(encode: Encode, make_batch: MakeBatch, noise: Noise, padding: float) -> None:
    assert_rows_are_as_alone(encode, make_batch, [noise(frames, frames) for frames in MANY], padding)


def test_lengths_do_not_depend_on_the_batch(encode: Encode, make_batch: MakeBatch, noise: Noise) -> None:
    """As in icefall: of T feature frames ((T - 7) // 2 + 1) // 2, where that is not negative."""
    lengths = encode(make_batch([noise(frames) for frames in MANY])).lengths
    assert lengths.tolist() == [max(0, ((frames - 7) // 2 + 1) // 2) for frames in MANY]
    assert lengths.dtype == torch.int64


def test_clips_of_up_to_300_ms(encode: Encode, make_batch: MakeBatch, noise: Noise) -> None:
    """Alone, in steps of a frame."""
    for frames in range(31):
        encoded = encode(make_batch([noise(frames)]))
        assert int(encoded.lengths) == max(0, ((frames - 7) // 2 + 1) // 2)
        assert int(encoded.lengths) <= encoded.frames.shape[1]
        assert encoded.frames.isfinite().all()


def test_clips_of_up_to_300_ms_beside_a_long_one(encode: Encode, make_batch: MakeBatch, noise: Noise) -> None:
    rows = [noise(1000, 1), *(noise(frames, frames) for frames in range(31))]
    assert_rows_are_as_alone(encode, make_batch, rows, 0.0)


def test_a_batch_of_clips_that_are_too_short(encode: Encode, make_batch: MakeBatch, noise: Noise) -> None:
    assert encode(make_batch([noise(3), noise(0), noise(8)])).lengths.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["models/icefall-zipformer-digits", "models/icefall-zipformer-streaming-digits"])
def test_trained_weights(read_recorded: Any, make_batch: MakeBatch, device: str, name: str) -> None:
    recorded = read_recorded(name, device)
    rows = [recorded.features(clip).frames[0] for clip in range(3)]
    assert_rows_are_as_alone(recorded.model.encode, make_batch, rows, -23.03)


@pytest.mark.parametrize("causal", [False, True])
def test_devices_agree(random_model: Model, make_batch: MakeBatch, noise: Noise, device: str, causal: bool) -> None:
    """Beyond the recorded values: a padded batch."""
    if device == "cpu":
        pytest.skip("compares other devices with the CPU")
    model = random_model(causal)
    features = make_batch([noise(frames, frames) for frames in MANY])
    on_device = model.encode(features)
    on_cpu = Zipformer(model.config).eval()
    on_cpu.load_state_dict({name: tensor.cpu() for name, tensor in model.state_dict().items()})
    expected = on_cpu.encode(FeatureBatch(features.frames.cpu(), features.lengths.cpu()))
    for row, length in enumerate(expected.lengths.tolist()):
        torch.testing.assert_close(
            on_device.frames[row, :length].cpu(), expected.frames[row, :length], atol=TOLERANCE, rtol=0
        )
