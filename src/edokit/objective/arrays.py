"""What numpy arrays and torch tensors share, and sums that add up over shards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import array_api_compat
import array_api_compat.numpy
import numpy as np
from threadpoolctl import ThreadpoolController

Array: TypeAlias = Any
"""A numpy array or a torch tensor; the shape is in the docstring of whoever takes it."""

_Sums = TypeVar("_Sums", bound="Additive")

EPSILON = 1e-12  # ε: keeps a logarithm finite where a member gives a label no probability at all
# Items that are transposed in one go: what is read and written stays in the cache.
_TRANSPOSED = 256
_FEW_CLASSES = 8


def namespace(*arrays: Array) -> Any:
    """The functions (``xp.log``, ``xp.sum`` …) of the library that these arrays come from."""
    if all(type(values) is np.ndarray for values in arrays):
        return array_api_compat.numpy  # looking it up takes longer than many a product
    return array_api_compat.array_namespace(*arrays)


def like(values: Any, model: Array) -> Array:
    """``values`` as float64 in the library, and on the device, of ``model``."""
    xp = namespace(model)
    return xp.asarray(values, dtype=xp.float64, device=array_api_compat.device(model))


def double(values: Array) -> Array:
    """``values`` in float64; gradients flow through."""
    xp = namespace(values)
    return xp.astype(values, xp.float64, copy=False)


def without_gradient(values: Array) -> Array:
    """``values`` as a constant for torch's autograd; numpy arrays come back as they are."""
    return values.detach() if hasattr(values, "detach") else values


def take(values: Array | None, index: Any, *axes: int) -> Array | None:
    """``values`` at these positions along each of the axes; None stays None."""
    if values is None:
        return None
    xp = namespace(values)
    where = xp.asarray(index, dtype=xp.int64, device=array_api_compat.device(values))
    for axis in axes:
        values = xp.take(values, where, axis=axis)
    return values


class Additive:
    """A dataclass of sums over items: ``a + b``, field by field, are those of both shards."""

    def __add__(self: _Sums, other: _Sums) -> _Sums:
        if not isinstance(other, type(self)):
            return NotImplemented
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in names))

    def __radd__(self: _Sums, other: object) -> _Sums:
        # sum(shards) starts at 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented


def member_rows(P: Array, out: Array | None = None) -> Array:
    """[N, K, C] -> [K, N·C] in float64, so that a pool of every item is one matrix product.

    ``out`` (numpy only) is written into instead of new memory.
    """
    items, members, classes = P.shape
    xp = namespace(P)
    if not isinstance(P, np.ndarray):
        return xp.reshape(double(xp.permute_dims(P, (1, 0, 2))), (members, -1))
    rows = np.empty((members, items * classes)) if out is None else out
    if classes > _FEW_CLASSES:
        rows.reshape(members, items, classes)[...] = P.transpose(1, 0, 2)
        return rows
    # Class by class, a block of items is a matrix to be transposed, which numpy does several times
    # faster than it permutes three axes.
    flat = P.reshape(items, members * classes)
    for s in slices(items, _TRANSPOSED):
        for c in range(classes):
            rows[:, s.start * classes + c : s.stop * classes : classes] = flat[s, c::classes].T
    return rows


def slices(length: int, step: int) -> Iterator[slice]:
    """Consecutive slices of at most ``step`` that cover ``range(length)``."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def one_thread() -> AbstractContextManager[Any]:
    """While it is open, a matrix product stays on the thread that asks for it.

    For many small products, whose threads would only wait for each other, and for threads of our
    own, each with products of its own.
    """
    opened: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return opened


@lru_cache(maxsize=1)  # looking for the libraries takes longer than a fit
def _libraries() -> Any:
    # numpy has brought its own; scipy has another one.
    import scipy.linalg.blas  # noqa: F401

    return ThreadpoolController()
