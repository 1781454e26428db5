"""Importing OASR, and listing what is installed, costs next to nothing: heavy packages wait until they are used."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = (
    "torch",
    "torchaudio",
    "numpy",
    "triton",
    "av",
    "tokenizers",
    "sentencepiece",
    "safetensors",
    "huggingface_hub",
)
PROJECTS = sorted(
    path.parent for pattern in ("plugins/*", "kernels") for path in ROOT.glob(f"{pattern}/pyproject.toml")
)


def modules_after(statement: str, environ: dict[str, str] | None = None) -> set[str]:
    """The modules of a fresh interpreter that has run `statement`, less those it starts with."""
    report = "print(*sorted(set(sys.modules) - before), file=sys.stderr)"
    code = f"import sys; before = set(sys.modules)\n{statement}\n{report}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OASR_")} | (environ or {})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def heavy(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules} & set(HEAVY)


def test_importing_oasr_imports_the_standard_library_only() -> None:
    tops = {module.partition(".")[0] for module in modules_after("import oasr")}
    assert tops - sys.stdlib_module_names == {"oasr"}


@pytest.mark.parametrize("module", ["oasr.plugin", "oasr.registry", "oasr.errors"])
def test_the_plugin_system_needs_pluggy_and_nothing_else(module: str) -> None:
    tops = {module.partition(".")[0] for module in modules_after(f"import {module}")}
    assert tops - sys.stdlib_module_names <= {"oasr", "pluggy"}


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["plugins"], ["plugins", "--json"], ["plugins", "show", "core"]]
)
def test_commands_that_only_list_import_nothing_heavy(arguments: list[str]) -> None:
    assert heavy(modules_after(f"from oasr.cli.main import main; assert main({arguments!r}) == 0")) == set()


def declared_modules() -> list[tuple[str, str]]:
    """Each first-party plugin module, and the config module beside it where there is one."""
    found = []
    for project in PROJECTS:
        entries = tomllib.loads((project / "pyproject.toml").read_text())["project"].get("entry-points", {})
        for module in entries.get("oasr.plugins", {}).values():
            found.append((str(project), module))
            config = f"{module.rpartition('.')[0]}.config"
            if (project / "src" / Path(*config.split("."))).with_suffix(".py").exists():
                found.append((str(project), config))
    return found


def test_every_first_party_distribution_declares_a_plugin() -> None:
    covered = {project for project, _ in declared_modules()}
    assert {str(project) for project in PROJECTS} == covered


@pytest.mark.parametrize(("project", "module"), declared_modules(), ids=lambda value: Path(value).name)
def test_declaring_components_imports_nothing_heavy(project: str, module: str) -> None:
    # From its own source, installed or not, so that none is left out.
    path = os.pathsep.join(filter(None, [f"{project}/src", os.environ.get("PYTHONPATH")]))
    assert heavy(modules_after(f"import {module}", {"PYTHONPATH": path})) == set()
