"""How many threads linear algebra may use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


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
