"""Checks of the arrays that metrics are computed from."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats, Ints

SUM_TOLERANCE = 1e-3
"""Wide enough for probabilities in half precision."""
_DIVIDE = "divide each row by its sum, or "


def probabilities(name: str, values: npt.ArrayLike) -> Floats:
    """Checked probabilities [N, C] in double precision: finite, ≥ 0, each row sums to 1."""
    array = _numbers(name, values)
    if array.ndim != 2:
        raise InputError(
            f"{name} has the shape {_shape(array)}, not [N, C]",
            "give one row per item and one column per class",
        )
    if array.shape[1] < 2:
        raise InputError(
            f"{name} has fewer than two classes: its shape is {_shape(array)}",
            "give a column for every class, also for those that nobody chose",
        )
    _some_items(name, array)
    _finite(name, array)
    least, sums = array.min(axis=1), array.sum(axis=1)
    for wrong, found, problem, remedy in (
        (least < 0, least, "has the negative value {:.6g}", ""),
        (np.abs(sums - 1) > SUM_TOLERANCE, sums, "sums to {:.6g}, not to 1", _DIVIDE),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(
                f"row {at} of {name} {problem.format(found[at])} ({wrong.sum()} of {len(wrong)}"
                " rows are wrong)",
                f"{remedy}turn logits into probabilities first",
            )
    return array


def pair(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Checked predicted probabilities and soft labels, both [N, C]."""
    predicted, soft = probabilities("p", p), probabilities("q", q)
    if predicted.shape != soft.shape:
        raise InputError(
            f"p has the shape {_shape(predicted)}, q has {_shape(soft)}",
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
        wanted = "[M]" if length is None else f"[{length}]"
        raise InputError(
            f"{name} has the shape {_shape(array)}, not {wanted}", f"give one {what} code each"
        )
    if array.dtype.kind not in "iub" and array.size:
        raise InputError(
            f"{name} holds {array.dtype} values, not {what} codes (whole numbers)",
            f"give each {what} as its position in the list, counted from 0",
        )
    wrong = array < 0 if below is None else (array < 0) | (array >= below)
    if wrong.any():
        at = int(np.argmax(wrong))
        bound = "0 or more" if below is None else f"from 0 to {below - 1}"
        raise InputError(
            f"{name}[{at}] is {array[at]}, but {what} codes are {bound}"
            f" ({wrong.sum()} of {len(array)} are wrong)",
            "drop the missing ones, and count from 0",
        )
    return array.astype(np.int64)


def losses(name: str, values: npt.ArrayLike) -> Floats:
    """Checked per-item values [N]."""
    array = _numbers(name, values)
    if array.ndim != 1:
        raise InputError(
            f"{name} has the shape {_shape(array)}, not [N]",
            "give one loss per item, for example from ce_items",
        )
    _some_items(name, array)
    _finite(name, array)
    return array


def whole(name: str, value: int, least: int = 1) -> int:
    """A checked whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(
            f"{name} is {value!r}, not a whole number of at least {least}",
            f"choose {name}={max(least, 10)}, for example",
            parameters=(name,),
        )
    return int(value)


def share(name: str, value: float) -> float:
    """A checked number strictly between 0 and 1."""
    if not isinstance(value, Real) or not 0 < value < 1:
        raise InputError(
            f"{name} is {value!r}, not between 0 and 1", f"choose {name}=0.95", parameters=(name,)
        )
    return float(value)


def generator(random_state: int | np.random.Generator) -> np.random.Generator:
    """The random number generator of a seed."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(whole("random_state", random_state, least=0))


def _some_items(name: str, array: Floats) -> None:
    if not len(array):
        raise InputError(
            f"{name} has no items: its shape is {_shape(array)}",
            "check that the items were read, and that their ids match",
        )


def as_array(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """An array of any type."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise InputError(
            f"the rows of {name} differ in length", "give every row the same length"
        ) from None


def _numbers(name: str, values: npt.ArrayLike) -> Floats:
    array = as_array(name, values)
    try:
        if array.dtype.kind in "biufO":
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"{name} holds {array.dtype} values, not numbers", "turn it into numbers first"
    )


def _finite(name: str, array: Floats) -> None:
    wrong = ~np.isfinite(array)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"{name}[{', '.join(map(str, at))}] is {array[at]}"
            f" ({wrong.sum()} of {array.size} values are NaN or infinite)",
            "drop or fill in the items that have no value",
        )


def _shape(array: npt.NDArray[Any]) -> str:
    return "[" + ", ".join(map(str, array.shape)) + "]"
