"""The entry of `oasr`: which commands there are, and how errors become exit codes.

A command's module is imported when that command runs, so that `oasr --help` and `oasr plugins` stay fast and work
where torch does not. To add a command, add a row to `COMMANDS`; a plugin adds one with the hook `oasr_commands`.
"""

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from oasr import __version__
from oasr.cli.progress import print_line
from oasr.errors import (
    AmbiguousComponentError,
    CheckpointError,
    ConfigError,
    DeviceError,
    OasrError,
    RequestError,
    UnknownComponentError,
)
from oasr.output.sinks import silence_standard_output
from oasr.plugin import CommandSpec

# Targets are a `typer.Typer(add_completion=False)` or a function with typer annotations.
COMMANDS = (
    CommandSpec("transcribe", "Write down what is said in audio and video files", "oasr.cli.transcribe:app"),
    CommandSpec("translate", "Write down in English what is said in them", "oasr.cli.transcribe:translate_app"),
    CommandSpec("stream", "Write down live audio while it is spoken", "oasr.cli.stream:command"),
    CommandSpec("models", "List the models that are on this machine", "oasr.cli.models:command"),
    CommandSpec("convert", "Write a checkpoint in OASR's own layout", "oasr.cli.convert:command"),
    CommandSpec("plugins", "List the installed plugins and what is wrong with them", "oasr.cli.plugins:app"),
    CommandSpec("check", "Hold a plugin to the laws of what it offers", "oasr.cli.check:command"),
    CommandSpec("config", "Write, show and check configurations", "oasr.cli.config:app"),
    CommandSpec("doctor", "Check this machine: versions, devices, plugins, caches", "oasr.cli.doctor:command"),
)

# What stops a command before it has done anything.
_NOTHING_DONE = (
    CheckpointError,
    ConfigError,
    DeviceError,
    UnknownComponentError,
    AmbiguousComponentError,
    RequestError,
)

_INTERRUPTED = 130  # as shells say of a process that SIGINT ended

_log = logging.getLogger("oasr")


class _Placeholder(TyperCommand):
    """A command that is not imported yet: enough of it for `oasr --help`."""

    def __init__(self, spec: CommandSpec, provider: str):
        super().__init__(spec.name, help=spec.summary, short_help=spec.summary)
        self.provider = provider
        self._target = spec.target

    def load(self) -> Any:
        """Import the command. Raises `ComponentLoadError` naming the distribution when that fails."""
        from oasr.registry.registry import import_of_plugin

        target = import_of_plugin(self._target, f'Command "{self.name}" of {self.provider}')
        if not isinstance(target, typer.Typer):
            function, target = target, typer.Typer(add_completion=False)
            target.command(self.name)(function)
        return typer.main.get_command(target)


class _LazyGroup(TyperGroup):
    """Holds placeholders; only `resolve_command`, which runs a command, imports one."""

    def __init__(self, **attributes: Any):
        super().__init__(**attributes)
        self.commands = {spec.name: _Placeholder(spec, "oasr-core") for spec in COMMANDS}
        self._asked_plugins = False

    def list_commands(self, ctx: Any) -> list[str]:
        self._ask_plugins()
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # Core's own commands are found without discovery, so they also run where discovery would be in the way.
        if cmd_name not in self.commands:
            self._ask_plugins()
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found.load() if isinstance(found, _Placeholder) else found, rest

    def _ask_plugins(self) -> None:
        if self._asked_plugins:
            return
        self._asked_plugins = True
        from oasr.registry import default_registry

        offers: dict[str, list[_Placeholder]] = {}
        for result in default_registry().hooks.collect("oasr_commands", CommandSpec):
            provider = result.plugin.partition(":")[0]
            for spec in result.value or ():
                offers.setdefault(spec.name, []).append(_Placeholder(spec, provider))
        for name, claimants in offers.items():
            if name not in self.commands and len(claimants) == 1:
                self.commands[name] = claimants[0]
                continue
            rivals = [*(each.provider for each in claimants), *(["oasr-core"] if name in self.commands else [])]
            _log.warning(
                "command %s is provided by %s; OASR_PLUGINS_DISABLE can switch one off", name, " and ".join(rivals)
            )


app = typer.Typer(cls=_LazyGroup, name="oasr", no_args_is_help=True, add_completion=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oasr-core {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error (or OASR_DEBUG=1).")] = False,
) -> None:
    """OASR: inference and serving for speech recognition, built from plugins."""
    if debug:
        os.environ["OASR_DEBUG"] = "1"  # the environment, so that worker processes know too


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `oasr` and return its exit code.

    0 done, 2 when nothing was done because of the command, the model or the device, 130 interrupted, 1 for all else.
    """
    try:
        code = _run(arguments)
        if sys.stdout is not None:  # absent when the shell closed it with >&-
            sys.stdout.flush()
        return code
    except OasrError as error:
        if os.environ.get("OASR_DEBUG", "") not in ("", "0"):
            print_line("".join(traceback.format_exception(error)).rstrip())
        else:
            print_line(str(error))
        return 2 if isinstance(error, _NOTHING_DONE) else 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        if not _standard_output_fails():
            raise
        silence_standard_output()
        if not isinstance(error, BrokenPipeError):  # a reader that left, as `head` does, wants to hear nothing
            print_line(f"standard output cannot be written: {error.strerror or error}")
        return 1


def console() -> NoReturn:
    """`main` as a process, which an interrupt ends at once: threads that still read would keep it alive."""
    try:
        code = main()
    except KeyboardInterrupt:  # a second one, while the first was being answered
        code = _INTERRUPTED
    if code != _INTERRUPTED:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or without room
            stream.flush()
    os._exit(code)


def _standard_output_fails() -> bool:
    """Whether an error was about standard output, which says nothing of itself: one more line shows it."""
    try:
        print(flush=True)
    except OSError:
        return True
    return False


def _run(arguments: Sequence[str] | None) -> int:
    """typer ends in `SystemExit` after printing usage errors itself; this returns the code instead."""
    try:
        typer.main.get_command(app).main(None if arguments is None else list(arguments), prog_name="oasr")
    except SystemExit as exit_:
        if isinstance(exit_.code, str):
            print_line(exit_.code)
            return 1
        return exit_.code or 0
    return 0
