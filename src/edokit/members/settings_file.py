"""What a fine-tuned member is, beside its weights, as one JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edokit._errors import InputError


def write_settings(path: Path, state: Mapping[str, Any]) -> None:
    """Write plain values."""
    text = json.dumps(state, ensure_ascii=False, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")


@contextmanager
def read_settings(path: Path, what: str, writer: str) -> Iterator[Any]:
    """What ``write_settings`` wrote; a file that is not there or lacks something is refused.

    ``what`` the folder must be, and ``writer`` is what makes such folders.
    """
    try:
        yield json.loads(path.read_text(encoding="utf-8"))
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path.parent} must be the folder of {what}, but its {path.name} can't be read:"
            f" {error}",
            f"name a folder that {writer} wrote",
        ) from error
