"""`edo serve`: an HTTP endpoint for a bundle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edokit._errors import counted
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.serve import About


def serve(
    bundle: Annotated[Path, typer.Argument(help="A folder made by `edo bundle`.")],
    host: Annotated[
        str,
        typer.Option(
            help="Where to listen. Anywhere but on this machine itself needs a bearer token in the"
            " environment variable EDO_SERVE_TOKEN."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free one.")] = 8000,
    device: options.Device = None,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Texts that the members predict at once.")
    ] = 64,
    max_delay_ms: Annotated[
        float,
        typer.Option(
            min=0,
            max=10_000,
            help="How long a batch that is not full waits for more texts. Requests that arrive"
            " while the members work share a batch anyway.",
        ),
    ] = 0,
    max_texts: Annotated[int, typer.Option(min=1, help="Texts of one request.")] = 1024,
    max_length: Annotated[
        int, typer.Option(min=1, help="Characters of one text, its context included.")
    ] = 100_000,
    max_bytes: Annotated[int, typer.Option(min=1, help="Bytes of one request.")] = 4 << 20,
    max_queue: Annotated[
        int,
        typer.Option(min=1, help="Texts that may wait; beyond them requests are refused (503)."),
    ] = 8192,
    max_connections: Annotated[
        int, typer.Option(min=1, help="Connections that may be open; others are refused (503).")
    ] = 512,
    trust: options.Trust = None,
    json: options.Json = False,
) -> None:
    """Answer texts over HTTP: POST /predict, GET /health, /metrics and /docs.

    SIGTERM or Ctrl-C ends it; requests under way are answered first.
    """
    from edokit.serve import TOKEN, Limits
    from edokit.serve import serve as run

    def ready(loaded: About, url: str) -> None:
        about = {"url": url, "version": loaded.version, "classes": loaded.classes}
        line = (
            f"{url} answers with {bundle} (version {loaded.version},"
            f" {counted(len(loaded.classes), 'class')}); Ctrl-C ends it"
        )
        console.done(about, line, json)

    run(
        bundle,
        host=host,
        port=port,
        device=device,
        trust=options.names(trust) or (),
        limits=Limits(
            max_batch, max_delay_ms, max_texts, max_length, max_bytes, max_queue, max_connections
        ),
        token=os.environ.get(TOKEN),
        ready=ready,
        # Not by sys.stderr, whose lock a thread that waits for a full pipe would keep.
        log=lambda line: os.write(2, f"edo serve: {line}\n".encode()),
    )
