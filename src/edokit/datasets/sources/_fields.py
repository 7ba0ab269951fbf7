"""Which fields of an export hold the item and the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit.annotations import Annotations
from edokit.datasets.where import naming

OPTIONS = ("columns", "multi_choice", "text", "item", "unlabelled", "anonymous")
"""What can be said about every export."""


def with_fields(read: Callable[..., Annotations]) -> Callable[..., Annotations]:
    """The reader of an export, which names its fields item and text, as one that takes columns."""

    def renamed(
        path: Path, *, columns: Mapping[str, str] | None = None, **options: Any
    ) -> Annotations:
        wrong = [role for role in columns or {} if role not in ("item", "text")]
        if wrong:
            raise InputError(
                f"in an export the columns item and text can be named, but got {wrong[0]!r}",
                "leave it out",
            )
        with naming(path):
            return read(path, **options, **(columns or {}))

    return renamed
