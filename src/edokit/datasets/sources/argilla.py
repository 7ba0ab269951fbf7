"""Argilla: exported records, as JSON or as a table."""

from __future__ import annotations

from edokit.datasets.argilla import is_argilla, read_argilla
from edokit.datasets.registry import Source
from edokit.datasets.sources._fields import OPTIONS, with_fields

SOURCE = Source(
    "argilla",
    "an Argilla export",
    lambda candidate: is_argilla(candidate.content),
    with_fields(read_argilla),
    options=("question", *OPTIONS),
    place=40,
)
