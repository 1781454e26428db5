"""Whatever one plugin does, it becomes a row with a reason and everything else keeps working."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BAD_PLUGINS = Path(__file__).parent / "bad_plugins"

# The status of every distribution in the folder, and what its reason must tell.
EXPECTED = {
    "bad-absent-requirement": ("unavailable", 'decoder "needs-absent" needs the module "module_that_nobody_has"'),
    "bad-absent-target": ("ok", ""),
    "bad-core-name": ("conflict", 'batching "bucketed" is also provided by oasr-core: write bucketed@bad-core-name'),
    "bad-duplicate-one": ("conflict", "bad-duplicate-two: write disputed@bad-duplicate-one"),
    "bad-duplicate-two": ("conflict", "bad-duplicate-one: write disputed@bad-duplicate-two"),
    "bad-exit": ("broken", "SystemExit: 0"),
    "bad-future-api": ("incompatible", "bad-future-api 7.0 was written for plugin API 99"),
    "bad-hook-signature": ("broken", "{'registry'}"),
    "bad-missing-module": ("broken", "ModuleNotFoundError: No module named 'module_that_nobody_has'"),
    "bad-misspelt-hook": ("broken", 'there is no hook oasr_component. Did you mean "oasr_components"?'),
    "bad-native-library": ("broken", "OSError: libsabotaged.so.1"),
    "bad-no-api": ("incompatible", "does not say which plugin API"),
    "bad-observers": ("ok", ""),
    "bad-prints": ("ok", ""),
    "bad-return": ("broken", "oasr_components returned ComponentSpec, not a list"),
    "bad-slow-import": ("ok", ""),
    "bad-spec": ("broken", "component name 'Not_Kebab' is not kebab-case"),
    "bad-syntax-error": ("broken", "SyntaxError"),
    "bad-target-exit": ("ok", ""),
    "bad-target-import": ("ok", ""),
    "bad-target-type": ("ok", ""),
    "good-neighbour": ("ok", ""),
}
BROKEN = sorted(name for name, (status, _) in EXPECTED.items() if status == "broken")


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def listing(sabotaged_environment: dict[str, str]) -> dict[str, dict]:
    done = run(sabotaged_environment, "-m", "oasr", "plugins", "--json")
    assert done.returncode == 0, done.stderr
    return {plugin["distribution"]: plugin for plugin in json.loads(done.stdout)["plugins"]}


@pytest.fixture(scope="module")
def table(sabotaged_environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run(sabotaged_environment | {"COLUMNS": "40"}, "-m", "oasr", "plugins")


def test_every_sabotaged_distribution_has_an_expectation() -> None:
    assert {path.parent.name for path in BAD_PLUGINS.glob("*/pyproject.toml")} == set(EXPECTED)


@pytest.mark.parametrize("distribution", EXPECTED)
def test_each_is_listed_with_its_status_and_reason(listing: dict[str, dict], distribution: str) -> None:
    status, reason = EXPECTED[distribution]
    assert listing[distribution]["status"] == status
    assert reason in listing[distribution]["reason"]
    assert bool(listing[distribution]["reason"]) == (status != "ok")


def test_core_is_untouched(listing: dict[str, dict]) -> None:
    assert listing["oasr-core"]["status"] == "ok"
    assert all(each["usable_as"] == each["name"] for each in listing["oasr-core"]["components"])


def test_the_table_gives_each_one_unwrapped_line_and_warns_of_nothing(table: subprocess.CompletedProcess[str]) -> None:
    assert table.returncode == 0
    assert "Traceback" not in table.stderr
    assert "oasr plugins" not in table.stderr
    lines = {line.split()[1]: line for line in table.stdout.splitlines()}
    for distribution, (status, reason) in EXPECTED.items():
        assert status in lines[distribution]
        assert reason in lines[distribution]


def test_a_slow_import_is_ok_and_its_time_is_shown(
    listing: dict[str, dict], table: subprocess.CompletedProcess[str]
) -> None:
    assert listing["bad-slow-import"]["import_seconds"] >= 1.5
    assert "decoder slow; imported in" in table.stdout


def test_strict_exits_1(sabotaged_environment: dict[str, str]) -> None:
    assert run(sabotaged_environment, "-m", "oasr", "plugins", "--strict").returncode == 1


def test_strict_accepts_what_nobody_has_to_repair(sabotaged_environment: dict[str, str]) -> None:
    environment = sabotaged_environment | {"OASR_PLUGINS": "good-neighbour,bad-absent-requirement"}
    assert run(environment, "-m", "oasr", "plugins", "--strict").returncode == 0


@pytest.mark.parametrize("distribution", BROKEN)
def test_show_prints_the_traceback_of_a_broken_one(sabotaged_environment: dict[str, str], distribution: str) -> None:
    # Only this one: that its neighbours do not matter is shown above, and the slow one would cost each run its sleep.
    done = run(sabotaged_environment | {"OASR_PLUGINS": distribution}, "-m", "oasr", "plugins", "show", distribution)
    assert done.returncode == 0
    assert "Traceback (most recent call last)" in done.stdout
    assert EXPECTED[distribution][1] in " ".join(done.stdout.split())


def test_the_components_of_a_plugin_in_conflict_stay_usable(listing: dict[str, dict]) -> None:
    usable = [each["usable_as"] for each in listing["bad-duplicate-one"]["components"]]
    assert usable == ["disputed@bad-duplicate-one", "undisputed-one"]


def test_the_other_components_of_an_unavailable_plugin_stay_usable(listing: dict[str, dict]) -> None:
    usable = {each["name"]: each["usable_as"] for each in listing["bad-absent-requirement"]["components"]}
    assert usable == {"needs-absent": None, "needs-nothing": "needs-nothing"}


LOAD = """
import sys
from oasr.errors import ComponentLoadError
from oasr.plugin import Kind
from oasr.registry import Registry

