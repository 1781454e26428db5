"""`oasr config`: write, show and check configurations, on a machine that need not have torch.

Only `oasr config show --model` needs it: what a checkpoint suggests is known once its network has been outlined.

`oasr config show --json` prints `{"config": {...}, "origins": {"decoder.beam": "oasr.toml", ...}}`.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from oasr.config import EngineConfig, document, load_config
from oasr.config.document import assignments
from oasr.errors import ConfigError
from oasr.output.sinks import write_whole

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Write, show and check configurations.")

Sets = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key, such as audio.workers=8. Repeatable.")
]


@app.command()
def init(
    model: Annotated[str | None, typer.Option(help="Folder, file, Hub id or packaged model to load.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output if absent.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a complete configuration with the defaults and a comment on each key."""
    text = document(load_config(flags={"model": model}).config)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        if output.exists() and not force:
            raise ConfigError(f"{output}: exists already. Choose another name or add --force.")
        write_whole(output, text.encode())
    except (OSError, UnicodeError) as error:  # UnicodeError: from a file name that is no UTF-8
        raise ConfigError(f"{output}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
    typer.echo(f"{output}: written")


@app.command()
def show(
    file: Annotated[Path | None, typer.Argument(help="Configuration file; the defaults if absent.")] = None,
    sets: Sets = [],  # noqa: B006  typer copies it
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Also take the defaults of this model; loads PyTorch.")
    ] = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value came from.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the origins.")] = False,
) -> None:
    """Print the configuration in effect, one key a line."""
    flags = {"model": model}
    loaded = load_config(file, sets, flags)
    if model is not None:
        loaded = load_config(file, sets, flags, _defaults_of(loaded.config))
    if as_json:
        shown = {"config": loaded.config.model_dump(mode="json"), "origins": loaded.origins}
        typer.echo(json.dumps(shown, indent=2))
        return
    lines = assignments(loaded.config)
    width = max(map(len, lines.values()))
    for key, line in lines.items():
        typer.echo(f"{line:<{width}}  # {loaded.origins[key]}" if origin else line)


@app.command()
def check(file: Annotated[Path, typer.Argument(help="Configuration file.")], sets: Sets = []) -> None:  # noqa: B006
    """Say `ok`, or list every fault and exit 2."""
    load_config(file, sets)
    typer.echo(f"{file}: ok")


def _defaults_of(config: EngineConfig) -> dict[str, str]:
    """What the configured checkpoint suggests."""
    from oasr.checkpoint.hub import locate
    from oasr.checkpoint.load import outline  # torch
    from oasr.checkpoint.sniff import open_checkpoint
    from oasr.registry import default_registry

    registry = default_registry()
    checkpoint = open_checkpoint(locate(config.model, registry), registry, config.format)
    return {"decoder": outline(checkpoint, registry).facts.default_decoder}
