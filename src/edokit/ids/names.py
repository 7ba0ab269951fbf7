"""Names are strings everywhere, and things are matched by name, never by position."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit.errors import InputError, are, examples

Strings = npt.NDArray[np.object_]
"""Names as Python strings [n]."""


def as_name(value: object) -> str:
    """The string that stands for a value: 7, 7.0 and "7" are all "7", "007" is another."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"a name must be UTF-8 text, but got the bytes {value!r}", "decode the names first"
            ) from error
    if value is None or value is pd.NA or value is pd.NaT or value is np.ma.masked:
        raise _no_name(value)
    if isinstance(value, float | np.floating | Decimal):
        if math.isnan(value):
            raise _no_name(value)
        if math.isfinite(value) and value == int(value):
            return str(int(value))
    return str(value)


def as_names(values: Iterable[object]) -> Strings:
    """Names as an array of strings."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"names must be a list, but got {values!r}", "give one name per entry")
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "biuU":
            values = values.ravel().tolist()
        elif values.dtype.kind == "O" and set(map(type, values.ravel())) <= {str}:
            return values.ravel().copy()
    listed = list(values)
    # Millions of names are mostly text or whole numbers, whose text is their name.
    plain = set(map(type, listed)) <= {str, int}
    names = list(map(str, listed)) if plain else [as_name(value) for value in listed]
    result = np.empty(len(names), dtype=object)
    result[:] = names
    return result


def class_order(names: Iterable[str]) -> tuple[str, ...]:
    """Numeric order if all classes are numbers, else alphabetical."""
    listed = sorted(names)
    try:
        numbers = {name: float(name) for name in listed}
    except ValueError:
        return tuple(listed)
    # Python also takes words such as "nan" and "infinity" for numbers; a class so called is none.
    if not all(map(math.isfinite, numbers.values())):
        return tuple(listed)
    return tuple(sorted(listed, key=numbers.__getitem__))


def match(wanted: Strings, given: Strings, what: str, against: str) -> npt.NDArray[np.intp]:
    """Where each wanted id stands among the given ones; both must hold the same ids."""
    others = _unique_index(wanted, f"items of {against}", "name each item once")
    index = _unique_index(given, f"items of {what}", "name each item once")
    where = index.get_indexer(others)
    missing = wanted[where < 0]
    if len(missing) or len(given) != len(wanted):
        extra = given[others.get_indexer(index) < 0]
        parts = []
        if len(missing):
            parts.append(f"{are(len(missing), len(wanted))} missing: {examples(missing)}")
        if len(extra):
            parts.append(f"{are(len(extra))} extra: {examples(extra)}")
        raise InputError(
            f"{what} and {against} must hold the same items, but in {what} " + "; ".join(parts),
            "check the ids, or choose one split",
        )
    result: npt.NDArray[np.intp] = where
    return result


def check_unique(names: Strings, what: str, hint: str) -> None:
    """Refuse a name that stands twice."""
    _unique_index(names, what, hint)


def check_positions(positions: npt.ArrayLike, length: int) -> npt.NDArray[np.intp]:
    """Positions in a list of that length, each once; a mask becomes the positions it marks."""
    chosen = np.asarray(positions)
    if chosen.dtype == np.bool_ and chosen.shape == (length,):
        return np.flatnonzero(chosen)
    if not chosen.size:
        return np.empty(0, dtype=np.intp)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise InputError(
            f"items are chosen by a list of positions or a mask of length {length}, but got"
            f" {chosen.dtype} of shape {chosen.shape}",
            "give whole numbers, or one True or False per item",
        )
    outside = chosen[(chosen < -length) | (chosen >= length)]
    if len(outside):
        raise InputError(
            f"positions must be below the number of items ({length}), but got {examples(outside)}",
            "count from 0",
        )
    chosen = np.where(chosen < 0, chosen + length, chosen).astype(np.intp)
    if np.bincount(chosen).max() > 1:
        raise InputError(
            "each item can be taken once, but a position stands twice", "drop the repeated ones"
        )
    return chosen


def _unique_index(names: Strings, what: str, hint: str) -> pd.Index[Any]:
    index = pd.Index(names, dtype=object)
    if not index.is_unique:
        repeated = index[index.duplicated()].unique()
        verb = "stands" if len(repeated) == 1 else "stand"
        raise InputError(f"{what} must differ, but {examples(repeated)} {verb} twice", hint)
    return index


def _no_name(value: object) -> InputError:
    return InputError(
        f"a name must be text or a number, but got the gap {value!r}", "name every entry"
    )
