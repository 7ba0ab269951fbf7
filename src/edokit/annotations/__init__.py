"""Annotations: who labelled which item how."""

from edokit.annotations.core import (
    Annotations,
    Duplicates,
    PublishedLabelWarning,
    Ties,
    contradiction_message,
)

__all__ = [
    "Annotations",
    "Duplicates",
    "PublishedLabelWarning",
    "Ties",
    "contradiction_message",
]
