"""Core's table of install hints agrees with the distributions in this repository."""

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from oasr.plugin import Kind
from oasr.registry.hints import PROVIDERS

ROOT = Path(__file__).parents[1]
PROJECTS = sorted(
    path.parent for pattern in ("plugins/*", "kernels") for path in ROOT.glob(f"{pattern}/pyproject.toml")
)


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_every_component_of_a_first_party_distribution_has_its_hint(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(project / "src"))
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    for value in declared["entry-points"]["oasr.plugins"].values():
        components = getattr(import_module(value), "oasr_components", list)()
        for spec in components:
            hints = PROVIDERS.get(spec.kind, {})
            without = [word for word in (spec.name, *spec.aliases) if hints.get(word) != declared["name"]]
            assert not without, f"{spec.kind}: add to oasr.registry.hints"


def test_hints_name_distributions_that_follow_the_naming_rule() -> None:
    assert all(kind in Kind for kind in PROVIDERS)
    assert all(name.startswith("oasr-") for table in PROVIDERS.values() for name in table.values())
