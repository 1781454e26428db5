"""Components picked by name, with options checked by their own models."""

import pytest

from oasr.config import EngineConfig, Selection, Unnamed
from oasr.errors import ConfigError


def test_a_name_a_table_and_a_selection_mean_the_same(beam_config):
    selection = Selection("beam", beam_config())
    written = ["beam", {"name": "beam"}, {"name": "beam", "beam": 4}, selection, Selection("beam"), "beam-search"]
    assert {EngineConfig(decoder=value).decoder for value in written} == {selection}


def test_options_of_a_selection_are_kept(beam_config):
    chosen = EngineConfig(decoder=Selection("beam", beam_config(beam=9))).selected("decoder")
    assert chosen.options == beam_config(beam=9)


def test_options_of_another_component_are_refused(beam_config):
    with pytest.raises(ConfigError, match=r"^decoder.penalty: unknown key. Keys are beam, limit"):
        EngineConfig(decoder=Selection("wide", beam_config(penalty=2)))


def test_a_table_without_a_name_means_the_default_of_the_slot():
    assert EngineConfig(batching={"max_rows": 8}).selected("batching").options.max_rows == 8


def test_decoder_options_without_a_name_wait_for_the_model():
    config = EngineConfig(decoder={"beam": 2})
    assert config.decoder == Unnamed({"beam": 2})
    with pytest.raises(ConfigError, match=r"^decoder: nothing is chosen"):
        config.selected("decoder")
    assert config.with_defaults({"decoder": "wide"}).selected("decoder").options.beam == 2


def test_decoder_options_without_a_name_are_checked_once_the_model_has_chosen():
    config = EngineConfig(decoder={"bean": 2})
    with pytest.raises(ConfigError, match=r'^decoder.bean: unknown key. Did you mean "beam"'):
        config.with_defaults({"decoder": "wide"})


def test_faults_in_options_keep_their_paths_and_come_together():
    with pytest.raises(ConfigError) as caught:
        EngineConfig(decoder={"name": "beam", "beam": 0, "penaltee": 1}, batching={"max_rows": 0})
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [
        "decoder.beam: Input should be greater than or equal to 1, not 0",
        'decoder.penaltee: unknown key. Did you mean "penalty"?',
        "batching.max_rows: Input should be greater than or equal to 1, not 0",
    ]


def test_a_component_without_options_refuses_each_by_name():
    assert EngineConfig(decoder="plain").decoder == Selection("plain")
    with pytest.raises(ConfigError, match=r'(?s)decoder.a: decoder "plain" has no options.*decoder.b: decoder "plain"'):
        EngineConfig(decoder={"name": "plain", "a": 1, "b": 2})


def test_an_unknown_name_brings_what_is_installed():
    with pytest.raises(ConfigError, match=r'^decoder: No decoder named "bem". Installed: .*Did you mean "beam"'):
        EngineConfig(decoder="bem")


def test_a_component_that_cannot_be_loaded_is_a_fault_like_others():
    with pytest.raises(ConfigError, match='decoder: Decoder "faulty" of oasr-toy cannot be loaded'):
        EngineConfig(decoder="faulty")


@pytest.mark.parametrize("value", [3, True, ["beam"], 1.5])
def test_a_slot_takes_a_name_or_a_table(value):
    with pytest.raises(ConfigError, match=r"^decoder: write a name or a table"):
        EngineConfig(decoder=value)


def test_a_name_is_text():
    with pytest.raises(ConfigError, match=r"^decoder.name: write the name of a decoder, not 3"):
        EngineConfig(decoder={"name": 3})


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"model": "x", "decoder": "plain"},
        {"decoder": {"name": "beam", "beam": 7, "stop": ["a"]}, "batching": {"name": "fifo", "width": 3}},
        {"decoder": {"beam": 2, "deep": {"er": 1}}, "audio": {"workers": 1}},
        {"batching": {"max_rows": 1}, "dtype": "half"},
    ],
)
@pytest.mark.parametrize("mode", ["python", "json"])
def test_a_dump_reads_back_as_the_same(written, mode):
    config = EngineConfig(**written)
    assert EngineConfig.model_validate(config.model_dump(mode=mode)) == config
    assert EngineConfig.model_validate(config.model_dump(mode=mode, exclude_unset=True)) == config
    assert EngineConfig.model_validate_json(config.model_dump_json()) == config


def test_a_dump_of_what_was_set_has_nothing_else():
    written = {"decoder": {"name": "beam", "beam": 7}, "audio": {"workers": 1}}
    assert EngineConfig(**written).model_dump(exclude_unset=True) == written


def test_the_checkpoint_fills_in_what_was_not_set():
    defaults = {"dtype": "float16", "device": "cpu", "decoder": {"name": "beam", "beam": 2, "penalty": 0.5}}
    config = EngineConfig(device="cuda", decoder={"beam": 3}).with_defaults(defaults)
    assert (config.device, config.dtype) == ("cuda", "float16")
    assert config.decoder == EngineConfig(decoder={"name": "beam", "beam": 3, "penalty": 0.5}).decoder


def test_options_of_the_checkpoint_are_dropped_with_its_decoder():
    defaults = {"decoder": {"name": "beam", "beam": 2, "penalty": 0.5}}
    assert EngineConfig(decoder="wide").with_defaults(defaults) == EngineConfig(decoder="wide")
    assert EngineConfig(decoder="plain").with_defaults(defaults).decoder == Selection("plain")


def test_another_registry_comes_with_the_context(toys, monkeypatch):
    monkeypatch.setattr("oasr.config.slots.default_registry", lambda: pytest.fail("asked the process registry"))
    config = EngineConfig.model_validate({"decoder": "beam"}, context={"registry": toys})
    assert config.with_defaults({}, registry=toys).selected("decoder").name == "beam"
