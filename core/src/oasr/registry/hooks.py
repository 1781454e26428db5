"""The hooks a plugin may implement. All are optional.

An implementation takes any subset of the arguments, by name. Later versions of core may add arguments; nothing is
renamed or removed without a new `OASR_API`. Hooks are for what everybody may do; what the user picks by name is a
component.
"""

from typing import Any

from oasr.plugin import Check, CommandSpec, ComponentSpec, hookspec


@hookspec
def oasr_components() -> list[ComponentSpec]:  # type: ignore[empty-body]
    """Declare the components this distribution offers. Called once, at discovery."""


@hookspec
def oasr_commands() -> list[CommandSpec]:  # type: ignore[empty-body]
    """Add commands to `oasr`. Called for `oasr --help` and for a command that core does not have."""


@hookspec
def oasr_doctor() -> list[Check]:  # type: ignore[empty-body]
    """Check what this plugin needs from the machine. Called by `oasr doctor`."""


@hookspec
def oasr_engine_started(info: Any) -> None:
    """An engine is ready for requests."""


@hookspec
def oasr_engine_stopped(info: Any) -> None:
    """An engine has finished its last request and released the device."""


@hookspec
def oasr_request_finished(request: Any, transcript: Any, timing: Any) -> None:
    """A request has its final transcript; `timing` says how long each stage took."""


@hookspec
def oasr_step_finished(stats: Any) -> None:
    """The scheduler completed one step. Not called at all when nobody implements it."""
