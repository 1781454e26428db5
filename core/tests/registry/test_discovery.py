"""From installed entry points to records: statuses, reasons, and the switches of the environment."""

import re
import subprocess
import sys

import pytest

from oasr.plugin import Kind
from oasr.registry import PluginRecord, Registry, Status

SOUND = """
from oasr.plugin import ComponentSpec, Kind, hookimpl
OASR_API = 1
@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.DETECTOR, "{name}", "A detector", "acme.detector:Detector")]
"""


def sound(name: str) -> str:
    return SOUND.format(name=name)


def record_of(distribution: str, environ: dict[str, str] | None = None) -> PluginRecord:
    registry = Registry.discover(environ or {})
    return next(record for record in registry.records if record.distribution == distribution)


def test_an_installed_plugin_is_found_with_its_origin(site) -> None:
    folder = site("acme-x", sound("one"))
    record = record_of("acme-x")
    assert (record.name, record.version, record.module, record.status) == ("acme-x", "1.0", "acme_x.plugin", "ok")
    assert record.location == str(folder)


def test_records_are_sorted_by_distribution(site) -> None:
    for name in ("zeta-z", "acme-b", "acme-a"):
        site(name, sound(name))
    distributions = [record.distribution for record in Registry.discover({}).records]
    assert distributions == sorted(distributions)
    assert {"acme-a", "acme-b", "zeta-z", "oasr-core"} <= set(distributions)


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        ("OASR_API = 2", Status.INCOMPATIBLE, "written for plugin API 2; oasr-core .* supports 1. Upgrade oasr-core."),
        ("OASR_API = 0", Status.INCOMPATIBLE, "written for plugin API 0; .* Upgrade acme-x."),
        ("", Status.INCOMPATIBLE, "does not say which plugin API"),
        ("OASR_API = '1'", Status.INCOMPATIBLE, "OASR_API = '1'"),
        ("OASR_API = 1", Status.BROKEN, "implements no hook; implement oasr_components"),
        ("def oops(:", Status.BROKEN, "^SyntaxError: .*plugin.py, line 1"),
        ("import acme_absent", Status.BROKEN, "^ModuleNotFoundError: No module named 'acme_absent'"),
        ("raise SystemExit(3)", Status.BROKEN, "^SystemExit: 3$"),
        ("raise ValueError('two\\nlines')", Status.BROKEN, "^ValueError: two lines$"),
        (sound("Not_Kebab"), Status.BROKEN, "not kebab-case"),
        (sound("a").replace("oasr_components", "oasr_component"), Status.BROKEN, 'Did you mean "oasr_components"'),
        (sound("a").replace("@hookimpl", ""), Status.BROKEN, "oasr_components is not marked with @hookimpl"),
        (sound("a").replace("@hookimpl", "").replace("ents()", "ent()"), Status.BROKEN, 'Did you mean "oasr_comp'),
        (sound("a").replace("@hookimpl", "@hookimpl(wrapper=True)"), Status.BROKEN, "is a wrapper"),
        (sound("a").replace("components()", "components(x)"), Status.BROKEN, r"\{'x'\}"),
        (sound("a").replace("return [", "return 0 and ["), Status.BROKEN, "returned int, not a list"),
        (sound("a").replace("return [", "return ['x', "), Status.BROKEN, "'x', which is not a ComponentSpec"),
        (sound("a").replace("return [", "return 2 * ["), Status.BROKEN, 'detector "a" is declared twice'),
    ],
)
def test_what_is_wrong_is_told(site, source: str, status: Status, reason: str) -> None:
    site("acme-x", source)
    site("zeta-z", sound("sound"))
    record = record_of("acme-x")
    assert record.status is status
    assert re.search(reason, record.reason)
    assert bool(record.traceback) == (status is Status.BROKEN)
    assert record.specs == ()
    assert record_of("zeta-z").status is Status.OK


