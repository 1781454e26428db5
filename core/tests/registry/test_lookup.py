"""Names, aliases, qualified names, and what is said when a lookup fails."""

import sys
from types import ModuleType

import pytest
from pydantic import ValidationError

from oasr.errors import AmbiguousComponentError, ComponentError, ComponentLoadError, UnknownComponentError
from oasr.interfaces.batching import BatchingPolicy
from oasr.interfaces.component import ComponentConfig
from oasr.plugin import ComponentSpec, Kind
from oasr.registry import Registry, Status


def decoder(name: str, **fields) -> ComponentSpec:
    return ComponentSpec(Kind.DECODER, name, "A decoder", f"acme.{name.replace('-', '_')}:Decoder", **fields)


def status_of(registry: Registry, distribution: str) -> Status:
    return next(record.status for record in registry.records if record.distribution == distribution)


def test_a_component_is_found_by_name_alias_and_qualified_name(make_plugin) -> None:
    beam = decoder("beam", aliases=("BeamSearch",))
    registry = Registry.from_modules(make_plugin("acme-oasr-beam", [beam]))
    for name in ("beam", "BeamSearch", "beam@acme-oasr-beam", "BeamSearch@acme-oasr-beam", "beam@Acme_OASR.beam"):
        assert registry.spec(Kind.DECODER, name) is beam
    assert registry.names(Kind.DECODER) == ["beam"]


def test_a_kind_may_be_written_as_text(make_plugin) -> None:
    beam = decoder("beam")
    assert Registry.from_modules(make_plugin("acme-x", [beam])).spec("decoder", "beam") is beam


def test_kinds_have_separate_names(make_plugin) -> None:
    plugin = make_plugin("acme-x", [decoder("bucketed")])
    assert status_of(Registry.from_modules(plugin), "acme-x") is Status.OK


def test_an_unknown_name_lists_what_exists_and_what_was_meant(make_plugin) -> None:
    registry = Registry.from_modules(make_plugin("acme-x", [decoder("beam"), decoder("greedy")]))
    with pytest.raises(UnknownComponentError) as caught:
        registry.spec(Kind.DECODER, "Baem")
    assert str(caught.value) == 'No decoder named "Baem". Installed: beam, greedy. Did you mean "beam"?'


def test_without_any_component_of_the_kind_the_message_says_so() -> None:
    with pytest.raises(UnknownComponentError, match=r'^No quantizer named "x". Installed: none\.$'):
        Registry.from_modules().spec(Kind.QUANTIZER, "x")


def test_a_name_known_elsewhere_comes_with_its_install_command() -> None:
    with pytest.raises(UnknownComponentError) as caught:
        Registry.from_modules().spec(Kind.ARCHITECTURE, "paraformer")
    expected = 'No architecture named "paraformer". It is provided by oasr-paraformer: pip install oasr-paraformer'
    assert str(caught.value) == expected


def test_the_hint_knows_when_the_provider_is_installed_but_broken(make_plugin) -> None:
    broken = make_plugin("oasr-paraformer", None)
    with pytest.raises(UnknownComponentError, match=r"installed but broken\. Run: oasr plugins show paraformer"):
        Registry.from_modules(broken).spec(Kind.ARCHITECTURE, "paraformer")


def test_an_unknown_name_mentions_plugins_that_failed_to_load(make_plugin) -> None:
    registry = Registry.from_modules(make_plugin("acme-x", oasr_componentz=lambda: []))
    with pytest.raises(UnknownComponentError, match=r"1 plugin failed to load \(acme-x: .*\)\. Run: oasr plugins$"):
        registry.spec(Kind.DECODER, "beam")


def test_a_disputed_name_belongs_to_neither_and_both_stay_reachable(make_plugin) -> None:
    first, second = decoder("beam"), decoder("beam")
    registry = Registry.from_modules(
        make_plugin("acme-x", [first, decoder("only-x")]), make_plugin("beamy-y", [second])
    )
    assert status_of(registry, "acme-x") is status_of(registry, "beamy-y") is Status.CONFLICT
    assert registry.names(Kind.DECODER) == ["beam@acme-x", "beam@beamy-y", "only-x"]
    with pytest.raises(AmbiguousComponentError) as caught:
        registry.spec(Kind.DECODER, "beam")
    expected = 'Decoder "beam" is provided by acme-x and beamy-y. Write beam@acme-x or beam@beamy-y.'
    assert str(caught.value) == expected
    assert registry.spec(Kind.DECODER, "beam@acme-x") is first
    assert registry.spec(Kind.DECODER, "beam@beamy-y") is second


def test_an_alias_can_dispute_a_name_without_taking_the_owners_own(make_plugin) -> None:
    registry = Registry.from_modules(
        make_plugin("acme-x", [decoder("beam")]), make_plugin("beamy-y", [decoder("fast", aliases=("beam",))])
    )
    assert status_of(registry, "beamy-y") is Status.CONFLICT
    assert registry.names(Kind.DECODER) == ["beam@acme-x", "fast"]
    with pytest.raises(AmbiguousComponentError):
        registry.spec(Kind.DECODER, "beam")


def test_core_keeps_its_name_and_the_plugin_is_marked(make_plugin) -> None:
    rival = ComponentSpec(Kind.BATCHING, "bucketed", "Another", "acme.batching:Policy")
    registry = Registry.from_modules(make_plugin("acme-x", [rival]))
    assert status_of(registry, "oasr-core") is Status.OK
    assert status_of(registry, "acme-x") is Status.CONFLICT
    assert registry.spec(Kind.BATCHING, "bucketed").target.startswith("oasr.")
    assert registry.spec(Kind.BATCHING, "bucketed@acme-x") is rival
    assert registry.names(Kind.BATCHING) == ["bucketed", "bucketed@acme-x"]


