"""`oasr convert`: writes a checkpoint of any toolkit in OASR's own layout, which loads without its format's plugin."""

from pathlib import Path
from typing import Annotated

import typer

from oasr.errors import ConfigError


def command(
    source: Annotated[str, typer.Argument(help="Folder, file, Hub id or packaged model to convert.")],
    destination: Annotated[Path, typer.Argument(help="Folder to write; it must not exist or be empty.")],
    format_name: Annotated[str | None, typer.Option("--format", help="Read the source in this format.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier conversion.")] = False,
) -> None:
    """Write a checkpoint in OASR's own layout: safetensors and oasr.json."""
    # Imported here because they import torch, which `oasr convert --help` need not wait for.
    from oasr.checkpoint.convert import convert
    from oasr.checkpoint.hub import locate
    from oasr.checkpoint.sniff import open_checkpoint
    from oasr.registry import default_registry

    try:
        destination = destination.expanduser()
    except RuntimeError:
        raise ConfigError(f"{destination}: there is no such user; ./{destination} names a folder here") from None
    registry = default_registry()
    checkpoint = open_checkpoint(locate(source, registry), registry, format_name)
    typer.echo(f"Reading {checkpoint.path}: {checkpoint.architecture}, {checkpoint.naming} names")
    folder = convert(checkpoint, registry, destination, force)
    size = sum(path.stat().st_size for path in folder.iterdir())
    typer.echo(f"Wrote {folder}: {size / 1e6:,.1f} MB")
