"""`oasr models`: what is there, what it can do, and what is wrong with the rest."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from oasr.checkpoint.inventory import AvailableModel
from oasr.cli import models as command
from oasr.cli.main import main

GOOD = AvailableModel("acme-small", "packaged", Path("/models/small"), 1_500_000, "acme", None)
BROKEN = AvailableModel("acme-gone", "packaged", None, 0, None, "the package lacks\nits weights")
FOREIGN = AvailableModel("org/llm", "cached", Path("/cache/llm"), 10, None, 'No architecture named "Llm".')


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """Puts these models on the machine."""

    def have(*models: AvailableModel) -> None:
        monkeypatch.setattr(command, "available", lambda registry: iter(models))

    return have


def test_each_model_is_one_line(machine, capsys) -> None:
    machine(GOOD, BROKEN)
    assert main(["models"]) == 0
    _, good, broken = capsys.readouterr().out.splitlines()
    assert good.split() == ["acme-small", "packaged", "1.5", "MB", "acme", "/models/small"]
    assert broken.endswith("cannot be used: the package lacks its weights")


def test_facts_of_a_model_that_cannot_be_read_are_left_open(machine, capsys) -> None:
    machine(BROKEN)
    assert main(["models", "--facts"]) == 0
    header, _, *_ = capsys.readouterr().out.splitlines()
    assert "languages and tasks" in header


def test_what_the_cache_holds_for_other_programs_is_counted(machine, capsys) -> None:
    machine(GOOD, FOREIGN)
    assert main(["models"]) == 0
    out, err = capsys.readouterr()
    assert "org/llm" not in out
    assert err.startswith("1 more in ")
    assert main(["models", "--all"]) == 0
    assert 'cannot be used: No architecture named "Llm".' in capsys.readouterr().out


@pytest.mark.parametrize("models", [(), (BROKEN,), (FOREIGN,)])
def test_without_a_usable_model_it_says_how_to_get_one(machine, capsys, models: tuple[AvailableModel, ...]) -> None:
    machine(*models)
    assert main(["models"]) == 0
    assert "pip install " in capsys.readouterr().out


def test_json_has_everything(machine, capsys) -> None:
    machine(GOOD, FOREIGN)
    assert main(["models", "--json"]) == 0
    good, foreign = json.loads(capsys.readouterr().out)
    assert good == {
        "name": "acme-small",
        "origin": "packaged",
        "path": "/models/small",
        "size": 1_500_000,
        "architecture": "acme",
        "languages": None,
        "tasks": None,
        "problem": None,
    }
    assert foreign["problem"] == 'No architecture named "Llm".'


def test_json_of_no_models_is_an_empty_list(machine, capsys) -> None:
    machine()
    assert main(["models", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_listing_imports_no_torch() -> None:
    code = "import sys; from oasr.cli.main import main; main(['models']); sys.exit(bool({'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
