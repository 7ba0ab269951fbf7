"""`edo predictions info`: what is in a predictions file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import counted
from edokit.cli import console, options


def info(
    path: Annotated[
        Path,
        typer.Argument(help="An .npz, a Parquet file or a folder of shards.", show_default=False),
    ],
    json: options.Json = False,
) -> None:
    """Show items, members, classes and how far the members are from each other."""
    from edokit.predictions import describe_predictions

    result = describe_predictions(path)
    if json:
        console.print_json(result)
        return
    classes = result["classes"]
    console.print_table(
        f"{path}: {counted(result['items'], 'item')},"
        f" {counted(len(result['members']), 'member')}, {len(classes)} classes,"
        f" {counted(result['shards'], 'file')}",
        ["member", "group", *(f"mean p({name})" for name in classes), "entropy", "distance"],
        [
            [
                member["name"],
                member["group"] or "–",
                *(f"{member['mean'][name]:.4f}" for name in classes),
                f"{member['entropy']:.4f}",
                f"{member['distance']:.4f}",
            ]
            for member in result["members"]
        ],
        ["distance: mean L1 distance to the plain mean of all members (0 to 2)."],
    )
