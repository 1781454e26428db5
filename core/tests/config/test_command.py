"""`oasr config init`, `show` and `check`."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.cli import main as entry
from oasr.config import EngineConfig, document, load_config
from oasr.config.document import toml_value
from oasr.plugin import CommandSpec
from oasr.testing import sealed_registry
from oasr.testing.toys.checkpoint import write_toy


@pytest.fixture
def oasr(monkeypatch, capsys):
    """Run `oasr config ...`; returns exit code, standard output and standard error."""
    others = tuple(spec for spec in entry.COMMANDS if spec.name != "config")
    monkeypatch.setattr(entry, "COMMANDS", (*others, CommandSpec("config", "Configurations", "oasr.cli.config:app")))

    def run(*arguments):
        code = entry.main(["config", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def test_init_writes_the_defaults(oasr, tmp_path):
    file = tmp_path / "oasr.toml"
    assert oasr("init", "--model", "a/b", "-o", file) == (0, f"{file}: written\n", "")
    assert load_config(file).config == EngineConfig(model="a/b")
    assert oasr("init", "--model", "a/b") == (0, file.read_text(), "")
    assert [path.name for path in tmp_path.iterdir()] == ["oasr.toml"]


def test_init_comments_every_key(oasr):
    _, text, _ = oasr("init")
    lines = text.splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r"(# )?\w+ = ", line)]
    assert len(keys) == 12  # 5 at the top, 2 of batching, 1 of detector, 3 of audio, 1 of streaming
    for number in keys:
        assert re.match(r"# \w+[^=]*$", lines[number - 1])


def test_init_writes_components_with_their_options():
    text = document(EngineConfig(decoder={"name": "beam", "stop": ['a"b', "\u00e9\x7f"]}, batching="fifo"))
    assert "# Exponent of the length penalty.\npenalty = 1.0\n" in text
    assert EngineConfig.model_validate(tomllib.loads(text)) == EngineConfig(
        decoder={"name": "beam", "stop": ['a"b', "\u00e9\x7f"]}, batching="fifo"
    )


def test_init_replaces_nothing_but_regular_files(oasr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for target in (".", "/", "pipe", "/dev/full"):
        code, out, err = oasr("init", "-o", target, "--force")
        assert (code, out) == (2, "")
        assert "not a regular file" in err
    assert Path("/dev/full").is_char_device()
    link = tmp_path / "link.toml"
    link.symlink_to("real.toml")
    assert oasr("init", "-o", link, "--force")[0] == 0
    assert link.is_symlink()
    assert (tmp_path / "real.toml").is_file()
    assert oasr("init", "-o", "n" * 300)[0] == 2


def test_init_does_not_overwrite_unless_told(oasr, write):
    file = write("mine")
    code, _, err = oasr("init", "-o", file)
    assert (code, file.read_text()) == (2, "mine")
    assert err == f"oasr: {file}: exists already. Choose another name or add --force.\n"
    assert oasr("init", "-o", file, "--force")[0] == 0
    assert load_config(file).config == EngineConfig()


@pytest.mark.parametrize("model", ["a/b", "\udcff"])
def test_init_leaves_nothing_half_written(oasr, tmp_path, model):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "inside").touch()
    code, _, err = oasr("init", "--model", model, "-o", target, "--force")
    assert code == 2
    assert "cannot be written" in err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_show_prints_a_key_a_line(oasr, write):
    code, out, _ = oasr("show", write('decoder = "beam"\nmodel = "m"'), "--set", "decoder.beam=8")
    assert code == 0
    assert {'model = "m"', "# format is not set", "decoder.beam = 8", "decoder.stop = []"} <= set(out.splitlines())
    assert EngineConfig.model_validate(tomllib.loads(out)) == EngineConfig(
        model="m", decoder={"name": "beam", "beam": 8}
    )


def test_show_says_where_values_came_from(oasr, write):
    file = write('device = "cpu"')
    _, out, _ = oasr("show", file, "--set", "audio.workers=2", "--origin")
    rows = dict(re.split(r"  +# ", line) for line in out.splitlines())
    assert rows['device = "cpu"'] == str(file)
    assert rows["audio.workers = 2"] == "--set"
    assert rows["# model is not set"] == rows['batching.name = "bucketed"'] == "component default"


def test_show_of_a_model_tells_what_its_checkpoint_suggests(oasr, tmp_path, monkeypatch):
    model = write_toy(tmp_path / "toy")
    registry = sealed_registry()
    for module in ("oasr.registry", "oasr.config.slots", "oasr.config.sources"):
        monkeypatch.setattr(f"{module}.default_registry", lambda: registry)
    _, out, _ = oasr("show", "--model", model, "--origin")
    rows = dict(re.split(r"  +# ", line) for line in out.splitlines())
    assert rows[f'model = "{model}"'] == "--model"
    assert rows['decoder.name = "toy-greedy"'] == "checkpoint"


def test_show_prints_json(oasr):
    _, out, _ = oasr("show", "--set", "decoder.beam=8", "--json")
    shown = json.loads(out)
    assert shown["config"]["decoder"] == {"beam": 8}
    assert shown["origins"]["decoder.beam"] == "--set"


def test_check_says_ok(oasr, write):
    file = write('model = "m"')
    assert oasr("check", file) == (0, f"{file}: ok\n", "")


def test_check_lists_every_fault_and_exits_2(oasr, write):
    file = write('modle = "m"\n')
    code, out, err = oasr("check", file, "--set", "batching.max_rows=0")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "oasr: the configuration has 2 faults:",
        "  batching.max_rows: Input should be greater than or equal to 1, not 0 (from --set)",
        f'  modle: unknown key. Did you mean "model"? (from {file})',
    ]


def test_check_needs_a_file(oasr, tmp_path):
    assert oasr("check")[0] == 2
    assert oasr("check", tmp_path / "none.toml")[0] == 2


JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=8,
)


@given(JSON)
def test_values_written_as_toml_read_back_as_the_same(value):
    assert tomllib.loads(f"x = {toml_value(value)}") == {"x": value}


def test_configurations_are_checked_without_torch(write):
    file = write('device = "cpu"\n[batching]\nmax_rows = 3\n')
    script = (
        "import sys; from oasr.cli.config import app; app(['check', sys.argv[1]], standalone_mode=False)\n"
        "heavy = {'torch', 'numpy', 'triton'} & sys.modules.keys(); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{file}: ok\n", "")
