"""Files, flags and `--set`: what wins, and where each value came from."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.config import EngineConfig, load_config
from oasr.config.layers import dotted, flattened
from oasr.config.sources import parse_set
from oasr.errors import ConfigError


def test_precedence_with_provenance(write):
    file = write('device = "cuda"\ndtype = "float16"\n[audio]\nworkers = 2\nmax_bytes = 9\n')
    loaded = load_config(
        file,
        sets=["dtype=bf16", "dtype=fp32", "audio.workers=3"],
        flags={"device": "cpu", "model": None},
        checkpoint_defaults={"device": "cuda:3", "audio": {"max_bytes": 7, "max_seconds": 5.0}},
    )
    assert loaded.config == EngineConfig(
        device="cpu", dtype="float32", audio={"workers": 3, "max_bytes": 9, "max_seconds": 5}
    )
    assert loaded.origins == {
        "model": "component default",
        "format": "component default",
        "device": "--device",
        "dtype": "--set",
        "decoder": "component default",
        "batching.name": "component default",
        "batching.max_rows": "component default",
        "detector.name": "component default",
        "audio.workers": "--set",
        "audio.max_bytes": str(file),
        "audio.max_seconds": "checkpoint",
        "streaming.max_streams": "component default",
    }


VALUES = {
    "device": st.sampled_from(["cpu", "cuda", "cuda:1"]),
    "dtype": st.sampled_from(["float32", "float16"]),
    "audio.workers": st.integers(1, 9),
    "audio.max_bytes": st.integers(1, 9),
    "decoder.beam": st.integers(1, 9),
    "batching.max_rows": st.integers(1, 9),
}
LAYERS = st.fixed_dictionaries({}, optional=VALUES)


def nested(flat):
    tree = {}
    for key, value in flat.items():
        *above, last = key.split(".")
        at = tree
        for part in above:
            at = at.setdefault(part, {})
        at[last] = value
    return tree


def toml(flat):
    return "".join(f"{key} = {value!r}\n" for key, value in flat.items())


@given(checkpoint=LAYERS, file=LAYERS, flags=LAYERS, sets=LAYERS)
def test_the_highest_layer_that_has_a_key_wins(tmp_path_factory, checkpoint, file, flags, sets):
    path = tmp_path_factory.getbasetemp() / "layers.toml"
    path.write_text(toml(file))
    loaded = load_config(
        path, [f"{key}={value}" for key, value in sets.items()], flags, nested(checkpoint | {"decoder.name": "beam"})
    )
    found = {dotted(keys): value for keys, value in flattened(loaded.config.model_dump())}
    assert found.keys() == loaded.origins.keys()
    layers = [(sets, "--set"), (flags, None), (file, str(path)), (checkpoint, "checkpoint")]
    for key in VALUES:
        value, origin = next(
            ((layer[key], origin or "--" + key.replace("_", "-")) for layer, origin in layers if key in layer),
            (found[key], "component default"),
        )
        assert (found[key], loaded.origins[key]) == (value, origin)


SLOT = st.one_of(
    st.sampled_from(["beam", "wide"]),
    st.fixed_dictionaries(
        {}, optional={"name": st.sampled_from(["beam", "wide", "beam-search"]), "beam": st.integers(1, 9)}
    ),
)
POLICY = st.sampled_from(["fifo", "bucketed", {"max_rows": 3}, {"name": "fifo", "width": 7}])
SLOTS = st.fixed_dictionaries({}, optional={"decoder": SLOT, "batching": POLICY})


@given(checkpoint=SLOTS, flags=SLOTS)
def test_the_checkpoint_may_be_known_before_or_after(checkpoint, flags):
    known_before = load_config(flags=flags, checkpoint_defaults=checkpoint).config
    assert load_config(flags=flags).config.with_defaults(checkpoint) == known_before


def test_naming_another_component_drops_the_options_of_the_former(write):
    file = write('decoder = {name = "beam", penalty = 2.0}\n[batching]\nmax_rows = 8\n')
    loaded = load_config(file, ["decoder=wide", "batching=fifo"])
    assert loaded.config == EngineConfig(decoder="wide", batching="fifo")
    assert loaded.origins["decoder.name"] == "--set"
    assert loaded.origins["decoder.beam"] == "component default"


@pytest.mark.parametrize("same", ["beam", "beam-search"])
def test_naming_the_same_component_keeps_its_options(write, same):
    file = write('decoder = {name = "beam", penalty = 2.0}\n')
    assert load_config(file, [f"decoder={same}"]).config.decoder.options.penalty == 2.0


def test_options_without_a_name_go_to_the_component_named_above_them(write):
    file = write("[decoder]\nbeam = 3\n")
    assert load_config(file, ["decoder=wide"]).config == EngineConfig(decoder={"name": "wide", "beam": 3})


@pytest.mark.parametrize("sets", [["batching=fifo", "batching.width=5"], ["batching.width=5", "batching=fifo"]])
def test_name_and_options_on_the_command_line_come_in_any_order(sets):
    assert load_config(sets=sets).config == EngineConfig(batching={"name": "fifo", "width": 5})


def test_an_option_is_set_under_a_name_written_as_text(write):
    loaded = load_config(write('decoder = "beam"'), ["decoder.beam=8"])
    assert loaded.config == EngineConfig(decoder={"name": "beam", "beam": 8})


def test_an_empty_table_changes_nothing(write):
    assert load_config(write("[audio]\n[decoder]\n[batching]\n")).config == EngineConfig()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-1.5", -1.5),
        ("true", True),
        ("True", "True"),
        ("", ""),
        ("greedy", "greedy"),
        ('"8"', "8"),
        ("a=b", "a=b"),
        ("a#b", "a#b"),
        ("openai/whisper-tiny", "openai/whisper-tiny"),
        ("C:\\models\\x", "C:\\models\\x"),
        ("[1, 2]", [1, 2]),
        ("[1, 2", "[1, 2"),
        ('{name = "beam", beam = 2}', {"name": "beam", "beam": 2}),
        ("2024-01-01", "2024-01-01"),
        ("1\nmodel = 2", "1\nmodel = 2"),
        ("9" * 5000, "9" * 5000),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_values_of_set_are_toml_or_else_text(text, value):
    assert parse_set(f"decoder.x={text}") == {"decoder": {"x": value}}


@pytest.mark.parametrize("text", ["a", "=1", "", "=", ".a=1", "a.=1", "a..b=1", "a b=1", '"a"=1', "--device"])
def test_a_malformed_set_is_refused_with_the_form(text):
    with pytest.raises(ConfigError, match=r"write KEY=VALUE with a dotted key, such as audio.workers=8"):
        load_config(sets=[text])


def test_an_empty_value_is_text_and_the_option_refuses_it():
    with pytest.raises(ConfigError, match=r"^decoder.beam: .*valid integer.*, not '' \(from --set\)$"):
        load_config(sets=["decoder=beam", "decoder.beam="])


def test_a_key_below_a_value_is_refused():
    with pytest.raises(ConfigError, match=r"^device: Input should be a valid string \(from --set\)"):
        load_config(sets=["device.index=1"])


def test_a_value_in_place_of_a_section_is_refused():
    with pytest.raises(ConfigError, match=r"^audio: "):
        load_config(sets=["audio=3"])


def test_ckpt_dir_on_one_layer_overrides_model_on_another(write):
    assert load_config(write('model = "a"'), ["ckpt_dir=b"]).config.model == "b"


def test_ckpt_dir_beside_model_on_one_layer_is_refused(write):
    with pytest.raises(ConfigError, match=r"^ckpt_dir: is another word for model"):
        load_config(write('model = "a"\nckpt_dir = "b"'))


def test_faults_say_which_source_to_repair(write):
    file = write('modle = "x"\nsample_rate = 8000\n[audio]\nworkers = 0\n')
    with pytest.raises(ConfigError) as caught:
        load_config(file, ["batching.max_rows=0"], {"device": "gpu"})
    text = str(caught.value)
    for fault, source in [
        ("device: ", "--device"),
        ("batching.max_rows: Input should be greater than or equal to 1", "--set"),
        ("audio.workers: ", file),
        ('modle: unknown key. Did you mean "model"?', file),
        ("sample_rate: is a fact of the checkpoint", file),
    ]:
        assert any(fault in line and line.endswith(f"(from {source})") for line in text.splitlines())


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(write):
    assert load_config(write(b'\xef\xbb\xbfdevice = "cpu"\r\ndtype = "half"\r\n')).config.dtype == "float16"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'device = "cpu"\ndtype = \n', "is not valid TOML: .*line 2"),
        (b'device = "cpu"\ndevice = "cpu"\n', "is not valid TOML: .*line 2"),
        (b"[audio\n", "is not valid TOML: .*line 1"),
        (b'device = "cpu', "is not valid TOML"),
        (b"x = " + b"9" * 5000, "is not valid TOML"),
        (b"x = " + b"[" * 5000, "is nested too deeply"),
        (b'device = "cpu"\nmodel = "\xe9"\n', r"is not UTF-8 text \(at line 2\)"),
        ('device = "cpu"'.encode("utf-16"), "is not UTF-8 text"),
        (b"\x00", "is not valid TOML"),
    ],
)
def test_a_damaged_file_is_named_with_the_place(write, content, problem):
    file = write(content)
    with pytest.raises(ConfigError, match=f"{file}: {problem}"):
        load_config(file)


def test_an_empty_file_is_a_configuration(write):
    assert load_config(write("")).config == EngineConfig()


def test_a_missing_file_says_how_to_write_one(tmp_path):
    with pytest.raises(ConfigError, match=r"none.toml: there is no such file. `oasr config init -o"):
        load_config(tmp_path / "none.toml")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ConfigError, match="is not a regular file"):
        load_config(tmp_path)


@pytest.mark.parametrize("depth", [40, 3000])
def test_a_key_nested_deeper_than_any_schema_is_refused(write, depth):
    key = ".".join("a" * depth)
    with pytest.raises(ConfigError, match="nested more than 32 deep"):
        load_config(sets=[f"{key}=1"])
    with pytest.raises(ConfigError, match="nested more than 32 deep"):
        load_config(write(f"{key} = 1"))


def test_a_pipe_or_device_is_no_configuration(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ConfigError, match="is not a regular file"):
            load_config(file)
    for file in ("n" * 300, "nul\0"):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_config(file)
