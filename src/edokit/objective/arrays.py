"""What numpy arrays and torch tensors share, and the one small constant inside logarithms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, TypeAlias

import array_api_compat
from threadpoolctl import ThreadpoolController

Array: TypeAlias = Any
"""A numpy array or a torch tensor; the shape is in the docstring of whoever takes it."""

EPSILON = 1e-12  # ε: keeps a logarithm finite where a member gives a label no probability at all


def namespace(*arrays: Array) -> Any:
    """The functions (``xp.log``, ``xp.sum`` …) of the library that these arrays come from."""
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


def members_first(probabilities: Array) -> Array:
    """[N, K, C] -> [K, N, C], so that a pool of every item is one matrix product."""
    return namespace(probabilities).permute_dims(probabilities, (1, 0, 2))


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
