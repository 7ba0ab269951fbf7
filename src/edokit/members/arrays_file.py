"""Fitted members as plain arrays in one .npz file: nothing in it can execute."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit.errors import InputError, examples


def write_arrays(path: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write arrays by name."""
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path, needed: Iterable[str] = ()) -> dict[str, npt.NDArray[Any]]:
    """Read them back; a file that is cut off, or lacks one, is refused."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
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
