"""The number format that is asked for is the one that computes, or is refused."""

import pytest
import torch

from oasr.engine import device as devices
from oasr.engine.device import choose_device, multiplies_int8_exactly
from oasr.errors import DeviceError
from oasr.nn import Linear
from oasr.nn.int8 import Int8Linear

from .conftest import GERMAN, MakeEngine, speech


def test_int8_computes_with_int8_layers_and_says_so(make_engine: MakeEngine) -> None:
    engine = make_engine(device="cpu", dtype="int8")
    assert (engine.info.dtype, engine.info.device) == ("int8", "cpu")
    layers = [layer for layer in engine._runner.model.modules() if isinstance(layer, Linear | Int8Linear)]
    assert {type(layer) for layer in layers} == {Int8Linear}


def test_int8_reads_a_batch_as_one_by_one(make_engine: MakeEngine) -> None:
    inputs = [speech(seed, 0.2 + 0.1 * seed) for seed in range(5)]
    together = make_engine(rows=5, device="cpu", dtype="int8").transcribe(inputs, GERMAN)
    lonely = make_engine(rows=1, device="cpu", dtype="int8")
    assert all(transcript.text for transcript in together)
    assert [transcript.text for transcript in together] == [lonely.transcribe(each, GERMAN).text for each in inputs]


def test_int8_is_refused_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_problem", lambda device: None)
    with pytest.raises(DeviceError, match=r"cuda:0 was chosen\. Use --device cpu, or --dtype float16"):
        choose_device("cuda:0", "int8")


def test_a_cpu_that_saturates_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def saturating(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        pairs = a.int()[:, :, None] * b.int()[None]
        return pairs.unflatten(1, (-1, 2)).sum(dim=2).clamp(-(2**15), 2**15 - 1).sum(dim=1).int()

    assert multiplies_int8_exactly()  # if this fails, int8 cannot be used here, and the other tests of it mean nothing
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: saturating(a.int() + 128, b) - 128 * b.int().sum(dim=0))
    assert not multiplies_int8_exactly()
    with pytest.raises(DeviceError, match="does not multiply int8 exactly"):
        choose_device("cpu", "int8")