registry = Registry.discover()
print(registry.load(Kind.BATCHING, "neighbourly").__name__)
for name in sys.argv[1:]:
    try:
        registry.load(Kind.BATCHING, name)
    except ComponentLoadError as error:
        print(error)
"""


def test_a_component_that_cannot_be_loaded_says_whose_it_is_and_why(sabotaged_environment: dict[str, str]) -> None:
    names = ["absent-target", "raising-target", "exiting-target", "wrong-type"]
    done = run(sabotaged_environment, "-c", LOAD, *names)
    assert done.returncode == 0, done.stderr
    neighbour, *errors = done.stdout.splitlines()
    assert neighbour == "OneAtATime"
    for error, distribution, cause in zip(
        errors,
        ["bad-absent-target", "bad-target-import", "bad-target-exit", "bad-target-type"],
        ["Absent", "RuntimeError: this policy was sabotaged", "SystemExit: 3", "is not a subclass of"],
        strict=True,
    ):
        assert distribution in error
        assert cause in error


def test_a_neighbours_command_runs(sabotaged_environment: dict[str, str]) -> None:
    done = run(sabotaged_environment, "-m", "oasr", "greet", "world")
    assert done.returncode == 0
    assert done.stdout == "Hello, world\n"  # and nothing of what bad-prints wrote at import
    assert "bad-syntax-error is broken" in done.stderr  # here the faults are worth a warning
    assert "Traceback" not in done.stderr


def test_doctor_reports_the_faults_and_the_neighbours_health(sabotaged_environment: dict[str, str]) -> None:
    done = run(sabotaged_environment, "-m", "oasr", "doctor", "--json")
    assert done.returncode == 1
    checks = {check["subject"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["plugin bad-syntax-error"]["level"] == "fail"
    assert checks["plugin bad-duplicate-one"]["level"] == "warn"
    assert checks["neighbour"]["finding"] == "in good health"
    assert "not a list of Check" in checks["bad-observers:bad-observers"]["finding"]


OBSERVE = """
from oasr.registry import Registry

registry = Registry.discover()
for _ in range(10):
    registry.hooks.call("oasr_step_finished", stats=None)
"""


def test_an_observer_that_keeps_raising_is_muted(sabotaged_environment: dict[str, str]) -> None:
    done = run(sabotaged_environment | {"OASR_PLUGINS": "bad-observers"}, "-c", OBSERVE)
    assert done.returncode == 0
    first, last = done.stderr.splitlines()
    assert "no step today" in first
    assert "muted" in last


def test_distributions_that_pip_installed_behave_the_same(tmp_path: Path) -> None:
    projects = [str(BAD_PLUGINS / name) for name in ("bad-syntax-error", "good-neighbour")]
    options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-compile", "--target", str(tmp_path)]
    pip = run(dict(os.environ), "-m", "pip", "install", *options, *projects)
    assert pip.returncode == 0, pip.stderr
    done = run(os.environ | {"PYTHONPATH": str(tmp_path)}, "-m", "oasr", "plugins", "--json")
    statuses = {plugin["distribution"]: plugin["status"] for plugin in json.loads(done.stdout)["plugins"]}
    assert statuses["bad-syntax-error"] == "broken"
    assert statuses["good-neighbour"] == "ok"
