"""Fixtures for what crosses distributions."""

import os
import shutil
import tomllib
from pathlib import Path

import pytest

BAD_PLUGINS = Path(__file__).parent / "bad_plugins"


def _install(project: Path, site: Path) -> None:
    """What `pip install --target` leaves behind, without the seconds it takes."""
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    shutil.copytree(project / "src", site, dirs_exist_ok=True)
    info = site / f"{declared['name'].replace('-', '_')}-{declared['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {declared['name']}\nVersion: {declared['version']}\n")
    lines = [
        line
        for group, entries in declared["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def sabotaged_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables for a subprocess in which every distribution of `bad_plugins` is installed at once."""
    site = tmp_path_factory.mktemp("sabotaged")
    for project in sorted(BAD_PLUGINS.glob("*/pyproject.toml")):
        _install(project.parent, site)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OASR_")}
    inherited = environment.get("PYTHONPATH")
    return environment | {"PYTHONPATH": os.pathsep.join([str(site), *([inherited] if inherited else [])])}
