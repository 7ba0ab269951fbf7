"""A bundle behind HTTP: texts in, distributions out (extra ``serve``).

`requests` says what a request is, `batching` pools the texts of waiting requests for the members,
`app` has the paths, `server` listens. No text and no token reaches a log, a metric or an error.
"""

from __future__ import annotations

from edokit._errors import MissingExtraError, missing_extra

try:
    from edokit.serve.app import TOKEN
    from edokit.serve.batching import Limits
    from edokit.serve.requests import About
    from edokit.serve.server import serve
except MissingExtraError:
    raise
except ImportError as missing:
    raise missing_extra(
        f"edo serve needs the package {missing.name}, which can't be imported: {missing}", "serve"
    ) from missing

__all__ = ["About", "Limits", "TOKEN", "serve"]
