"""What commands that read shards one by one have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit._errors import InputError
from edokit.cli import console, options

if TYPE_CHECKING:
    from rich.progress import Progress

    from edokit.fitdata import FitData
    from edokit.predictions import Shards

Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream",
        help="Read shard by shard; by default a folder that would need more than --memory.",
        show_default=False,
    ),
]
Memory = Annotated[
    str, typer.Option(metavar="SIZE", help="What shards in flight may take, e.g. 500MiB or 8GiB.")
]
Jobs = Annotated[
    int | None,
    typer.Option(help="Shards at a time; else one per core, as far as --memory goes."),
]
Engine = Annotated[
    str, typer.Option(help="Where shards are read: local, or a Dask cluster: dask://host:port.")
]
Scratch = Annotated[
    Path | None,
    typer.Option(help="Folder for the working copy of shards; else TMPDIR or /var/tmp."),
]
MEMORY = "2GiB"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?)?b?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """``"2GiB"`` in bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise InputError(
            f"--memory must be a size above 0, but got {text!r}", "write for example --memory 2GiB"
        )
    return int(float(found[1]) * _UNITS[(found[2] or "").lower()])


def to_stream(
    predictions: Path, stream: bool | None, memory: str, engine: str = "local"
) -> Shards | None:
    """The shards, if they are to be read one by one: as asked, else if they are large."""
    from edokit.predictions import Shards

    most = parse_size(memory)
    asked = stream or (stream is None and engine != "local")
    if not asked and (stream is False or not predictions.is_dir()):
        return None
    shards = Shards.open(predictions)
    return shards if asked or shards.needs > most else None


def pass_bar(bars: Progress, shards: int) -> Callable[[str, int, int], None]:
    """A bar among ``bars`` for each pass over the shards."""
    task = bars.add_task("reading", total=shards, detail="")

    def update(what: str, done: int, total: int) -> None:
        bars.update(task, description=what, completed=done, total=total)

    return update


@contextmanager
def labelled(
    shards: Shards,
    annotations: Path,
    *,
    memory: str,
    jobs: int | None,
    engine: str,
    scratch: Path | None,
    column: list[str] | None = None,
    split: str | None = None,
    classes: str | None = None,
    **said: Any,
) -> Iterator[FitData]:
    """Shards with the annotations that the shared options describe, and a bar for each pass."""
    from edokit.fitdata import FitData

    columns = options.pairs(column, "--column", "ROLE=NAME")
    given = {"columns": columns or None, **said}
    with (
        console.progress() as bars,
        FitData.open(
            shards,
            annotations,
            classes=options.names(classes),
            splits=options.names(split) or (),
            jobs=jobs,
            engine=engine,
            memory=parse_size(memory),
            scratch=scratch,
            progress=pass_bar(bars, len(shards.files)),
            **{name: value for name, value in given.items() if value is not None},
        ) as data,
    ):
        yield data
