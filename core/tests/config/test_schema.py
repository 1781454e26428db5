"""What `EngineConfig` accepts, refuses and says."""

import copy
import pickle
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from oasr.config import EngineConfig
from oasr.errors import ConfigError, OasrError


def test_the_defaults():
    config = EngineConfig()
    assert (config.model, config.format, config.device, config.dtype, config.decoder) == (
        None,
        None,
        "auto",
        "auto",
        None,
    )
    assert config.batching.name == "bucketed"
    assert (config.audio.max_seconds, config.audio.max_bytes, config.audio.workers) == (86400, 2**32, 4)


@pytest.mark.parametrize("value", ["some/model", Path("some/model")])
@pytest.mark.parametrize("key", ["model", "ckpt_dir"])
def test_model_and_ckpt_dir_are_one_field(key, value):
    assert EngineConfig(**{key: value}) == EngineConfig(model="some/model")


def test_model_and_ckpt_dir_together_are_refused():
    with pytest.raises(ConfigError, match=r"^ckpt_dir: is another word for model"):
        EngineConfig(model="a", ckpt_dir="a")


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:0", "cuda:12"])
def test_devices(device):
    assert EngineConfig(device=device).device == device


@pytest.mark.parametrize("device", ["", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:0\n", "cuda:٣", "cpu:0"])
def test_other_devices_are_refused_with_the_ones_that_exist(device):
    with pytest.raises(ConfigError, match=r"(?s)^device: .* is not a device. Write auto, cpu, cuda or cuda:N"):
        EngineConfig(device=device)


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [("fp32", "float32"), ("float", "float32"), ("fp16", "float16"), ("half", "float16"), ("bf16", "bfloat16")],
)
def test_spellings_of_number_formats(spelling, dtype):
    assert EngineConfig(dtype=spelling).dtype == EngineConfig(dtype=dtype).dtype == dtype


def test_another_number_format_is_refused_with_the_ones_that_exist():
    with pytest.raises(ConfigError, match=r"^dtype: .*'auto', 'float32', 'float16', 'bfloat16' or 'int8', not 'int4'$"):
        EngineConfig(dtype="int4")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_seconds", 0),
        ("max_seconds", float("inf")),
        ("max_seconds", float("nan")),
        ("max_bytes", 0),
        ("workers", 0),
        ("workers", 1000),
        ("workers", "4"),
        ("workers", True),
    ],
)
def test_audio_limits_have_ranges(key, value):
    with pytest.raises(ConfigError, match=f"^audio.{key}: Input should be"):
        EngineConfig(audio={key: value})


@pytest.mark.parametrize("empty", ["", None])
def test_a_model_is_named_or_absent(empty):
    if empty is None:
        assert EngineConfig(model=None).model is None
    else:
        with pytest.raises(ConfigError, match=r"^model: "):
            EngineConfig(model=empty)


def test_a_format_is_an_installed_one():
    assert EngineConfig(format="toy-format").format == "toy-format"
    with pytest.raises(ConfigError, match=r'^format: No format named "toy". Installed: toy-format.'):
        EngineConfig(format="toy")


@pytest.mark.parametrize(("typo", "meant"), [("modle", "model"), ("Device", "device"), ("batchin", "batching")])
def test_an_unknown_key_brings_a_suggestion(typo, meant):
    with pytest.raises(ConfigError, match=f'^{typo}: unknown key. Did you mean "{meant}"'):
        EngineConfig(**{typo: "x"})


def test_an_unknown_key_unlike_any_other_brings_the_list():
    with pytest.raises(ConfigError, match=r"^zzz: unknown key. Keys are audio, batching, decoder, detector, "):
        EngineConfig(zzz=1)


def test_an_unknown_key_in_a_section_brings_a_suggestion():
    with pytest.raises(ConfigError, match=r'^audio.max_second: unknown key. Did you mean "max_seconds"'):
        EngineConfig(audio={"max_second": 3})


@pytest.mark.parametrize("fact", ["frontend", "tokenizer", "sample_rate", "vocabulary_size", "languages"])
def test_facts_of_the_checkpoint_are_refused_as_such(fact):
    with pytest.raises(ConfigError, match=f"^{fact}: is a fact of the checkpoint"):
        EngineConfig(**{fact: 1})


def test_all_faults_are_listed():
    with pytest.raises(ConfigError) as caught:
        EngineConfig(modle="x", device="gpu", batching={"max_rows": 0}, decoder="beem", audio={"workers": 0})
    header, *faults = str(caught.value).splitlines()
    assert header == "the configuration has 5 faults:"
    assert [fault.split(":")[0].strip() for fault in faults] == [
        "device",
        "decoder",
        "batching.max_rows",
        "audio.workers",
        "modle",
    ]


def test_faults_are_the_same_error_through_every_door():
    assert issubclass(ConfigError, OasrError)
    for build in (lambda: EngineConfig(device="gpu"), lambda: EngineConfig.model_validate({"device": "gpu"})):
        with pytest.raises(ConfigError, match=r"^device: "):
            build()


def test_it_can_be_part_of_another_model():
    class Outer(BaseModel):
        engine: EngineConfig

    assert Outer(engine={"device": "cpu"}).engine == EngineConfig(device="cpu")
    with pytest.raises(ValidationError, match=r"engine.device"):
        Outer(engine={"device": "gpu"})


def test_it_does_not_change():
    with pytest.raises(ValidationError):
        EngineConfig().device = "cpu"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda config: pickle.loads(pickle.dumps(config))])
def test_copies_are_equal_and_remember_what_was_set(copied):
    config = EngineConfig(model="x", decoder={"name": "plain"}, audio={"workers": 2})
    assert copied(config) == config
    assert copied(config).with_defaults({"decoder": "beam"}) == config.with_defaults({"decoder": "beam"})


def test_every_key_is_described():
    for section in (EngineConfig, EngineConfig().audio.__class__):
        assert all(field.description for field in section.model_fields.values())
