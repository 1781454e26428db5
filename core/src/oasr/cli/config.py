"""`oasr config`: write, show and check configurations, on a machine that need not have torch.

`oasr config show --json` prints `{"config": {...}, "origins": {"decoder.beam": "oasr.toml", ...}}`.
"""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from oasr.config import document, load_config
from oasr.config.document import assignments
from oasr.errors import ConfigError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Write, show and check configurations.")

_Sets = Annotated[
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
    if output.exists() and not force:
        raise ConfigError(f"{output}: exists already. Choose another name or add --force.")
    _replace(output, text)
    typer.echo(f"{output}: written")


@app.command()
def show(
    file: Annotated[Path | None, typer.Argument(help="Configuration file; the defaults if absent.")] = None,
    sets: _Sets = [],  # noqa: B006  typer copies it
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value came from.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the origins.")] = False,
) -> None:
    """Print the configuration in effect, one key a line."""
    loaded = load_config(file, sets)
    if as_json:
        shown = {"config": loaded.config.model_dump(mode="json"), "origins": loaded.origins}
        typer.echo(json.dumps(shown, indent=2))
        return
    lines = assignments(loaded.config)
    width = max(map(len, lines.values()))
    for key, line in lines.items():
        typer.echo(f"{line:<{width}}  # {loaded.origins[key]}" if origin else line)


@app.command()
def check(file: Annotated[Path, typer.Argument(help="Configuration file.")], sets: _Sets = []) -> None:  # noqa: B006
    """Say `ok`, or list every fault and exit 2."""
    load_config(file, sets)
    typer.echo(f"{file}: ok")


def _replace(path: Path, text: str) -> None:
    """Write the whole file or nothing."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except (OSError, ValueError) as error:  # ValueError: text that is no UTF-8, from a file name that is none
        part.unlink(missing_ok=True)
        raise ConfigError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
