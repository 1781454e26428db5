"""Int8 layers stay within the error that their scales imply, and rows never see one another."""

import pytest
import torch
from torch import nn

from oasr.nn import Embedding, Linear, to_int8
from oasr.nn.int8 import Int8Embedding, Int8Linear, quantize

SHAPES = [(1, 7, 5), (3, 64, 96), (300, 48, 33)]


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def linear(inputs: int, outputs: int, bias: bool = True) -> Linear:
    layer = Linear(inputs, outputs, bias).requires_grad_(False)
    layer.weight.copy_(random(outputs, inputs) * random(outputs, 1))
    if layer.bias is not None:
        layer.bias.copy_(random(outputs))
    return layer


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_is_off_by_no_more_than_half_a_step_of_each_input(rows, inputs, outputs, bias):
    layer = linear(inputs, outputs, bias)
    x = random(rows, inputs) * random(rows, 1)
    packed = Int8Linear(layer)
    weight = packed.weight.double() * packed.scale.double()[:, None]
    exact = x.double() @ weight.T + (layer.bias.double() if bias else 0)
    step = x.double().abs().amax(dim=1, keepdim=True) / 127
    bound = step / 2 * weight.abs().sum(dim=1)
    rounding = 1e-6 * (x.double().abs() @ weight.abs().T + 1)
    assert ((packed(x) - exact).abs() <= bound + rounding).all()


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_inputs_and_weights_on_the_grid_lose_nothing(rows, inputs, outputs):
    generator = torch.Generator().manual_seed(0)
    integers = torch.randint(-127, 128, (rows + outputs, inputs), generator=generator)
    integers[:, 0] = 127
    layer = linear(inputs, outputs)
    layer.weight.copy_(integers[rows:])
    expected = (integers[:rows] @ integers[rows:].T).float() + layer.bias
    assert torch.equal(Int8Linear(layer)(integers[:rows].float()), expected)


def test_weights_are_off_by_no_more_than_half_a_step():
    weight = random(96, 64) * random(96, 1)
    integers, scale = quantize(weight)
    assert integers.dtype == torch.int8
    assert ((integers * scale - weight).abs() <= scale * 0.5001).all()
    assert (integers.abs().amax(dim=1) == 127).all()


def test_a_row_gives_bit_for_bit_what_it_gives_alone():
    packed = Int8Linear(linear(64, 96))
    x = random(600, 64) * torch.logspace(-3, 3, 600)[:, None]
    together = packed(x)
    assert all(torch.equal(packed(x[row : row + 1])[0], together[row]) for row in (0, 1, 255, 256, 599))
    assert torch.equal(packed(x.view(2, 3, 100, 64)), together.view(2, 3, 100, 96))


def test_no_rows_and_rows_of_zeros():
    layer = linear(64, 96)
    assert Int8Linear(layer)(torch.zeros(2, 0, 64)).shape == (2, 0, 96)
    assert torch.equal(Int8Linear(layer)(torch.zeros(1, 64))[0], layer.bias)


@pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_stays_so_and_stays_in_its_row(poison):
    packed = Int8Linear(linear(64, 96))
    x = random(3, 64)
    sound = packed(x)
    x[1, 5] = poison
    poisoned = packed(x)
    assert not poisoned[1].isfinite().any()
    assert torch.equal(poisoned[[0, 2]], sound[[0, 2]])


def test_a_table_of_vectors_has_one_matrix_for_both_directions():
    table = Embedding(50, 16).requires_grad_(False)
    table.weight.copy_(random(50, 16))
    packed = Int8Embedding(table)
    vectors = packed(torch.arange(50))
    assert torch.equal(packed(torch.tensor([[3, 4], [5, 3]])), vectors[torch.tensor([[3, 4], [5, 3]])])
    assert ((vectors - table.weight).abs() <= packed.scale[:, None] * 0.5001).all()
    hidden = random(4, 16)
    bound = hidden.abs().amax(dim=1, keepdim=True) / 254 * vectors.abs().sum(dim=1)
    assert ((packed.project(hidden) - hidden @ vectors.T).abs() <= bound + 1e-4).all()
    assert torch.allclose(table.project(hidden), hidden @ table.weight.T, atol=1e-5)


def test_a_model_keeps_no_float_weights_of_its_layers():
    model = nn.ModuleDict(
        {"tokens": Embedding(50, 16), "blocks": nn.ModuleList(nn.Sequential(linear(16, 64), nn.GELU(), linear(64, 16)))}
    )
    model["norm"] = nn.LayerNorm(16)
    to_int8(model)
    floats = {name for name, tensor in model.state_dict().items() if tensor.dim() > 1 and tensor.is_floating_point()}
    assert floats == set()
    assert isinstance(model["norm"], nn.LayerNorm)
    assert sum(isinstance(layer, Int8Linear) for layer in model.modules()) == 2
