"""A bundle behind HTTP: texts in, distributions out (extra ``serve``).

One thread owns the members (`worker`); the event loop reads requests and writes answers meanwhile
(`app`). No text and no token reaches a log, a metric or an error.
"""

from __future__ import annotations

from edokit._errors import MissingExtraError

try:
    from edokit.serve.server import TOKEN, serve
    from edokit.serve.worker import Limits, Served
except MissingExtraError:
    raise
except ImportError as missing:
    raise MissingExtraError(
        f"edo serve needs the package {missing.name}, which can't be imported: {missing}",
        'install it with: pip install "edokit[serve]"',
    ) from missing

__all__ = ["Limits", "Served", "TOKEN", "serve"]
