"""The sums behind t and D, compiled: used where numba is installed (the extra `fast`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

# Items whose probabilities, as they come and member by member, stay in a core's first-level cache.
# It is a constant, so that what goes over a whole block is unrolled.
_BLOCK = 64
# Rows a power of two apart would push each other out of the cache.
_ROW = _BLOCK + 16

Kernel = Callable[[Any, Any, Any, Any, Any], None]


@lru_cache(maxsize=1)
def overlap_kernel() -> Kernel | None:
    """Adds class counts [C], hits [K] and distances [K, K] (above the diagonal) of P [N, K, C] and
    y [N] to its last three arguments; None without numba."""
    try:
        import numba
    except ImportError:
        return None

    # Sums may be taken in any order, so that one instruction adds several items.
    @numba.njit(nogil=True, fastmath={"reassoc", "nsz", "contract"})
    def add(P: Any, y: Any, counts: Any, hits: Any, gaps: Any) -> None:
        items, members, classes = P.shape
        # Of two classes one column tells both: ‖p − p'‖₁ = 2·|p_1 − p'_1|, as rows sum to one.
        columns = 1 if classes == 2 else classes
        scale = 2.0 if classes == 2 else 1.0
        zero = P.dtype.type(0)
        one = P.dtype.type(1)
        rows = np.zeros((members, _ROW), P.dtype)
        labels = np.zeros(_ROW, P.dtype)
        for start in range(0, items, _BLOCK):
            length = min(_BLOCK, items - start)
            if length < _BLOCK:
                # What a last, short block leaves over adds nothing.
                rows[:] = zero
                labels[:] = zero
            for c in range(classes):
                found = 0
                for i in range(length):
                    found += y[start + i] == c
                counts[c] += found
                if c == 0 and classes == 2:
                    hits += found
            for c in range(classes - columns, classes):
                # Label 1 of two adds p_1, label 0 adds p_0 = 1 − p_1.
                other = -one if classes == 2 else zero
                for i in range(length):
                    labels[i] = one if y[start + i] == c else other
                # Five members at a time: what is read for one of them is there for the others.
                for k in range(0, members - 4, 5):
                    for i in range(length):
                        rows[k, i] = P[start + i, k, c]
                        rows[k + 1, i] = P[start + i, k + 1, c]
                        rows[k + 2, i] = P[start + i, k + 2, c]
                        rows[k + 3, i] = P[start + i, k + 3, c]
                        rows[k + 4, i] = P[start + i, k + 4, c]
                for k in range(members - members % 5, members):
                    for i in range(length):
                        rows[k, i] = P[start + i, k, c]
                for k in range(members):
                    row, part = rows[k], zero
                    for i in range(_BLOCK):
                        part += row[i] * labels[i]
                    hits[k] += part
                # Four others at a time: each number of ours is looked up once for all of them.
                for k in range(members - 1):
                    ours = rows[k]
                    for other in range(k + 1, members - 3, 4):
                        a, b, e, d = rows[other], rows[other + 1], rows[other + 2], rows[other + 3]
                        to_a, to_b, to_c, to_d = zero, zero, zero, zero
                        for i in range(_BLOCK):
                            mine = ours[i]
                            to_a += abs(mine - a[i])
                            to_b += abs(mine - b[i])
                            to_c += abs(mine - e[i])
                            to_d += abs(mine - d[i])
                        gaps[k, other] += scale * to_a
                        gaps[k, other + 1] += scale * to_b
                        gaps[k, other + 2] += scale * to_c
                        gaps[k, other + 3] += scale * to_d
                    for other in range(members - (members - 1 - k) % 4, members):
                        theirs, part = rows[other], zero
                        for i in range(_BLOCK):
                            part += abs(ours[i] - theirs[i])
                        gaps[k, other] += scale * part

    kernel: Kernel = add
    return kernel
