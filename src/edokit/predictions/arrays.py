"""Arrays of predictions: any common layout becomes [N, K, C], and rows must be distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import InputError, examples, one_of
from edokit._types import Bools, Floats, Strings

Array = npt.NDArray[Any]


Layout: TypeAlias = Literal["NKC", "KNC", "NC", "NK", "KN"]
"""What the axes of an array are: items N, members K, classes C. Without K there is one member;
without C the numbers are probabilities of the second of two classes."""
Invalid: TypeAlias = Literal["error", "normalize"]
"""What to do with probabilities that do not sum to one: refuse them, or divide by their sum."""

LAYOUTS: tuple[Layout, ...] = get_args(Layout)


def canonical(
    values: Any,
    layout: Layout | None = None,
    sizes: Mapping[str, int] | None = None,
    *,
    logits: bool = False,
) -> Array:
    """Predictions as [N, K, C]. Without ``layout`` the known sizes must leave one possibility.

    A list of arrays is a list of members, each [N, C], or [N] for two classes. ``logits`` says
    that the numbers are log-odds (two-class layouts) or unnormalised logarithms, not
    probabilities.
    """
    if layout is not None:
        one_of("layout", layout, LAYOUTS)
    if (members := _listed(values)) is None:
        array = _numbers(values)
    else:
        array = _stack(members)
        listed: Layout = "KNC" if array.ndim == 3 else "KN"
        if layout not in (None, listed):
            raise InputError(
                f"a list of arrays has the layout {listed}, not layout={layout!r}",
                "leave the layout out",
                parameters=("layout",),
            )
        layout = listed
    layout = _fitting(array.shape, layout, sizes or {})
    array = as_floats(array)
    if layout in ("NK", "KN"):
        array = array.T if layout == "KN" else array
        if not logits:
            return np.stack([1 - array, array], axis=2)
        # Each class from its own logit, since 1 - p is 0 long before the logit is infinite.
        pair: Array = np.exp(-np.logaddexp(0, np.stack([array, -array], axis=2)))
        return pair
    if layout == "NC":
        array = array[:, None, :]
    elif layout == "KNC":
        array = np.ascontiguousarray(array.transpose(1, 0, 2))
    if logits:
        # An infinite logit becomes NaN, which is refused by name later.
        with np.errstate(invalid="ignore"):
            array = np.exp(array - array.max(axis=2, keepdims=True))
            array /= array.sum(axis=2, keepdims=True)
    return array


def as_floats(array: Array) -> Array:
    """Numbers as float32 where that holds them, else as float64."""
    small = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if small else np.float64, copy=False)


def _listed(values: Any) -> list[Any] | None:
    """The array of each member, where there is one per member."""
    if isinstance(values, Mapping):
        return list(values.values())
    is_list = isinstance(values, list | tuple) and values and hasattr(values[0], "shape")
    return list(values) if is_list else None


def _stack(members: list[Any]) -> Array:
    """[K, N, C] or [K, N]."""
    parts = [_numbers(part) for part in members]
    shapes = sorted({part.shape for part in parts})
    if len(shapes) > 1:
        raise InputError(
            f"the members have different shapes: {', '.join(map(str, shapes))}",
            "predict the same items and classes with each member",
        )
    if not parts or parts[0].ndim not in (1, 2):
        raise InputError(
            f"the list holds {f'arrays of shape {shapes[0]}' if shapes else 'no members'}",
            "give one array [items, classes] per member",
        )
    return np.stack(parts)


def _numbers(values: Any) -> Array:
    hint = "give an array of probabilities, all rows of one length"
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and isinstance(values, pd.DataFrame | pd.Series):
            # pandas' own number types come as objects, with NA for gaps.
            array = values.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"the predictions are no array of numbers: {error}", hint) from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"the predictions are no numbers but of type {array.dtype}", hint)
    if isinstance(values, np.ma.MaskedArray):
        array = np.where(np.ma.getmaskarray(values), np.nan, array)
    return array


def _fitting(shape: tuple[int, ...], layout: Layout | None, sizes: Mapping[str, int]) -> Layout:
    """The layout, or without one the only layout that fits the shape and the known sizes."""
    fits = [name for name in LAYOUTS if layout in (None, name) and _fits(shape, name, sizes)]
    if len(fits) != 1:
        known = ", ".join(f"{axis}={sizes[axis]}" for axis in "NKC" if axis in sizes)
        known = f" with {known}" if known else ""
        given = f"predictions of shape {shape}"
        if layout:
            wanted = ", ".join(f"{axis}={sizes.get(axis, '?')}" for axis in layout)
            message = f"{given} do not fit the layout {layout} with [{wanted}]"
            hint = "check the layout and the sizes"
        elif fits:
            readings = " or ".join(f"[{', '.join(name)}]" for name in fits)
            message = f"{given} can be {readings}{known}"
            hint = f"say which, for example layout={fits[0]!r}"
        else:
            message = f"no layout fits {given}{known}"
            hint = f"choose a layout among {', '.join(LAYOUTS)} and check the sizes"
        raise InputError(message, hint, parameters=("layout",))
    if 0 in shape:
        raise InputError(
            f"predictions of shape {shape} lack items, members or classes",
            "check that the arrays were filled",
        )
    return fits[0]


def _fits(shape: tuple[int, ...], layout: Layout, sizes: Mapping[str, int]) -> bool:
    if len(shape) != len(layout):
        return False
    given = {"K": 1, "C": 2, **dict(zip(layout, shape, strict=True))}
    return all(sizes.get(axis, size) == size for axis, size in given.items())


def names_of_frames(values: Any, layout: str | None) -> dict[str, pd.Index[Any]]:
    """The names of the axes N, K and C that DataFrames know; empty for plain arrays."""
    frames = (pd.DataFrame, pd.Series)
    if isinstance(values, pd.DataFrame):
        axes = layout if layout in ("NC", "NK", "KN") else ""
        return dict(zip(axes, (values.index, values.columns), strict=False))
    parts = _listed(values) or []
    if not any(isinstance(part, frames) for part in parts):
        return {}
    for part in parts:
        if not isinstance(part, frames) or not all(map(pd.Index.equals, part.axes, parts[0].axes)):
            raise InputError(
                "the tables of the members differ in index or columns",
                "bring them into one order, for example with frame.reindex(...)",
            )
    return dict(zip("NC", parts[0].axes, strict=False))


PREFIX = "p_"
"""What the names of probability columns start with, before the class."""
TOLERANCE = 1e-3
"""How far probabilities may be from summing to one and still count as rounded."""
EXACT = 1e-6
"""How far they may be and stay as they are."""
LOGITS_HINT = ", or say that they are logits with logits=True"
# Numbers that are looked at together while they stay in the cache.
_BLOCK = 2**18
# Up to so many classes numpy adds up one after the other, and slowly along so short an axis.
_FEW_CLASSES = 7


def checked(
    array: Array,
    items: Strings,
    members: Sequence[str],
    invalid: str,
    where: str = "",
    logits_hint: str = LOGITS_HINT,
) -> Array:
    """[N, K, C] with rows that sum to one; anything that is no probability is refused.

    Each row is checked and divided by its sum on its own, so that shards give the same numbers as
    the whole.
    """
    one_of("invalid", invalid, get_args(Invalid))
    result = array
    step = max(1, _BLOCK // max(1, array.shape[1] * array.shape[2]))
    for start in range(0, len(array), step):
        block = array[start : start + step]
        with np.errstate(invalid="ignore", over="ignore"):
            total = _totals(block)
        fault, bad = _fault(block, total, invalid)
        if fault:
            n, k = (int(axis[0]) for axis in np.nonzero(bad))
            shown = examples((f"{value:g}" for value in block[n, k]), 10).replace("'", "")
            hint = "correct the predictions"
            if "sum" in fault:
                hint += f", or divide by the sum with invalid='normalize'{logits_hint}"
            raise InputError(
                f"the probabilities of member {members[k]!r} for item {items[start + n]!r}{where}"
                f" {fault}: ({shown})",
                hint,
                parameters=("invalid", "logits"),
            )
        rounded = np.abs(total - 1) > EXACT
        if rounded.any():
            if result is array:
                result = array.copy()
            result[start : start + step][rounded] = block[rounded] / total[rounded][:, None]
    return result


def _totals(block: Array) -> Floats:
    """[n, K] what the classes sum to, in float64: many rounded numbers of float32 do not add up."""
    classes = block.shape[2]
    if classes == 0 or classes > _FEW_CLASSES:
        return np.asarray(block.sum(axis=2, dtype=np.float64))
    total = block[:, :, 0].astype(np.float64)
    for c in range(1, classes):
        total += block[:, :, c]
    return total


def _fault(block: Array, total: Floats, invalid: str) -> tuple[str, Bools]:
    """What is wrong with some rows [n, K], and with which; empty if nothing is."""
    finite = np.isfinite(total)
    if not finite.all():
        return "are not finite", ~finite
    if block.min() < 0:
        return "are negative", np.asarray((block < 0).any(axis=2))
    if (total == 0).any():
        return "are all zero", total == 0
    off = np.abs(total - 1) > TOLERANCE
    if invalid == "error" and off.any():
        return f"do not sum to 1 (within {TOLERANCE:g})", off
    return "", off
