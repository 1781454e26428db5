"""The hooks a plugin may implement. All are optional.

An implementation takes any subset of the arguments, by name. Later versions of core may add arguments; nothing is
renamed or removed without a new `OASR_API`. Hooks are for what everybody may do; what the user picks by name is a
component.
"""

from oasr.plugin import Check, CommandSpec, ComponentSpec, hookspec
from oasr.types import EngineInfo, Outcome, StepStats


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
def oasr_engine_started(info: EngineInfo) -> None:
    """An engine is ready for requests."""


@hookspec
def oasr_engine_stopped(info: EngineInfo) -> None:
    """An engine takes no more requests."""


@hookspec
def oasr_request_finished(outcome: Outcome) -> None:
    """A request has ended, with a transcript or an error."""


@hookspec
def oasr_step_finished(stats: StepStats) -> None:
    """The engine completed one step. Not called at all when nobody implements it."""
