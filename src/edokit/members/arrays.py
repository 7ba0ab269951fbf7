"""Plain arrays in one file, as recipes save them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy.typing as npt

from edokit._errors import InputError
from edokit._io import npz


def write_arrays(path: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write arrays by name."""
    with path.open("wb") as stream:
        npz.write_arrays(stream, arrays)


def read_arrays(path: Path, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Read those of these arrays that the file has; a damaged file is an error."""
    try:
        return npz.read_arrays(path, names)
    except (InputError, MemoryError):
        raise
    # A damaged archive fails in as many ways as zip, zlib and numpy have.
    except Exception as error:
        raise InputError(
            f"{path} is damaged or not a file of plain arrays: {error}", "train the member again"
        ) from error
