"""Predictions as an .npz file of plain arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOError, InputError, examples
from edokit._io import whole_file
from edokit._io.npz import array_names, read_arrays, write_arrays
from edokit._names import as_names
from edokit._types import Strings
from edokit.predictions.core import Predictions
from edokit.predictions.shapes import as_floats

_NEEDED = ("probabilities", "items", "members", "classes")


def read_npz(path: Path) -> Predictions:
    """The predictions in an .npz file, named but not yet checked."""
    try:
        arrays = _arrays(path)
    except EDOError:
        raise
    # A damaged archive fails in as many ways as zip, zlib and numpy have.
    except Exception as error:
        raise InputError(
            f"{path} must be a whole .npz file of plain arrays, but can't be read: {error}",
            "write it again; object arrays are never loaded",
        ) from error
    array = arrays["probabilities"]
    if array.ndim != 3 or 0 in array.shape or array.dtype.kind not in "fiu":
        raise InputError(
            f"probabilities in {path} must be numbers of shape [N, K, C], but are {array.dtype}"
            f" of shape {array.shape}",
            "bring them into shape with Predictions.from_arrays",
        )
    names = {name: _flat(arrays[name], name, path) for name in arrays if name != "probabilities"}
    return Predictions(
        as_floats(array),
        names["items"],
        tuple(names["members"]),
        tuple(names["classes"]),
        tuple(names["groups"]) if "groups" in names else None,
    ).named()


def write_npz(predictions: Predictions, path: Path) -> None:
    """Write an .npz file."""
    arrays: dict[str, npt.NDArray[Any]] = {"probabilities": predictions.probabilities}
    for name in ("items", "members", "classes", "groups"):
        names = getattr(predictions, name)
        if names is None:
            continue
        arrays[name] = np.array(list(names), dtype=str)
        # numpy pads text with NUL characters and can't tell its own from others.
        if arrays[name].tolist() != list(names):
            raise InputError(
                f"names of {name} must not end in a NUL character, but one does", "rename it"
            )
    with whole_file(path) as temporary, temporary.open("wb") as stream:
        write_arrays(stream, arrays)


def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    held = array_names(path)
    missing = [name for name in _NEEDED if name not in held]
    if missing:
        raise InputError(
            f"{path} must hold the arrays {', '.join(_NEEDED)}, but lacks {examples(missing)}",
            "write it with edokit.predictions.write_predictions or `edo predictions join`",
        )
    return read_arrays(path, [name for name in (*_NEEDED, "groups") if name in held])


def _flat(values: npt.NDArray[Any], name: str, path: Path) -> Strings:
    if values.ndim != 1 or values.dtype.kind not in "USiufb":
        raise InputError(
            f"{name} in {path} must be a list of names, but are {values.dtype} of shape"
            f" {values.shape}",
            "give one name per entry",
        )
    return as_names(values)
