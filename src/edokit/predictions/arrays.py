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
    *,
    n_items: int | None = None,
    n_members: int | None = None,
    n_classes: int | None = None,
    logits: bool = False,
) -> Array:
    """Predictions as [N, K, C]. Without ``layout`` the known sizes must leave one possibility.

    A list of arrays is a list of members, each [N, C], or [N] for two classes. ``logits`` says
    that the numbers are log-odds (two-class layouts) or unnormalised logarithms, not
    probabilities.
    """
    if layout is not None:
        one_of("layout", layout, LAYOUTS)
    array, members_first = _as_array(values)
    sizes = {"N": n_items, "K": n_members, "C": n_classes}
    if members_first:
        listed: Layout = "KNC" if array.ndim == 3 else "KN"
        if layout not in (None, listed):
            raise InputError(
                f"a list of arrays has the layout {listed}, not layout={layout!r}",
                "leave the layout out",
                parameters=("layout",),
            )
        layout = listed
    chosen = layout or _only_fit(array.shape, sizes)
    _check_fit(array.shape, chosen, sizes)
    array = as_floats(array)
    if chosen in ("NK", "KN"):
        array = array.T if chosen == "KN" else array
        # Each class from its own logit, since 1 - p is 0 long before the logit is infinite.
        pair = [_sigmoid(-array), _sigmoid(array)] if logits else [1 - array, array]
        return np.stack(pair, axis=2)
    if chosen == "NC":
        array = array[:, None, :]
    elif chosen == "KNC":
        array = np.ascontiguousarray(array.transpose(1, 0, 2))
    return _softmax(array) if logits else array


def as_floats(array: Array) -> Array:
    """Numbers as float32 where that holds them, else as float64."""
    small = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if small else np.float64, copy=False)


def _as_array(values: Any) -> tuple[Array, bool]:
    """The numbers, and whether the first axis is the members because a list was given."""
    listed = isinstance(values, Mapping) or (
        isinstance(values, list | tuple) and values and hasattr(values[0], "shape")
    )
    if not listed:
        return _numbers(values), False
    parts = [
        _numbers(part) for part in (values.values() if isinstance(values, Mapping) else values)
    ]
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
    return np.stack(parts), True


def _numbers(values: Any) -> Array:
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and isinstance(values, pd.DataFrame | pd.Series):
            # pandas' own number types come as objects, with NA for gaps.
            array = values.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the predictions are no array of numbers: {error}",
            "give an array of probabilities, all rows of one length",
        ) from error
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"the predictions are no numbers but of type {array.dtype}",
            "give an array of probabilities, all rows of one length",
        )
    if isinstance(values, np.ma.MaskedArray):
        array = np.where(np.ma.getmaskarray(values), np.nan, array)
    return array


def _only_fit(shape: tuple[int, ...], sizes: dict[str, int | None]) -> Layout:
    fits = [layout for layout in LAYOUTS if _fits(shape, layout, sizes)]
    known = ", ".join(f"{axis}={size}" for axis, size in sizes.items() if size is not None)
    if len(fits) == 1:
        return fits[0]
    if fits:
        readings = " or ".join(f"[{', '.join(layout)}]" for layout in fits)
        raise InputError(
            f"predictions of shape {shape} can be {readings}" + (f" with {known}" if known else ""),
            f"say which, for example layout={fits[0]!r}",
            parameters=("layout",),
        )
    raise InputError(
        f"no layout fits predictions of shape {shape}" + (f" with {known}" if known else ""),
        f"choose a layout among {', '.join(LAYOUTS)} and check the sizes",
        parameters=("layout",),
    )


def _fits(shape: tuple[int, ...], layout: Layout, sizes: dict[str, int | None]) -> bool:
    if len(shape) != len(layout):
        return False
    given = dict(zip(layout, shape, strict=True))
    given.setdefault("K", 1)
    given.setdefault("C", 2)
    return all(sizes[axis] in (None, size) for axis, size in given.items())


def _check_fit(shape: tuple[int, ...], layout: Layout, sizes: dict[str, int | None]) -> None:
    if not _fits(shape, layout, sizes):
        wanted = ", ".join(f"{axis}={sizes[axis] or '?'}" for axis in layout)
        raise InputError(
            f"predictions of shape {shape} do not fit the layout {layout} with [{wanted}]",
            "check the layout and the sizes",
            parameters=("layout",),
        )
    if 0 in shape:
        raise InputError(
            f"predictions of shape {shape} lack items, members or classes",
            "check that the arrays were filled",
        )


def _sigmoid(logits: Array) -> Array:
    probabilities: Array = np.exp(-np.logaddexp(0, -logits))
    return probabilities


def _softmax(logits: Array) -> Array:
    # An infinite logit becomes NaN, which is refused by name later.
    with np.errstate(invalid="ignore"):
        shifted = np.exp(logits - logits.max(axis=2, keepdims=True))
        probabilities: Array = shifted / shifted.sum(axis=2, keepdims=True)
    return probabilities


def names_of_frames(values: Any, layout: str | None) -> dict[str, pd.Index[Any]]:
    """The names of the axes N, K and C that DataFrames know; empty for plain arrays."""
    if isinstance(values, pd.DataFrame):
        axes = layout if layout in ("NC", "NK", "KN") else ""
        return dict(zip(axes, (values.index, values.columns), strict=False))
    parts = list(values.values()) if isinstance(values, Mapping) else values
    if not isinstance(parts, list | tuple) or not any(map(_is_frame, parts)):
        return {}
    first = parts[0]
    for part in parts:
        if not _is_frame(part) or not all(
            mine.equals(theirs) for mine, theirs in zip(_axes(part), _axes(first), strict=False)
        ):
            raise InputError(
                "the tables of the members differ in index or columns",
                "bring them into one order, for example with frame.reindex(...)",
            )
    return dict(zip("NC", _axes(first), strict=False))


def _is_frame(value: object) -> bool:
    return isinstance(value, pd.DataFrame | pd.Series)


def _axes(frame: Any) -> list[pd.Index[Any]]:
    return list(frame.axes)


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
