"""The rules that arrays must keep before anything is measured on them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats, Ints

SUM_TOLERANCE = 1e-3  # wide enough for probabilities kept in half precision


def probabilities(name: str, values: npt.ArrayLike) -> Floats:
    """Checked probabilities [N, C] in double precision: finite, ≥ 0, each row sums to 1."""
    array = _numbers(name, values)
    if array.ndim != 2:
        raise InputError(
            f"{name} must have the shape [N, C], but got {_shape(array)}",
            "give one row per item and one column per class",
        )
    if array.shape[1] < 2:
        raise InputError(
            f"{name} must have at least two classes, but got {_shape(array)}",
            "give a column for every class, also for those that nobody chose",
        )
    _some_items(name, array)
    _finite(name, array)
    _refuse_rows(
        f"{name} must not be negative",
        array.min(axis=1) < 0,
        array.min(axis=1),
        "turn logits into probabilities first",
    )
    sums = array.sum(axis=1)
    _refuse_rows(
        f"the rows of {name} must sum to 1 within {SUM_TOLERANCE:g}",
        np.abs(sums - 1) > SUM_TOLERANCE,
        sums,
        "divide each row by its sum, or turn logits into probabilities first",
    )
    return array


def pair(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Checked predicted probabilities and soft labels, both [N, C]."""
    predicted, soft = probabilities("p", p), probabilities("q", q)
    if predicted.shape != soft.shape:
        raise InputError(
            "p and q must have the same shape [N, C], but got "
            f"{_shape(predicted)} and {_shape(soft)}",
            "match the items by id, and give both the same classes in the same order",
        )
    return predicted, soft


def triple(p: npt.ArrayLike, q: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats, Ints]:
    """Checked predicted probabilities, soft labels and hard labels."""
    predicted, soft = pair(p, q)
    return predicted, soft, codes("y", y, len(predicted), predicted.shape[1], "class")


def codes(
    name: str, values: npt.ArrayLike, length: int | None, below: int | None, what: str
) -> Ints:
    """Checked codes [length] from 0 to below − 1 (without a bound where None)."""
    array = as_array(name, values)
    if array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "one dimension" if length is None else f"the shape [{length}]"
        raise InputError(
            f"{name} must have {wanted}, but got {_shape(array)}", f"give one {what} code each"
        )
    if array.dtype.kind not in "iub" and array.size:
        raise InputError(
            f"{name} must hold {what} codes (whole numbers), but its type is {array.dtype}",
            f"give each {what} as its place in the list, counted from 0",
        )
    wrong = array < 0 if below is None else (array < 0) | (array >= below)
    if wrong.any():
        at = int(np.argmax(wrong))
        bound = "0 or more" if below is None else f"from 0 to {below - 1}"
        raise InputError(
            f"{name} must hold {what} codes {bound}, but {name}[{at}] is {array[at]} "
            f"({wrong.sum()} of {len(array)} break the rule)",
            "drop the missing ones, and count from 0",
        )
    return array.astype(np.int64)


def losses(name: str, values: npt.ArrayLike) -> Floats:
    """Checked per-item values [N]."""
    array = _numbers(name, values)
    if array.ndim != 1:
        raise InputError(
            f"{name} must have the shape [N], but got {_shape(array)}",
            "give one loss per item, for example from ce_items",
        )
    _some_items(name, array)
    _finite(name, array)
    return array


def whole(name: str, value: int, least: int = 1) -> int:
    """A checked whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(
            f"{name} must be a whole number of at least {least}, but got {value!r}",
            f"choose {name}={max(least, 10)}, for example",
        )
    return int(value)


def share(name: str, value: float) -> float:
    """A checked number strictly between 0 and 1."""
    if not isinstance(value, Real) or not 0 < value < 1:
        raise InputError(
            f"{name} must lie between 0 and 1, but got {value!r}", f"choose {name}=0.95"
        )
    return float(value)


def generator(random_state: int | np.random.Generator) -> np.random.Generator:
    """The source of random numbers that a random_state stands for."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(whole("random_state", random_state, least=0))


def _some_items(name: str, array: Floats) -> None:
    if not len(array):
        raise InputError(
            f"{name} must hold at least one item, but its shape is {_shape(array)}",
            "check that the items were read, and that their ids match",
        )


def as_array(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """An array of any type."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be an array, but its rows differ in length", "give every row alike"
        ) from None


def _numbers(name: str, values: npt.ArrayLike) -> Floats:
    array = as_array(name, values)
    try:
        if array.dtype.kind in "biufO":
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"{name} must hold numbers, but its type is {array.dtype}", "turn it into numbers first"
    )


def _finite(name: str, array: Floats) -> None:
    wrong = ~np.isfinite(array)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = ", ".join(map(str, at))
        raise InputError(
            f"{name} must be finite, but {name}[{place}] is {array[at]} "
            f"({wrong.sum()} of {array.size} values are NaN or infinite)",
            "drop or fill in the items that have no value",
        )


def _refuse_rows(rule: str, wrong: npt.NDArray[np.bool_], values: Floats, hint: str) -> None:
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"{rule}, but row {at} has {values[at]:.6g} "
            f"({wrong.sum()} of {len(wrong)} rows break the rule)",
            hint,
        )


def _shape(array: npt.NDArray[Any]) -> str:
    return "[" + ", ".join(map(str, array.shape)) + "]"
