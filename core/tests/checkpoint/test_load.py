"""A module is filled completely and strictly, or the checkpoint is refused with everything that does not fit."""

import logging
from collections.abc import Callable

import pytest
import torch

from oasr.checkpoint.load import load
from oasr.errors import CheckpointError
from oasr.registry import Registry


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is logged while loading."""
    caplog.set_level(logging.DEBUG, "oasr")
    return caplog


def test_parts_become_one_tensor_and_the_part_left_out_is_zero(
    toy: Callable, toy_tensors: dict, registry: Registry, log: pytest.LogCaptureFixture
) -> None:
    model = load(toy(), registry, torch.float32, "cpu")

    assert torch.equal(model.fused.weight, torch.cat([toy_tensors["left.weight"], toy_tensors["right.weight"]]))
    assert torch.equal(model.fused.bias, torch.cat([toy_tensors["left.bias"], torch.zeros(2)]))
    assert log.messages == ["memory: 1 missing and zero: fused.bias"]


def test_a_parameter_shared_by_two_modules_stays_shared(toy: Callable, toy_tensors: dict, registry: Registry) -> None:
    model = load(toy(), registry, torch.float32, "cpu")

    assert model.again.weight is model.out.weight
    assert torch.equal(model.out.weight, toy_tensors["out.weight"])


def test_the_number_type_asked_for_holds_for_floating_point_only(
    toy: Callable, registry: Registry, log: pytest.LogCaptureFixture
) -> None:
    model = load(toy(), registry, torch.bfloat16, "cpu")

    assert {model.fused.weight.dtype, model.out.weight.dtype} == {torch.bfloat16}
    assert model.counts.tolist() == [1, 2, 3]
    assert "4 converted to torch.bfloat16: left.weight, left.bias, right.weight, out.weight" in log.text


def test_the_module_is_ready_for_inference(toy: Callable, registry: Registry) -> None:
    model = load(toy(), registry, torch.float32, "cpu")

    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_the_loaded_weights_do_not_share_memory_with_the_checkpoint(
    toy: Callable, toy_tensors: dict, registry: Registry
) -> None:
    model = load(toy(), registry, torch.float32, "cpu")
    toy_tensors["out.weight"].zero_()

    assert model.out.weight.abs().sum() > 0


def test_tensors_the_rules_know_and_do_not_need_are_reported(
    toy: Callable, registry: Registry, log: pytest.LogCaptureFixture
) -> None:
    load(toy(spare__weight=torch.ones(4)), registry, torch.float32, "cpu")

    assert "1 unexpected and not needed: spare.weight" in log.text


def test_a_stored_part_wins_over_the_zero(
    toy: Callable, toy_tensors: dict, registry: Registry, log: pytest.LogCaptureFixture
) -> None:
    state = {"fused.weight": torch.ones(4, 2), "fused.bias": torch.full((4,), 3.0)}
    own = toy(
        "oasr",
        left__weight=None,
        left__bias=None,
        right__weight=None,
        **{k.replace(".", "__"): v for k, v in state.items()},
    )
    own.config = {"width": 2}
    model = load(own, registry, torch.float32, "cpu")

    assert model.fused.bias.tolist() == [3.0] * 4
    assert log.messages == []


def test_everything_that_does_not_fit_is_listed_at_once(toy: Callable, registry: Registry) -> None:
    checkpoint = toy(
        out__weight=None, right__weight=torch.ones(3, 2), stranger=torch.ones(1), left__extra=torch.ones(1)
    )
    with pytest.raises(CheckpointError) as caught:
        load(checkpoint, registry, torch.float32, "cpu")

    message = str(caught.value)
    assert "1 missing: out.weight" in message
    assert "2 unexpected: stranger, left.extra" in message
    assert "1 of another shape: right.weight is 3x2 where 2x2 is expected" in message


def test_a_long_list_is_cut_with_a_count(toy: Callable, registry: Registry) -> None:
    strangers = {f"stranger{number}": torch.ones(1) for number in range(50)}
    with pytest.raises(CheckpointError, match=r"50 unexpected: stranger0, .* and 44 more") as caught:
        load(toy(**strangers), registry, torch.float32, "cpu")

    assert "stranger49" not in str(caught.value)


@pytest.mark.parametrize("part", ["left__weight", "right__weight", "left__bias"])
def test_one_absent_part_of_a_joined_tensor_is_missing(part: str, toy: Callable, registry: Registry) -> None:
    with pytest.raises(CheckpointError, match="1 missing: fused"):
        load(toy(**{part: None}), registry, torch.float32, "cpu")


def test_packed_integers_are_not_taken_for_weights(toy: Callable, registry: Registry) -> None:
    packed = torch.ones(2, 2, dtype=torch.int8)
    with pytest.raises(CheckpointError, match=r"out\.weight is stored as torch\.int8"):
        load(toy(out__weight=packed), registry, torch.float32, "cpu")


def test_a_stored_configuration_that_does_not_fit_names_the_field(toy: Callable, registry: Registry) -> None:
    own = toy("oasr")
    own.config = {"width": 2, "depth": 3}
    with pytest.raises(CheckpointError, match="depth: Extra inputs"):
        load(own, registry, torch.float32, "cpu")


@pytest.mark.parametrize("config", [{}, {"size": "wide"}, {"size": None}])
def test_whatever_settings_make_an_architecture_raise_is_told_with_the_path(
    toy: Callable, registry: Registry, config: dict
) -> None:
    checkpoint = toy()
    checkpoint.config = config
    with pytest.raises(CheckpointError, match="memory does not hold the settings of toy as they should be"):
        load(checkpoint, registry, torch.float32, "cpu")
