"""Laws of a plugin module."""

import sys
from importlib import import_module
from inspect import getdoc
from typing import ClassVar

import pytest

from oasr.interfaces.component import ComponentConfig
from oasr.plugin import SUPPORTED_API, ComponentSpec, Kind
from oasr.registry import PluginRecord, Registry, Status
from oasr.registry.records import missing_modules
from oasr.testing.interpreter import heavy_modules_after
from oasr.testing.suite import Suite


class PluginSuite(Suite):
    """A distribution's plugin module: cheap to list, and true to what it declares."""

    plugin: ClassVar[str]
    """The module, such as `acme_oasr_x.plugin`."""

    @pytest.fixture
    def registry(self) -> Registry:
        """Only core and this plugin."""
        return Registry.from_modules(import_module(self.plugin))

    @pytest.fixture
    def record(self, registry: Registry) -> PluginRecord:
        """What became of the plugin."""
        return next(record for record in registry.records if record.module == self.plugin)

    @pytest.fixture
    def usable(self, record: PluginRecord) -> list[ComponentSpec]:
        """Its components whose requirements are installed."""
        specs = [spec for spec in record.specs if not missing_modules(spec)]
        if record.specs and not specs:
            pytest.skip(f"nothing can be used here: {record.reason}")
        return specs

    def test_it_loads(self, record: PluginRecord) -> None:
        assert record.status in (Status.OK, Status.UNAVAILABLE), f"{record.status}: {record.reason}\n{record.traceback}"

    def test_it_says_which_api_it_was_written_for(self) -> None:
        assert import_module(self.plugin).OASR_API in SUPPORTED_API

    def test_declaring_components_imports_nothing_heavy(self, record: PluginRecord) -> None:
        assert heavy_modules_after(f"import {self.plugin}\n{self.plugin}.oasr_components()") == []

    def test_configs_import_nothing_heavy(self, record: PluginRecord) -> None:
        modules = {spec.config.partition(":")[0] for spec in record.specs if spec.config}
        assert heavy_modules_after("\n".join(f"import {module}" for module in sorted(modules))) == []

    def test_the_package_does_nothing_at_import(self) -> None:
        package = sys.modules[self.plugin.rpartition(".")[0]]
        assert package.__doc__, f"{package.__name__} says nothing about itself"
        public = [
            name
            for name, value in vars(package).items()
            if not name.startswith("__") and getattr(value, "__name__", "") != f"{package.__name__}.{name}"
        ]
        assert public == [], "import from the modules themselves; __init__.py is a docstring"

    def test_summaries_are_one_line_without_a_full_stop(self, record: PluginRecord) -> None:
        for spec in record.specs:
            assert "\n" not in spec.summary, spec.name
            assert not spec.summary.endswith("."), spec.name
            assert len(spec.summary) <= 80, spec.name

    def test_names_do_not_repeat_their_kind(self, record: PluginRecord) -> None:
        for spec in record.specs:
            assert spec.kind not in spec.name.split("-"), f"{spec.name} is a {spec.kind} already"

    def test_targets_can_be_imported_and_are_complete(self, registry: Registry, usable: list[ComponentSpec]) -> None:
        for spec in usable:
            assert registry.load(spec.kind, spec.name)

    def test_targets_say_what_they_are(self, registry: Registry, usable: list[ComponentSpec]) -> None:
        for spec in usable:
            assert vars(registry.load(spec.kind, spec.name)).get("__doc__"), f"{spec.target} has no docstring"

    def test_an_architecture_needs_nothing_of_other_components(self, record: PluginRecord) -> None:
        for spec in record.specs:
            assert spec.kind is not Kind.ARCHITECTURE or not spec.needs, spec.name

    def test_configs_refuse_unknown_keys(self, registry: Registry, usable: list[ComponentSpec]) -> None:
        for spec, model in self._configs(registry, usable):
            assert model.model_config.get("extra") == "forbid", f"{spec.config} accepts misspelt keys"

    def test_configs_do_not_change(self, registry: Registry, usable: list[ComponentSpec]) -> None:
        for spec, model in self._configs(registry, usable):
            assert model.model_config.get("frozen"), f"{spec.config} is not frozen"

    def test_configs_explain_what_users_set(self, registry: Registry, usable: list[ComponentSpec]) -> None:
        for spec, model in self._configs(registry, usable):
            if spec.kind in (Kind.ARCHITECTURE, Kind.FRONTEND):
                continue  # facts of a checkpoint, never written by hand
            assert getdoc(model), f"{spec.config} has no docstring"
            silent = [name for name, field in model.model_fields.items() if not field.description]
            assert silent == [], f"{spec.config} does not say what these are for"

    def test_defaults_round_trip_through_json(self, registry: Registry, usable: list[ComponentSpec]) -> None:
        for spec, model in self._configs(registry, usable):
            if any(field.is_required() for field in model.model_fields.values()):
                continue
            defaults = model()
            assert model.model_validate_json(defaults.model_dump_json()) == defaults, spec.config

    def _configs(
        self, registry: Registry, specs: list[ComponentSpec]
    ) -> list[tuple[ComponentSpec, type[ComponentConfig]]]:
        models = [(spec, registry.config_model(spec.kind, spec.name)) for spec in specs]
        found = [(spec, model) for spec, model in models if model is not None]
        if not found:
            pytest.skip("no component has options")
        return found
