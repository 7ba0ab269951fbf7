"""`edo bundle`: an ensemble and its members in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from edokit._errors import counted, in_bytes
from edokit.cli import console, options


def bundle(
    ensemble: options.Argument,
    /,
    *,
    members: list[Path],
    out: Path,
    loading: Annotated[options.Loading, options.FLAT] = options.Loading(),
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Put an ensemble and its members into one folder that predicts texts.

    Parameters
    ----------
    ensemble : Path
        A folder made by `edo fit`, or RUN/ensemble of a search.
    members : list of Path
        The folder of its members (`edo train`); repeatable, where several hold them.
    out : Path
        The folder of the bundle.
    """
    from edokit.bundle import Bundle

    bundled = Bundle.create(
        ensemble, members, out, overwrite=overwrite, **options.given_arguments(loading)
    )
    summary = {
        "out": str(out),
        "version": bundled.version,
        "members": bundled.members.names,
        "classes": list(bundled.classes),
        "bytes": bundled.size,
    }
    line = f"{out}: {counted(len(bundled.members.names), 'member')}, {in_bytes(bundled.size)}"
    line += f"; predict with `edo predict {out} --texts FILE --out FILE`"
    console.print_result(summary, line, json)
