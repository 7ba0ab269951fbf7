"""`edo serve`: an HTTP endpoint for a bundle."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from edokit._errors import check_number, counted
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.serve import About


@dataclass(frozen=True, kw_only=True)
class Load:
    """How much the server takes on at once.

    Parameters
    ----------
    max_batch : int, default=64
        Texts that the members predict at once.
    max_delay_ms : float, default=0
        How long a batch that is not full waits for more texts. Requests that arrive while the
        members work share a batch anyway.
    max_texts : int, default=1024
        Texts of one request.
    max_length : int, default=100000
        Characters of one text, its context included.
    max_bytes : int, default=4194304
        Bytes of one request.
    max_queue : int, default=8192
        Texts that may wait; beyond them requests are refused (503).
    max_connections : int, default=512
        Connections that may be open; others are refused (503).
    """

    max_batch: int = 64
    max_delay_ms: float = 0
    max_texts: int = 1024
    max_length: int = 100_000
    max_bytes: int = 4 << 20
    max_queue: int = 8192
    max_connections: int = 512


def serve(
    bundle: options.Argument,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    load: Annotated[Load, options.FLAT] = Load(),
    loading: Annotated[options.Loading, options.FLAT] = options.Loading(),
    json: options.Json = False,
) -> None:
    """Answer texts over HTTP: POST /predict, GET /health, /metrics and /docs.

    SIGTERM or Ctrl-C ends it; requests under way are answered first.

    Parameters
    ----------
    bundle : Path
        A folder made by `edo bundle`.
    host : str, default="127.0.0.1"
        Where to listen. Anywhere but on this machine itself needs a bearer token in the environment
        variable EDO_SERVE_TOKEN.
    port : int, default=8000
        0 chooses a free one.
    """
    from edokit.serve import TOKEN, Limits
    from edokit.serve import serve as run

    check_number("port", port, 0, 65535, whole=True)
    for name, limit in asdict(load).items():
        check_number(name, limit, 0 if name == "max_delay_ms" else 1)

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
        limits=Limits(**asdict(load)),
        token=os.environ.get(TOKEN),
        ready=ready,
        # Not by sys.stderr, whose lock a thread that waits for a full pipe would keep.
        log=lambda line: os.write(2, f"edo serve: {line}\n".encode()),
        **loading.keywords(),
    )
