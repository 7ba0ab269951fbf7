"""`edo bundle`: an ensemble and its members in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import counted, in_bytes
from edokit.cli import console, options


def bundle(
    ensemble: Annotated[
        Path,
        typer.Argument(help="A folder made by `edo fit`, or RUN/ensemble of a search."),
    ],
    members: Annotated[Path, typer.Option(help="The folder of its members (`edo train`).")],
    out: Annotated[Path, typer.Option(help="The folder of the bundle.")],
    device: options.Device = None,
    trust: options.Trust = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Put an ensemble and the members that carry weight into one folder that predicts texts."""
    from edokit.bundle import Bundle

    made = Bundle.create(
        ensemble,
        members,
        out,
        device=device,
        trust=options.names(trust) or (),
        overwrite=overwrite,
    )
    seconds = made.seconds_per_text
    result = {
        "out": str(out),
        "version": made.version,
        "members": made.members.names,
        "classes": list(made.classes),
        "bytes": made.size,
        "seconds_per_text": seconds,
    }
    line = f"{out}: {counted(len(made.members.names), 'member')}, {in_bytes(made.size)}"
    line += "" if seconds is None else f", {1000 * seconds:.3g} ms per text on this machine"
    line += f"; predict with `edo predict {out} --texts FILE --out FILE`"
    console.done(result, line, json)
