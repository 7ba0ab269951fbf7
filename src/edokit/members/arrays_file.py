"""Fitted members as plain arrays in one .npz file: nothing in it can execute."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy.typing as npt

from edokit._errors import InputError, examples
from edokit._io import npz as archives


def write_arrays(path: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write arrays by name."""
    with path.open("wb") as stream:
        archives.write_arrays(stream, arrays)


def read_arrays(path: Path, needed: Iterable[str] = ()) -> dict[str, npt.NDArray[Any]]:
    """Read them back; a file that is cut off, or lacks one, is refused."""
    try:
        arrays = archives.read_arrays(path)
    # A damaged archive fails in as many ways as zip, zlib and numpy have.
    except Exception as error:
        raise InputError(
            f"{path} must be a whole file of plain arrays, but can't be read: {error}",
            "train the member again",
        ) from error
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise InputError(
            f"{path} must hold the arrays of a member, but lacks {examples(missing)}",
            "train the member again",
        )
    return arrays
