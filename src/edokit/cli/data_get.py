"""`edo data get`: obtain a public dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import counted, one_of
from edokit.cli import console, options


def get(
    name: Annotated[str, typer.Argument(help="lewidi2023.", show_default=False)],
    out: Annotated[Path, typer.Argument(help="Where the dataset goes.")] = Path("lewidi2023"),
    source: Annotated[
        Path | None, typer.Option("--from", help="A local copy instead of the official repository.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Download a dataset from its official repository, or copy it, with checksums verified."""
    from edokit.datasets.read import obtainable

    known = obtainable()
    one_of("the dataset", name, known)
    with console.progress() as bars:
        task = bars.add_task("files", total=None, detail="")

        def step(done: int, total: int, file: str) -> None:
            bars.update(task, completed=done, total=total, detail=file)

        files = known[name](out, source=source, progress=step)
    console.done(
        {"out": str(out), "files": [str(file) for file in files]},
        f"{out}: {counted(len(files), 'file')}, checksums verified",
        json,
    )
