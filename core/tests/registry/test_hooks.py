"""Hook implementations are called one at a time, and none can harm another."""

import logging

import pytest

from oasr.plugin import Check
from oasr.registry import Registry


def raising(stats):
    raise RuntimeError("no step today")


def test_every_implementation_is_called_in_the_order_of_distributions(make_plugin) -> None:
    called = []
    registry = Registry.from_modules(
        make_plugin("zeta-z", oasr_engine_started=lambda info: called.append(("z", info))),
        make_plugin("acme-a", oasr_engine_started=lambda: called.append("a")),  # may take fewer arguments
    )
    registry.hooks.call("oasr_engine_started", info=7)
    assert called == ["a", ("z", 7)]


@pytest.mark.parametrize("failure", [RuntimeError("no"), SystemExit(2)])
def test_one_that_raises_does_not_keep_the_next_from_being_called(make_plugin, failure: BaseException) -> None:
    def fail(info):
        raise failure

    def note(info):
        called.append(info)

    called = []
    registry = Registry.from_modules(
        make_plugin("acme-a", oasr_engine_started=fail), make_plugin("zeta-z", oasr_engine_started=note)
    )
    registry.hooks.call("oasr_engine_started", info=7)
    assert called == [7]


def test_an_interrupt_passes(make_plugin) -> None:
    def interrupt():
        raise KeyboardInterrupt

    registry = Registry.from_modules(make_plugin("acme-a", oasr_engine_started=interrupt))
    with pytest.raises(KeyboardInterrupt):
        registry.hooks.call("oasr_engine_started", info=None)


def test_a_repeat_offender_is_logged_once_and_then_muted(make_plugin, caplog: pytest.LogCaptureFixture) -> None:
    def note(stats):
        values.append(stats)

    calls, values = [], []
    registry = Registry.from_modules(
        make_plugin("acme-a", oasr_step_finished=lambda stats: calls.append(stats) or raising(stats)),
        make_plugin("zeta-z", oasr_step_finished=note),
    )
    with caplog.at_level(logging.WARNING, "oasr"):
        for step in range(10):
            registry.hooks.call("oasr_step_finished", stats=step)
    assert values == list(range(10))
    assert calls == [0, 1, 2]
    first, last = caplog.messages
    assert "no step today" in first
    assert "muted" in last


def test_a_hook_is_implemented_only_when_a_plugin_has_it(make_plugin) -> None:
    registry = Registry.from_modules(make_plugin("acme-a", oasr_step_finished=raising))
    assert registry.hooks.implements("oasr_step_finished")
    assert not registry.hooks.implements("oasr_request_finished")


def test_collected_lists_are_checked_item_by_item(make_plugin) -> None:
    check = Check("ok", "acme", "well")
    registry = Registry.from_modules(
        make_plugin("acme-a", oasr_doctor=lambda: [check]),
        make_plugin("acme-b", oasr_doctor=lambda: ["well"]),
        make_plugin("acme-c", oasr_doctor=lambda: None),
    )
    good, *bad = registry.hooks.collect("oasr_doctor", Check)
    assert good.value == [check]
    assert all(isinstance(each.error, TypeError) for each in bad)
