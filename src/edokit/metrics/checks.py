"""Checks of the arguments of metrics: probabilities, soft labels and hard labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Bools, Floats, Ints
from edokit.item_array import Order, match_rows, rows_of, with_ids
from edokit.scales import NOMINAL, TOLERANCE, Scale, number_list


def distributions(name: str, values: npt.ArrayLike, scale: Scale = NOMINAL) -> Floats:
    """Checked probabilities [N, C], or [N, L] for multi-label data, in double precision."""
    array = _finite(name, values, 2, "give one row per item and one column per class")
    if array.shape[1] < scale.fewest_columns:
        raise InputError(
            f"{name} has fewer than two classes: its shape is {_shape(array)}",
            "give a column for every class, including those that nobody chose",
            code="too-few-classes",
        )

    def refuse(fault: str, row: tuple[int, ...]) -> InputError:
        numbers = number_list(array[row])
        hint = "turn logits into probabilities first"
        # `Scale.faults` names each fault in words. Only for "do not sum to 1" does division help.
        if "sum" in fault:
            hint = f"divide each row by its sum, or {hint}"
        wrong = int((~scale.is_distribution(array)).sum())
        return InputError(
            f"the probabilities {name}[{row[0]}] {fault}: ({numbers})"
            f" ({wrong} of {len(array)} are wrong)",
            hint,
            code="invalid-probabilities",
        )

    return scale.checked_distributions(array, TOLERANCE, refuse)


def with_item_ids(values: Floats, *arrays: npt.ArrayLike) -> Floats:
    """Values per item [N], with the ids of the arrays that they were computed from, if any."""
    # `match_rows` brings all arrays into the order of the last one that has ids.
    for array in reversed(arrays):
        rows = rows_of(array)
        if rows is not None:
            return with_ids(values, rows)
    return values


def checked_p_q(
    p: npt.ArrayLike, q: npt.ArrayLike, scale: Scale = NOMINAL, order: Order | None = None
) -> tuple[Floats, Floats]:
    """Checked predicted probabilities and soft labels [N, C], or [N, L] for multi-label data."""
    p, q = match_rows({"p": p, "q": q}, order)
    predicted = distributions("p", p, scale)
    soft = distributions("q", q, scale)
    if predicted.shape != soft.shape:
        raise InputError(
            f"p has the shape {_shape(predicted)}, q has {_shape(soft)}",
            "match the items by id, and give both the same classes in the same order",
            code="shapes-differ",
        )
    if scale.positions is not None and len(scale.positions) != predicted.shape[1]:
        raise InputError(
            f"p has {predicted.shape[1]} classes, but the scale {len(scale.positions)} positions",
            "give one position per class",
            code="shapes-differ",
        )
    return predicted, soft


def checked_p_q_y(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    y: npt.ArrayLike,
    scale: Scale,
    order: Order | None = None,
) -> tuple[Floats, Floats, Ints]:
    """Checked predicted probabilities, soft labels and hard labels."""
    p, q, y = match_rows({"p": p, "q": q, "y": y}, order)
    # `match_rows` returns arrays without ids, so the second match in `checked_p_q` does nothing.
    predicted, soft = checked_p_q(p, q, scale)
    return predicted, soft, hard_labels(y, predicted, scale)


def hard_labels(y: npt.ArrayLike, p: Floats, scale: Scale = NOMINAL) -> Ints:
    """Checked class codes [N]; for multi-label data, 1 for each chosen label [N, L]."""
    shape = (len(p), *scale.hard_label_shape(p.shape[1]))
    n_codes = scale.n_codes(p.shape[1])
    array = as_array("y", y)
    if array.shape != shape:
        raise InputError(
            f"y has the shape {_shape(array)}, not [{', '.join(map(str, shape))}]",
            "give one class code per item; for multi-label data, 1 for each chosen label, else 0",
            code="shapes-differ",
        )
    if array.dtype.kind not in "iub":
        raise InputError(
            f"y holds {array.dtype} values, not class codes (whole numbers)",
            "give each class as its position in the list, counted from 0",
            code="not-class-codes",
        )
    problem = f"but class codes are from 0 to {n_codes - 1}"
    hint = "drop items without a hard label, and count classes from 0"
    _refuse("y", array, (array < 0) | (array >= n_codes), problem, hint)
    return array.astype(np.int64)


def vector(name: str, values: npt.ArrayLike, hint: str) -> Floats:
    """Checked finite numbers [N]; the hint says what to give instead of another shape."""
    return _finite(name, values, 1, hint)


def as_array(
    name: str, values: npt.ArrayLike, dtype: type[np.float64] | None = None
) -> npt.NDArray[Any]:
    """The values as an array; ragged rows, and values that are not numbers, are refused."""
    try:
        return np.asarray(values, dtype)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} is not an array of numbers with rows of the same length",
            "give every row the same length, and turn it into numbers first",
            code="not-numbers",
        ) from None


def _finite(name: str, values: npt.ArrayLike, dimensions: int, shape_hint: str) -> Floats:
    """Finite numbers with this many axes and at least one row."""
    array = as_array(name, values, np.float64)
    if array.ndim != dimensions or not len(array):
        axes = {1: "[N]", 2: "[N, C]"}[dimensions]
        raise InputError(
            f"{name} has the shape {_shape(array)}, not {axes} with N > 0",
            shape_hint,
            code="wrong-shape",
        )
    value_hint = "drop or fill in the items without a value"
    _refuse(name, array, ~np.isfinite(array), "not a finite number", value_hint)
    return array


def _refuse(name: str, values: npt.NDArray[Any], wrong: Bools, problem: str, hint: str) -> None:
    """Refuse an array with wrong values; the message names the first of them."""
    if wrong.any():
        position = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"{name}[{', '.join(map(str, position))}] is {values[position]:.6g}, {problem}"
            f" ({wrong.sum()} of {wrong.size} are wrong)",
            hint,
            code="invalid-number",
        )


def _shape(array: npt.NDArray[Any]) -> str:
    return "[" + ", ".join(map(str, array.shape)) + "]"
