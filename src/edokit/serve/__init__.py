"""A bundle behind HTTP: texts in, distributions out (extra ``serve``).

The members are a process of their own, which takes batches from a bounded queue (`members`);
the event loop reads requests and writes answers meanwhile (`app`, `server`). No text
and no token reaches a log, a metric or an error.
"""

from __future__ import annotations

from edokit._errors import MissingExtraError

try:
    from edokit.serve.app import TOKEN
    from edokit.serve.members import About, Limits
    from edokit.serve.server import serve
except MissingExtraError:
    raise
except ImportError as missing:
    raise MissingExtraError(
        f"edo serve needs the package {missing.name}, which can't be imported: {missing}",
        'install it with: pip install "edokit[serve]"',
    ) from missing

__all__ = ["About", "Limits", "TOKEN", "serve"]
