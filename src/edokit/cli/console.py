"""What a person sees: tables on stdout, progress on stderr."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.progress import Progress


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    typer.echo(json_module.dumps(value, ensure_ascii=False, allow_nan=False))


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> None:
    """A table with text on the left and numbers on the right, and lines below it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for position, name in enumerate(header):
        table.add_column(name, justify="left" if position == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # Data may hold square brackets; they are text here, not markup.
    console = Console(highlight=False, markup=False)
    console.print(table)
    for note in notes:
        console.print(note)


def done(result: dict[str, Any], line: str, json: bool) -> None:
    """What was made, as JSON or as one line."""
    if json:
        print_json(result)
    else:
        typer.echo(line)


@contextmanager
def progress() -> Iterator[Progress]:
    """Progress bars on stderr, silent when it is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as bars:
        yield bars
