"""The sums behind t and D, compiled: used where numba is installed (the extra `fast`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

# Items whose probabilities stay in a core's first-level cache while all pairs are compared.
_BLOCK = 512

Kernel = Callable[[Any, Any, Any, Any, Any, Any, Any], None]


@lru_cache(maxsize=1)
def overlap_kernel() -> Kernel | None:
    """Adds class counts [C], hits [K] and distances of pairs [p] of P [N, K, C] and y [N] to its
    last three arguments, the pairs being (left, right) [p] each; None without numba."""
    try:
        import numba
    except ImportError:
        return None

    # Sums may be taken in any order, so that one instruction adds several items.
    @numba.njit(nogil=True, fastmath={"reassoc", "nsz", "contract"})
    def add(P: Any, y: Any, left: Any, right: Any, counts: Any, hits: Any, pairs: Any) -> None:
        items, members, classes = P.shape
        # Of two classes one column tells both: ‖p − p'‖₁ = 2·|p_1 − p'_1|, as rows sum to one.
        columns = 1 if classes == 2 else classes
        scale = 2.0 if classes == 2 else 1.0
        zero = P[0, 0, 0] - P[0, 0, 0]
        rows = np.empty((columns, members, _BLOCK), P.dtype)
        labels = np.empty((columns, _BLOCK), P.dtype)
        for start in range(0, items, _BLOCK):
            length = min(_BLOCK, items - start)
            for i in range(length):
                label = y[start + i]
                if 0 <= label < classes:
                    counts[label] += 1.0
                for c in range(columns):
                    # Label 1 of two adds p_1, label 0 adds p_0 = 1 − p_1.
                    mine = label == classes - columns + c
                    labels[c, i] = 1.0 if mine else (-1.0 if classes == 2 else 0.0)
            first = 0.0
            if classes == 2:
                for i in range(length):
                    first += y[start + i] == 0
            for k in range(members):
                for c in range(columns):
                    row, label_row, part = rows[c, k], labels[c], zero
                    for i in range(length):
                        row[i] = P[start + i, k, classes - columns + c]
                    for i in range(length):
                        part += row[i] * label_row[i]
                    hits[k] += part
                hits[k] += first
            for pair in range(len(left)):
                for c in range(columns):
                    ours, theirs, part = rows[c, left[pair]], rows[c, right[pair]], zero
                    for i in range(length):
                        part += abs(ours[i] - theirs[i])
                    pairs[pair] += scale * part

    kernel: Kernel = add
    return kernel
