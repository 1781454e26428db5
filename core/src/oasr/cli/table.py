"""Rows for a person or for grep."""

from collections.abc import Callable, Iterator, Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], style: Callable[[str], str] = lambda cell: ""
) -> None:
    """Print a table whose last column wraps on a terminal; elsewhere nothing does. `style` tells how a cell looks."""
    console = Console()
    if console.is_terminal:
        table = Table(box=None, pad_edge=False)
        for column in header[:-1]:
            table.add_column(column, no_wrap=True)
        table.add_column(header[-1], overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell, style(cell)) for cell in row))
        console.print(table)
        return
    for line in aligned([header, *rows]):  # a file or pipe has no width, and each row stays one line to grep for
        typer.echo(line)


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """One line a row, its cells in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