def test_a_component_with_an_absent_requirement_says_what_to_install(make_plugin) -> None:
    needy = decoder("needy", requires=("module_that_nobody_has",))
    registry = Registry.from_modules(make_plugin("acme-x", [needy, decoder("plain")]))
    assert status_of(registry, "acme-x") is Status.UNAVAILABLE
    assert registry.names(Kind.DECODER) == ["plain"]
    assert [spec.name for spec, _ in registry.specs(Kind.DECODER)] == ["needy", "plain"]
    with pytest.raises(ComponentLoadError, match="pip install module_that_nobody_has"):
        registry.spec(Kind.DECODER, "needy")


def test_lookup_errors_are_value_errors_so_that_pydantic_reports_them() -> None:
    assert issubclass(ComponentError, ValueError)


def test_a_sealed_registry_can_do_without_the_builtins(make_plugin) -> None:
    registry = Registry.from_modules(make_plugin("acme-x", [decoder("beam")]), builtins=False)
    assert [record.distribution for record in registry.records] == ["acme-x"]


class Policy(BatchingPolicy):
    def __init__(self, config):
        pass

    def choose(self, waiting, budget, now):
        return []


class Unfinished(BatchingPolicy):
    pass


class Options(ComponentConfig):
    rows: int = 1


@pytest.fixture
def load(make_plugin, monkeypatch: pytest.MonkeyPatch):
    """Loads a batching policy whose target is the given text, from a module that holds the classes above."""
    module = ModuleType("acme_targets")
    vars(module).update(Policy=Policy, Unfinished=Unfinished, Options=Options, function=len)
    monkeypatch.setitem(sys.modules, "acme_targets", module)

    def registry_with(target: str, **fields) -> Registry:
        spec = ComponentSpec(fields.pop("kind", Kind.BATCHING), "mine", "Mine", target, **fields)
        return Registry.from_modules(make_plugin("acme-x", [spec]))

    return registry_with


def test_load_returns_the_class(load) -> None:
    assert load("acme_targets:Policy").load(Kind.BATCHING, "mine") is Policy


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("acme_targets:Absent", "has no attribute 'Absent'"),
        ("acme_absent:Policy", "No module named 'acme_absent'"),
        ("acme_targets:Options", "is not a subclass of oasr.interfaces.batching.BatchingPolicy"),
        ("acme_targets:function", "is not a subclass of"),
        ("acme_targets:Unfinished", "does not implement __init__, choose"),
    ],
)
def test_load_refuses_what_is_not_a_whole_component(load, target: str, complaint: str) -> None:
    with pytest.raises(ComponentLoadError, match=complaint) as caught:
        load(target).load(Kind.BATCHING, "mine")
    assert 'Batching "mine" of acme-x' in str(caught.value)


def test_the_cause_of_a_failed_load_is_chained(load) -> None:
    with pytest.raises(ComponentLoadError) as caught:
        load("acme_absent:Policy").load(Kind.BATCHING, "mine")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_an_interrupt_while_loading_is_not_swallowed(load, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting(ModuleType):
        def __getattr__(self, name: str):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "acme_interrupting", Interrupting("acme_interrupting"))
    with pytest.raises(KeyboardInterrupt):
        load("acme_interrupting:Policy").load(Kind.BATCHING, "mine")


def test_a_kind_without_an_interface_is_refused(load) -> None:
    registry = load("acme_targets:Policy", kind=Kind.POSTPROCESSOR)
    with pytest.raises(ComponentLoadError, match="this version of oasr-core has no use for postprocessor"):
        registry.load(Kind.POSTPROCESSOR, "mine")


def test_the_config_model_is_imported_by_itself(load) -> None:
    registry = load("acme_absent:Policy", config="acme_targets:Options")
    assert registry.config_model(Kind.BATCHING, "mine") is Options


def test_a_component_without_options_has_no_config_model(load) -> None:
    assert load("acme_targets:Policy").config_model(Kind.BATCHING, "mine") is None


@pytest.mark.parametrize("config", ["acme_targets:Policy", "acme_absent:Options"])
def test_a_config_model_of_another_type_is_refused(load, config: str) -> None:
    with pytest.raises(ComponentLoadError):
        load("acme_targets:Policy", config=config).config_model(Kind.BATCHING, "mine")


def test_a_component_is_made_from_its_options() -> None:
    registry = Registry.from_modules()
    assert registry.create(Kind.BATCHING, "bucketed", {"max_rows": 3}).max_rows == 3
    with pytest.raises(ValidationError, match="max_row"):
        registry.create(Kind.BATCHING, "bucketed", {"max_row": 3})


def test_a_component_whose_constructor_fails_is_named(make_plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fragile(BatchingPolicy):
        max_rows = None

        def __init__(self, config: object):
            raise FileNotFoundError("no such table")

        def choose(self, waiting: object, budget: object, now: float) -> list[int]:
            return []

    parts = ModuleType("fragile_parts")
    parts.Fragile = Fragile
    monkeypatch.setitem(sys.modules, "fragile_parts", parts)
    spec = ComponentSpec(Kind.BATCHING, "fragile", "Breaks", "fragile_parts:Fragile")
    registry = Registry.from_modules(make_plugin("acme-fragile", [spec]))
    with pytest.raises(ComponentLoadError, match=r"acme-fragile.*could not be made: FileNotFoundError: no such table"):
        registry.construct(Kind.BATCHING, "fragile", None)
