"""Plain arrays in one file, as recipes save them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._io import npz

NamedArrays: TypeAlias = dict[str, npt.NDArray[Any]]
"""Arrays by name, each of its own type, as a file holds them."""


def write_arrays(path: Path, **arrays: npt.NDArray[np.generic]) -> None:
    """Write arrays by name."""
    with path.open("wb") as stream:
        npz.write_arrays(stream, arrays)


def read_arrays(path: Path, names: Iterable[str]) -> NamedArrays:
    """Read the arrays of these names; those that the file lacks are left out."""
    try:
        return npz.read_arrays(path, names)
    except (InputError, MemoryError):
        raise
    # A damaged archive fails in as many ways as zip, zlib and numpy have.
    except Exception as error:
        raise InputError(
            f"{path} is damaged or not a file of plain arrays: {error}",
            "train the member again",
            code="damaged-file",
        ) from error
