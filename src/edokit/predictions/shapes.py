"""From any common layout to [N, K, C], stated or unambiguous, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit.errors import InputError, one_of

Array = npt.NDArray[Any]


class Layout(str, Enum):
    """What the axes of an array of predictions are: items N, members K, classes C."""

    NKC = "NKC"
    KNC = "KNC"
    NC = "NC"
    """One member."""
    NK = "NK"
    """Probability of the second of two classes."""
    KN = "KN"
    """Probability of the second of two classes, members first."""


def canonical(
    values: Any,
    layout: str | None = None,
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
        one_of("layout", layout, [choice.value for choice in Layout])
    array, members_first = _as_array(values)
    sizes = {"N": n_items, "K": n_members, "C": n_classes}
    if members_first:
        listed = Layout.KNC if array.ndim == 3 else Layout.KN
        if layout is not None and Layout(layout) is not listed:
            raise InputError(
                f"a list of arrays has the layout {listed.value}, but got layout={layout!r}",
                "leave the layout out",
            )
        layout = listed
    chosen = Layout(layout) if layout else _only_fit(array.shape, sizes)
    _check_fit(array.shape, chosen, sizes)
    if array.dtype.kind != "f" or array.dtype.itemsize < 4:
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    if chosen in (Layout.NK, Layout.KN):
        array = array.T if chosen is Layout.KN else array
        second = 1 / (1 + np.exp(-array)) if logits else array
        return np.stack([1 - second, second], axis=2)
    if chosen is Layout.NC:
        array = array[:, None, :]
    elif chosen is Layout.KNC:
        array = np.ascontiguousarray(array.transpose(1, 0, 2))
    return _softmax(array) if logits else array


def _as_array(values: Any) -> tuple[Array, bool]:
    """The numbers, and whether the first axis is the members because a list was given."""
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list | tuple) and values and hasattr(values[0], "shape"):
        parts = [np.asarray(part) for part in values]
        shapes = sorted({part.shape for part in parts})
        if len(shapes) > 1:
            raise InputError(
                "all members must have one shape [items, classes], but got"
                f" {', '.join(map(str, shapes))}",
                "predict the same items and classes with each member",
            )
        if parts[0].ndim not in (1, 2):
            raise InputError(
                f"each member of a list must have shape [items, classes], but got {shapes[0]}",
                "give one array [items, classes] per member",
            )
        return np.stack(parts), True
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"predictions must be numbers, but got an array of type {array.dtype}",
            "give an array of probabilities, all rows of one length",
        )
    return array, False


def _only_fit(shape: tuple[int, ...], sizes: dict[str, int | None]) -> Layout:
    fits = [layout for layout in Layout if _fits(shape, layout, sizes)]
    known = ", ".join(f"{axis}={size}" for axis, size in sizes.items() if size is not None)
    if len(fits) == 1:
        return fits[0]
    if fits:
        readings = " or ".join(f"[{', '.join(layout.value)}]" for layout in fits)
        raise InputError(
            f"the axes of predictions must be clear, but shape {shape} can be {readings}"
            + (f" with {known}" if known else ""),
            f"say which, for example layout={fits[0].value!r}",
        )
    raise InputError(
        f"predictions must have shape [N, K, C] or another known layout, but got {shape}"
        + (f" with {known}" if known else ""),
        f"choose a layout among {', '.join(layout.value for layout in Layout)} and check the sizes",
    )


def _fits(shape: tuple[int, ...], layout: Layout, sizes: dict[str, int | None]) -> bool:
    if len(shape) != len(layout.value):
        return False
    given = dict(zip(layout.value, shape, strict=True))
    given.setdefault("K", 1)
    given.setdefault("C", 2)
    return all(sizes[axis] in (None, size) for axis, size in given.items())


def _check_fit(shape: tuple[int, ...], layout: Layout, sizes: dict[str, int | None]) -> None:
    if not _fits(shape, layout, sizes):
        wanted = ", ".join(f"{axis}={sizes[axis] or '?'}" for axis in layout.value)
        raise InputError(
            f"predictions of layout {layout.value} must have shape [{wanted}], but got {shape}",
            "check the layout and the sizes",
        )
    if 0 in shape:
        raise InputError(
            f"predictions need at least one item, member and class, but got shape {shape}",
            "check that the arrays were filled",
        )


def _softmax(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=2, keepdims=True))
    probabilities: Array = shifted / shifted.sum(axis=2, keepdims=True)
    return probabilities
