"""`oasr check`: what an author sees who has written no test."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PLUGIN = """
from oasr.plugin import ComponentSpec, Kind, hookimpl
OASR_API = 1
@hookimpl
def oasr_components():
    target, needs = "acme_beam.decoder:Beam", {"autoregressive-head"}
    return [ComponentSpec(Kind.DECODER, "acme-beam", "A search", target, needs=needs)]
"""
SOUND = """
from oasr.errors import RequestError
from oasr.interfaces.decoder import LabelSynchronousDecoder
class Beam(LabelSynchronousDecoder):
    "A search."
    def __init__(self, config): pass
    def check(self, options):
        if options.temperature: raise RequestError("no temperature")
    def advance(self, logits, generated, counts, states): return logits.argmax(dim=-1)
"""
RUDE = SOUND.replace("return logits", "return logits.sub_(1.0)")
WITHOUT_PYTEST = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "pytest" else find_spec(name, *rest)
"""
DEADLY = "import os; os._exit(7)"

Check = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Install a decoder as `acme-beam` and run `oasr check` with these arguments."""

    def run(decoder: str, *arguments: str, plugin: str = PLUGIN, prelude: str = "") -> subprocess.CompletedProcess:
        package = tmp_path / "acme_beam"
        package.mkdir()
        (package / "__init__.py").write_text('"""A search."""\n')
        (package / "plugin.py").write_text(plugin)
        (package / "decoder.py").write_text(decoder)
        info = tmp_path / "acme_beam-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-beam\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[oasr.plugins]\nacme-beam = acme_beam.plugin\n")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OASR_")}
        environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        code = f"import sys\n{prelude}\nfrom oasr.cli.main import main\nsys.exit(main({['check', *arguments]!r}))"
        return subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
        )

    return run


def test_a_sound_plugin_passes(check: Check) -> None:
    done = check(SOUND, "acme-beam")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("acme-beam: ")
    assert ", 0 failed, " in lines[-1]
    assert any(line.startswith("decoder acme-beam") and "passed" in line for line in lines)


def test_a_broken_law_is_one_line_with_its_reason_and_exit_code_1(check: Check) -> None:
    done = check(RUDE, "acme-beam")
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if "leaves logits and history" in line]
    assert lines  # one for each device there is
    assert all(line.startswith("decoder acme-beam") and "failed" in line for line in lines)
    assert "Traceback" not in done.stdout + done.stderr


def test_json_has_every_check_and_the_details_of_failures(check: Check) -> None:
    done = check(RUDE, "acme-beam", "--json")
    report = json.loads(done.stdout)
    assert report["distribution"] == "acme-beam"
    assert report["failed"] == sum(result["outcome"] == "failed" for result in report["results"]) > 0
    assert report["passed"] + report["failed"] + report["skipped"] == len(report["results"])
    failure = next(result for result in report["results"] if "leaves logits" in result["check"])
    assert failure["component"] == "decoder acme-beam"
    assert "decoder_suite.py" in failure["details"]


def test_a_plugin_that_ends_the_process_is_reported(check: Check) -> None:
    done = check(DEADLY, "acme-beam")
    assert done.returncode == 1
    assert "acme-beam ended the process that checked it (exit code 7)" in done.stderr


def test_an_unknown_distribution_is_a_usage_error_with_a_suggestion(check: Check) -> None:
    done = check(SOUND, "acme-beem")
    assert done.returncode == 2
    assert 'Did you mean "acme-beam"?' in done.stderr


def test_a_broken_plugin_is_named_with_its_reason(check: Check) -> None:
    done = check(SOUND, "acme-beam", plugin="import module_that_nobody_has\n")
    assert done.returncode == 1
    assert "it is broken: ModuleNotFoundError: No module named 'module_that_nobody_has'" in done.stderr
    assert "oasr plugins show acme-beam" in done.stderr


def test_without_pytest_it_says_what_to_install(check: Check) -> None:
    done = check(SOUND, "acme-beam", prelude=WITHOUT_PYTEST)
    assert done.returncode == 1
    assert 'needs pytest, which is not installed: pip install "oasr-core[testing]"' in done.stderr


def test_a_checkpoint_that_cannot_be_opened_is_told_once(check: Check) -> None:
    done = check(SOUND, "acme-beam", "--checkpoint", "/dev/null")
    assert done.returncode == 2
    assert done.stderr == "oasr: /dev/null is neither a folder nor a regular file.\n"
    assert done.stdout == ""