def test_an_interrupt_at_import_is_not_swallowed(site) -> None:
    site("acme-x", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        Registry.discover({})


def test_a_failed_plugin_leaves_no_hook_behind(site) -> None:
    steps = "@hookimpl\ndef oasr_step_finished(stats): pass\n"
    site("acme-x", sound("Not_Kebab") + steps)
    assert not Registry.discover({}).hooks.implements("oasr_step_finished")


def test_an_entry_point_that_is_no_module_is_broken(site) -> None:
    site("acme-x", sound("a"), entry="acme-x = not a module!")
    assert record_of("acme-x").status is Status.BROKEN


def test_entry_points_that_cannot_be_parsed_are_broken(site) -> None:
    site("acme-x", sound("a"), entry="acme-x acme_x.plugin")
    assert "entry_points.txt" in record_of("acme-x").reason


def test_a_second_copy_of_a_distribution_is_ignored_and_noted(site) -> None:
    site("acme-x", sound("stale"), version="0.9", folder="stale")
    site("acme-x", sound("fresh"), version="1.0", folder="fresh")  # prepended, so first on the path
    copies = [record for record in Registry.discover({}).records if record.distribution == "acme-x"]
    assert [(record.version, record.specs[0].name) for record in copies] == [("1.0", "fresh")]
    assert "stale (version 0.9), which is ignored" in copies[0].note


def test_a_folder_that_stands_on_the_path_twice_is_no_second_copy(site, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site("acme-x", sound("a"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    assert record_of("acme-x").note == ""


@pytest.mark.parametrize(
    ("environ", "loaded"),
    [
        ({}, {"oasr-acme", "zeta-z"}),
        ({"OASR_PLUGINS": ""}, set()),
        ({"OASR_PLUGINS": "acme"}, {"oasr-acme"}),
        ({"OASR_PLUGINS": "oasr_acme, zeta-z"}, {"oasr-acme", "zeta-z"}),
        ({"OASR_PLUGINS_DISABLE": "oasr-acme"}, {"zeta-z"}),
        ({"OASR_PLUGINS_DISABLE": "acme core"}, {"zeta-z"}),
        ({"OASR_PLUGINS": "acme,zeta-z", "OASR_PLUGINS_DISABLE": "acme"}, {"zeta-z"}),
    ],
)
def test_the_environment_chooses_plugins_but_core_always_loads(site, environ: dict[str, str], loaded: set[str]) -> None:
    site("oasr-acme", sound("one"))
    site("zeta-z", sound("two"))
    records = {record.distribution: record for record in Registry.discover(environ).records}
    assert {name for name in ("oasr-acme", "zeta-z") if records[name].status is Status.OK} == loaded
    assert {records[name].status for name in {"oasr-acme", "zeta-z"} - loaded} <= {Status.DISABLED}
    assert records["oasr-core"].status is Status.OK


def test_a_disabled_plugin_is_not_imported_and_disputes_nothing(site) -> None:
    site("acme-x", "raise RuntimeError")
    site("zeta-y", sound("same"))
    site("zeta-z", sound("same"))
    environ = {"OASR_PLUGINS_DISABLE": "acme-x, zeta-z"}
    assert record_of("acme-x", environ).reason == "listed in OASR_PLUGINS_DISABLE"
    assert Registry.discover(environ).names(Kind.DETECTOR).count("same") == 1


def test_a_name_in_the_environment_that_matches_nothing_is_a_warning(site) -> None:
    site("acme-x", sound("one"))
    environ = {"OASR_PLUGINS": "acme-x,acme-y", "OASR_PLUGINS_DISABLE": "nothing-like-it"}
    assert Registry.discover(environ).warnings == (
        'OASR_PLUGINS names "acme-y", which matches no installed plugin. Did you mean "acme-x"?',
        'OASR_PLUGINS_DISABLE names "nothing-like-it", which matches no installed plugin.',
    )


def test_the_default_registry_is_discovered_once_and_warns_in_one_line(site) -> None:
    folder = site("acme-x", "import acme_absent")
    site("acme-y", "raise RuntimeError")
    code = f"""
import sys; sys.path.insert(0, {str(folder)!r})
from oasr.registry import default_registry
assert default_registry() is default_registry()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stderr.splitlines() if "acme" in line]
    assert "acme-x is broken" in line
    assert "acme-y is broken" in line
    assert line.endswith("Run: oasr plugins")
