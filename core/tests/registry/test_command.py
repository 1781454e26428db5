"""The `oasr` command: what it imports when, and how errors become exit codes."""

import re
import subprocess
import sys
from types import ModuleType

import pytest
import typer

import oasr.builtin.plugin
import oasr.registry
from oasr import __version__
from oasr.cli.main import main
from oasr.errors import AudioError, ConfigError, OasrError, UnknownComponentError
from oasr.plugin import CommandSpec
from oasr.registry import Registry


@pytest.fixture
def with_commands(make_plugin, monkeypatch: pytest.MonkeyPatch):
    """Gives `oasr` these commands, each a function, as if a plugin had added them."""

    def install(*distributions: str, **commands) -> None:
        module = ModuleType("acme_commands")
        vars(module).update(commands)
        monkeypatch.setitem(sys.modules, "acme_commands", module)
        specs = [CommandSpec(name, "A command", f"acme_commands:{name}") for name in commands]
        plugins = [make_plugin(name, oasr_commands=lambda: specs) for name in distributions or ("acme-x",)]
        registry = Registry.from_modules(*plugins)
        monkeypatch.setattr(oasr.registry, "default_registry", lambda: registry)

    return install


def raising(error: BaseException):
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("wrong"), 2),
        (UnknownComponentError("wrong"), 2),
        (AudioError("a.wav", "wrong"), 1),
        (OasrError("wrong"), 1),
        (typer.BadParameter("wrong"), 2),
        (typer.Exit(5), 5),
        (SystemExit("wrong"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_become_exit_codes(with_commands, capsys, error: BaseException, code: int) -> None:
    with_commands(fail=raising(error))
    assert main(["fail"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_is_one_message_on_standard_error(with_commands, capsys) -> None:
    with_commands(fail=raising(ConfigError("the beam is too wide")))
    main(["fail"])
    assert capsys.readouterr() == ("", "oasr: the beam is too wide\n")


@pytest.mark.parametrize("arguments", [["--debug", "fail"], ["fail"]])
def test_debug_shows_the_traceback(with_commands, capsys, monkeypatch, arguments: list[str]) -> None:
    monkeypatch.setenv("OASR_DEBUG", "0" if "--debug" in arguments else "1")
    with_commands(fail=raising(ConfigError("wrong")))
    assert main(arguments) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ZeroDivisionError(), PermissionError(13, "Permission denied", "/etc/shadow")])
@pytest.mark.parametrize("stdout", ["open", "closed"])
def test_a_defect_is_not_dressed_up(with_commands, monkeypatch, error: Exception, stdout: str) -> None:
    if stdout == "closed":
        monkeypatch.setattr(sys, "stdout", None)
    with_commands(fail=raising(error))
    with pytest.raises(type(error)):
        main(["fail"])


@pytest.mark.parametrize("arguments", ["plugins", "doctor", "--version", "config show"])
def test_standard_output_may_be_closed(arguments: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m oasr {arguments} >&-"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)


@pytest.mark.parametrize("arguments", ["plugins", "plugins --json", "config show"])
def test_a_full_disk_under_standard_output_is_one_line(arguments: str) -> None:
    command = f"exec {sys.executable} -m oasr {arguments} >/dev/full"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    message = "oasr: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_a_plugins_command_is_in_the_help_without_being_imported(with_commands, capsys, monkeypatch) -> None:
    with_commands(greet=lambda: None)
    monkeypatch.delitem(sys.modules, "acme_commands")
    assert main(["--help"]) == 0
    assert "greet" in capsys.readouterr().out


def test_a_command_that_cannot_be_imported_names_its_distribution(with_commands, capsys, monkeypatch) -> None:
    with_commands(greet=lambda: None)
    monkeypatch.delitem(sys.modules, "acme_commands")
    assert main(["greet"]) == 1
    assert 'Command "greet" of acme-x cannot be loaded' in capsys.readouterr().err


def test_a_command_may_be_a_typer_application(with_commands, capsys) -> None:
    app = typer.Typer(add_completion=False)

    @app.callback()
    def group() -> None:
        """A group."""

    @app.command()
    def hello(name: str) -> None:
        print(f"hello {name}")

    with_commands(greet=app)
    assert main(["greet", "hello", "you"]) == 0
    assert capsys.readouterr().out == "hello you\n"


def test_a_command_that_two_plugins_add_is_neither_ones(with_commands, capsys, caplog) -> None:
    with_commands("acme-x", "beamy-y", greet=lambda: None)
    assert main(["greet"]) == 2
    assert "command greet is provided by acme-x and beamy-y" in caplog.text


def test_a_plugin_cannot_take_a_command_of_core(with_commands, capsys, caplog) -> None:
    with_commands(plugins=lambda: print("mine"))
    assert main(["--help"]) == 0
    assert "command plugins is provided by acme-x and oasr-core" in caplog.text
    assert main(["plugins"]) == 0
    assert "mine" not in capsys.readouterr().out


def test_a_misspelt_command_gets_a_suggestion(with_commands, capsys) -> None:
    with_commands()
    assert main(["plugns"]) == 2
    assert "plugins" in capsys.readouterr().err


def test_version(capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"oasr-core {__version__}\n"


def test_show_finds_a_plugin_by_a_component(capsys) -> None:
    assert main(["plugins", "show", "bucketed"]) == 0
    assert "distribution: oasr-core" in capsys.readouterr().out


def test_show_tells_where_the_code_lies_which_metadata_of_an_editable_install_does_not(capsys) -> None:
    assert main(["plugins", "show", "core"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"code: +{re.escape(str(oasr.builtin.plugin.__file__))}$", out, re.MULTILINE)
    assert re.search(r"metadata: +\S", out)


def test_show_of_something_unknown_suggests(capsys) -> None:
    assert main(["plugins", "show", "bucketd"]) == 2
    assert 'Did you mean "bucketed"?' in capsys.readouterr().err


def test_the_listing_can_be_limited_to_a_kind(capsys) -> None:
    assert main(["plugins", "--kind", "batching"]) == 0
    out = capsys.readouterr().out
    assert "bucketed" in out
    assert "log-mel" not in out


@pytest.mark.parametrize("arguments", ["plugins", "plugins --json", "--help"])
def test_a_reader_that_leaves_is_no_error_to_talk_about(arguments: str) -> None:
    # The pipe is closed before anything is written, which head only sometimes manages.
    script = f"sleep 1; exec {sys.executable} -m oasr {arguments}"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
