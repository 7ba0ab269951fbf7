"""Errors that name the file they come from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edokit._errors import InputError


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Whatever is refused inside is said of this file."""
    try:
        yield
    except InputError as error:
        if str(path) in error.message:
            raise
        raise InputError(f"in {path}: {error.message}", error.hint) from error
