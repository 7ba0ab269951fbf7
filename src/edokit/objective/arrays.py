"""What numpy arrays and torch tensors share, and the one small constant inside logarithms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, TypeAlias

import array_api_compat
import array_api_compat.numpy
import numpy as np
from threadpoolctl import ThreadpoolController

Array: TypeAlias = Any
"""A numpy array or a torch tensor; the shape is in the docstring of whoever takes it."""

EPSILON = 1e-12  # ε: keeps a logarithm finite where a member gives a label no probability at all
# Items that are transposed in one go: what is read and written stays in the cache.
_TRANSPOSED = 256
_FEW_CLASSES = 8


def namespace(*arrays: Array) -> Any:
    """The functions (``xp.log``, ``xp.sum`` …) of the library that these arrays come from."""
    if all(type(values) is np.ndarray for values in arrays):
        return array_api_compat.numpy  # looking it up takes longer than many a product
    return array_api_compat.array_namespace(*arrays)


def device_of(values: Array) -> Any:
    """Where the array lives: the CPU, or which GPU."""
    return array_api_compat.device(values)


def like(values: Any, model: Array) -> Array:
    """``values`` as float64 in the library, and on the device, of ``model``."""
    xp = namespace(model)
    return xp.asarray(values, dtype=xp.float64, device=device_of(model))


def double(values: Array) -> Array:
    """``values`` in float64; gradients flow through."""
    xp = namespace(values)
    return xp.astype(values, xp.float64, copy=False)


def without_gradient(values: Array) -> Array:
    """``values`` as a constant for torch's autograd; numpy arrays come back as they are."""
    return values.detach() if hasattr(values, "detach") else values


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


@lru_cache(maxsize=1)
def _libraries() -> Any:
    """The linear algebra libraries that are loaded; looking for them takes longer than a fit."""
    # numpy has brought its own; scipy has another one.
    import scipy.linalg.blas  # noqa: F401

    return ThreadpoolController()
