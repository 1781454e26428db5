"""`oasr convert`."""

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from oasr.checkpoint.convert import convert
from oasr.cli.convert import command
from oasr.errors import CheckpointError, ConfigError
from oasr.registry import Registry


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, registry: Registry) -> Callable:
    monkeypatch.setattr("oasr.registry.default_registry", lambda: registry)
    app = typer.Typer()
    app.command()(command)
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def test_it_says_what_it_read_and_what_it_wrote(
    run: Callable, toy: Callable, registry: Registry, tmp_path: Path
) -> None:
    source = convert(toy(), registry, tmp_path / "first")
    result = run(source, tmp_path / "模型 dir" / "second")
    assert result.exit_code == 0
    assert f"Reading {source}: toy" in result.output
    assert f"Wrote {tmp_path / '模型 dir' / 'second'}" in result.output
    assert (tmp_path / "模型 dir" / "second" / "oasr.json").exists()


def test_it_replaces_an_earlier_conversion_only_with_force(
    run: Callable, toy: Callable, registry: Registry, tmp_path: Path
) -> None:
    source = convert(toy(), registry, tmp_path / "first")
    assert run(source, tmp_path / "second").exit_code == 0
    assert isinstance(run(source, tmp_path / "second").exception, CheckpointError)
    assert run(source, tmp_path / "second", "--force").exit_code == 0


def test_the_home_of_nobody_is_no_destination(run: Callable, toy: Callable, registry: Registry, tmp_path: Path) -> None:
    source = convert(toy(), registry, tmp_path / "first")
    assert isinstance(run(source, "~no-such-user/x").exception, ConfigError)
    assert isinstance(run("~no-such-user/x", tmp_path / "second").exception, CheckpointError)
