"""The sums behind ``Summaries`` for numpy arrays: one pass over the items, block by block."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from edokit.objective.arrays import EPSILON, slices
from edokit.objective.compiled import overlap_kernel
from edokit.objective.threads import one_thread

Floats: TypeAlias = NDArray[Any]

# One member's share of a block of items, and a block's differences between members, are at most
# this long: they stay in the cache, and each numpy call is long enough that threads, which meet
# between calls, rarely wait for each other.
_ROW_BYTES = 2**16
_GAPS_BYTES = 2**22
# Blocks are added up in chunks of fixed size, so the sums do not depend on the threads.
_BLOCKS_PER_CHUNK = 8
# Below so many numbers, compiling takes longer than it saves.
_WORTH_COMPILING = 2**23
# Above so many classes, weighing every class by every other one's labels costs more than it saves.
_FEW_CLASSES = 6


def block_sums(
    P: Floats, q: Floats | None, y: NDArray[Any] | None, threads: int | None = None
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Class counts [C], hits [K], distances [K, K], soft counts [C] and log losses [K, C].

    In float64. P is [N, K, C] in float32 or float64, with rows that sum to one; q [N, C]; y [N].
    Without y the first three are zeros, without q the last two are.
    """
    items, members, classes = P.shape
    left, right = _pairs(members)
    shapes = (classes,), (members,), (len(left),), (classes,), (members, classes)
    row = min(_ROW_BYTES, max(_GAPS_BYTES // members, _ROW_BYTES // 4))
    block = max(1, min(items, row // P.itemsize // _columns(classes)))
    kernel = overlap_kernel() if P.size >= _WORTH_COMPILING else None
    lower, upper = np.sort(np.array([left, right], dtype=np.intp), axis=0)
    # Workspaces go from one chunk to the next: fresh memory costs more than what is done in it.
    spare: list[_Workspace] = []

    def chunk(start: int, stop: int) -> list[Floats]:
        sums = [np.zeros(shape) for shape in shapes]
        if y is not None and kernel is not None:
            square = np.zeros((members, members))
            kernel(P[start:stop], y[start:stop], sums[0], sums[1], square)
            sums[2] += square[lower, upper]
        work = spare.pop() if spare else _Workspace(P.dtype, block, members, classes)
        for part in slices(stop - start, block):
            s = slice(start + part.start, start + part.stop)
            rest = part.stop - part.start
            fit = work if rest == block else _Workspace(P.dtype, rest, members, classes)
            if y is not None and kernel is None:
                fit.add_overlaps(P[s], y[s], *sums[:3])
            if q is not None:
                fit.add_log_losses(P[s], q[s], *sums[3:])
        spare.append(work)
        return sums

    chunks = list(slices(items, block * _BLOCKS_PER_CHUNK)) or [slice(0, 0)]
    bounds = [s.start for s in chunks], [s.stop for s in chunks]
    workers = min(len(chunks), threads or available_cores())
    with one_thread():
        if workers == 1:
            parts = list(map(chunk, *bounds))
        else:
            with ThreadPoolExecutor(workers) as pool:
                parts = list(pool.map(chunk, *bounds))
    counts, hits, gaps, soft_counts, log_losses = (
        np.sum(each, axis=0) for each in zip(*parts, strict=True)
    )
    distances = np.zeros((members, members))
    distances[left, right] = distances[right, left] = gaps
    return counts, hits, distances, soft_counts, log_losses


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _pairs(members: int) -> tuple[list[int], list[int]]:
    """Every pair once: each member with the next, with the one after the next, and so on round.

    Of an even number of members, the last step (half-way round) would meet every pair twice.
    """
    steps = range(1, members // 2 + 1)
    pairs = [
        (k, (k + step) % members)
        for step in steps
        for k in range(members if 2 * step < members else members // 2)
    ]
    return [k for k, _ in pairs], [other for _, other in pairs]


def _columns(classes: int) -> int:
    """Class columns to look at: of two classes one is enough, as rows sum to one."""
    return 1 if classes == 2 else classes


class _Workspace:
    """Adds the sums of blocks of one size, always in the same memory."""

    def __init__(self, dtype: np.dtype[Any], items: int, members: int, classes: int) -> None:
        from scipy.linalg.blas import dasum, sasum

        # BLAS adds up absolute values several times faster than np.abs and np.sum do.
        self.absolute_sum = sasum if dtype == np.float32 else dasum
        columns = _columns(classes)
        length = columns * items
        self.compact = np.empty((items, members, columns), dtype)
        self.logs = np.empty((items, members, classes), dtype)
        self.labels = np.empty((columns, items), dtype)
        # Members in rows, items last: a pair of members is two long rows. After the last member
        # the first ones come again, so that "every member less the one some steps before" is one
        # subtraction for all members, and even for several steps.
        half = members // 2
        ring = np.empty((members + half, length), dtype)
        self.rows, self.again = ring[:members], ring[members:]
        steps = max(1, _GAPS_BYTES // (members * length * dtype.itemsize))
        gaps = np.empty((min(steps, max(1, half)), members, length), dtype)
        self.steps: list[tuple[Floats, Floats, Floats]] = []
        for s in slices((members - 1) // 2, steps):
            later = sliding_window_view(ring[1 + s.start : s.stop + members], members, axis=0)
            self.steps.append((later.transpose(0, 2, 1), self.rows, gaps[: s.stop - s.start]))
        if members % 2 == 0:
            # Half-way round, every pair would come twice.
            self.steps.append((self.rows[half:], self.rows[:half], gaps[0, :half]))
        self.gap_rows = [list(out.reshape(-1, length)) for _, _, out in self.steps]

    def add_overlaps(
        self, P: Floats, y: NDArray[Any], counts: Floats, hits: Floats, gaps: Floats
    ) -> None:
        """Add a block's class counts [C], hits [K] and distances, pair by pair."""
        classes, columns = len(counts), len(self.labels)
        # Two copies touch the large array once and in order; one would go through it K times.
        np.copyto(self.compact, P[:, :, classes - columns :])
        by_member = self.rows.reshape(len(self.rows), columns, len(P))
        np.copyto(by_member, self.compact.transpose(1, 2, 0))
        np.copyto(self.again, self.rows[: len(self.again)])
        is_class = [y == c for c in range(classes)]
        found = [np.count_nonzero(mask) for mask in is_class]
        counts += found
        if classes == 2:
            # Label 1 adds p_1, label 0 adds p_0 = 1 − p_1.
            hits += found[0]
            np.copyto(self.labels[0], is_class[1])
            self.labels *= 2
            self.labels -= 1
        else:
            np.copyto(self.labels, is_class)
        hits += np.dot(self.rows, self.labels.reshape(-1))
        sums: list[float] = []
        for (later, earlier, out), rows in zip(self.steps, self.gap_rows, strict=True):
            np.subtract(later, earlier, out=out)
            sums += map(self.absolute_sum, rows)
        # Two classes: ‖p − p'‖₁ = 2·|p_1 − p'_1|.
        gaps += np.asarray(sums) * (2.0 if classes == 2 else 1.0)

    def add_log_losses(self, P: Floats, q: Floats, soft_counts: Floats, log_losses: Floats) -> None:
        """Add a block's soft-label mass [C] and log losses [K, C]."""
        q = q.astype(P.dtype, copy=False)
        # A product with ones: np.sum is slow where the other axis is as short as the classes.
        soft_counts += np.dot(np.ones(len(q), q.dtype), q)
        np.add(P, P.dtype.type(EPSILON), out=self.logs)
        np.log(self.logs, out=self.logs)
        log_losses -= _class_sums(self.logs, q)


def _class_sums(values: Floats, labels: Floats) -> Floats:
    """Σ_i values[i, k, c] · labels[i, c], as [K, C]."""
    items, members, classes = values.shape
    if classes > _FEW_CLASSES:
        return np.asarray((values * labels[:, None, :]).sum(axis=0))
    # Few classes: numpy is slow along so short an axis. A matrix product is fast, though it also
    # weighs every class by every other class's labels; only its diagonal is wanted.
    # (np.dot, since the operator would keep other threads waiting meanwhile.)
    products = np.dot(labels.T, values.reshape(items, members * classes))
    return np.diagonal(products.reshape(classes, members, classes), axis1=0, axis2=2)
