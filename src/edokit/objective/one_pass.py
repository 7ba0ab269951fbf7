"""The sums behind ``Summaries`` for numpy arrays: one pass over the items, block by block."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from edokit.objective.arrays import EPSILON, slices

Floats: TypeAlias = NDArray[Any]

# One member's share of a block of items, and a block's differences between members, are at most
# this long: they stay in the cache, and each numpy call is long enough that threads, which meet
# between calls, rarely wait for each other.
_ROW_BYTES = 2**16
_GAPS_BYTES = 2**22
# Blocks are added up in chunks of fixed size, so the sums do not depend on the threads.
_BLOCKS_PER_CHUNK = 16
# OpenBLAS keeps a product of at most this many multiplications on the calling thread.
_ONE_THREAD_PRODUCT = 2**18


def block_sums(
    P: Floats, q: Floats | None, y: NDArray[Any] | None, threads: int | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Class counts [C], hits [K], distances [K, K] and log losses [K, C], in float64.

    P is [N, K, C] in float32 or float64, with rows that sum to one; q [N, C]; y [N]. Without y
    the first three are zeros, without q the last is.
    """
    items, members, classes = P.shape
    left, right = _pairs(members)
    row = min(_ROW_BYTES, max(_GAPS_BYTES // members, _ROW_BYTES // 4))
    block = max(1, row // P.itemsize // _columns(classes))
    # Workspaces go from one chunk to the next: fresh memory costs more than what is done in it.
    spare: list[_Workspace] = []

    def chunk(start: int, stop: int) -> list[Floats]:
        sums = [np.zeros(shape) for shape in (classes, members, len(left), (members, classes))]
        labels = None if y is None else _labels(y[start:stop], classes, P.dtype, sums[0], sums[1])
        work = spare.pop() if spare else _Workspace(P.dtype, block, members, classes)
        for part in slices(stop - start, block):
            s = slice(start + part.start, start + part.stop)
            if part.stop - part.start < block:
                work = _Workspace(P.dtype, part.stop - part.start, members, classes)
            if labels is not None:
                work.add_overlaps(P[s], labels[:, part], sums[1], sums[2])
            if q is not None:
                work.add_log_losses(P[s], q[s], sums[3])
        spare.append(work)
        return sums

    chunks = list(slices(items, block * _BLOCKS_PER_CHUNK)) or [slice(0, 0)]
    bounds = [s.start for s in chunks], [s.stop for s in chunks]
    workers = min(len(chunks), threads or available_cores())
    if workers == 1:
        parts = list(map(chunk, *bounds))
    else:
        with ThreadPoolExecutor(workers) as pool:
            parts = list(pool.map(chunk, *bounds))
    counts, hits, gaps, log_losses = (np.sum(each, axis=0) for each in zip(*parts, strict=True))
    distances = np.zeros((members, members))
    distances[left, right] = distances[right, left] = gaps
    return counts, hits, distances, log_losses


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


def _labels(
    y: NDArray[Any], classes: int, dtype: np.dtype[Any], counts: Floats, hits: Floats
) -> Floats:
    """What each class column of P must be weighed by to add up to the hits, [columns, N].

    Counts the labels on the way, and adds to the hits what does not depend on P.
    """
    is_class = [y == c for c in range(classes)]
    counts += [np.count_nonzero(mask) for mask in is_class]
    if classes != 2:
        return np.stack(is_class).astype(dtype)
    # Label 1 adds p_1, label 0 adds p_0 = 1 − p_1.
    hits += counts[0]
    return (is_class[1].view(np.int8) - is_class[0].view(np.int8)).astype(dtype)[None, :]


class _Workspace:
    """Adds the sums of blocks of one size, always in the same memory."""

    def __init__(self, dtype: np.dtype[Any], items: int, members: int, classes: int) -> None:
        from scipy.linalg.blas import dasum, sasum

        # BLAS adds up absolute values several times faster than np.abs and np.sum do.
        self.absolute_sum = sasum if dtype == np.float32 else dasum
        self.columns = _columns(classes)
        # Two classes: ‖p − p'‖₁ = 2·|p_1 − p'_1|.
        self.scale = 2.0 if classes == 2 else 1.0
        self.compact = np.empty((items, members, self.columns), dtype)
        self.logs = np.empty((items, members, classes), dtype)
        # Members in rows, items last: a pair of members is two long rows. After the last member
        # the first ones come again, so that "every member less the one a step before" is one
        # subtraction, and so are several steps.
        half = members // 2
        length = self.columns * items
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

    def add_overlaps(self, P: Floats, labels: Floats, hits: Floats, gaps: Floats) -> None:
        # Two copies touch the large array once and in order; one would go through it K times.
        np.copyto(self.compact, P[:, :, P.shape[2] - self.columns :])
        np.copyto(self.rows.reshape(len(self.rows), *labels.shape), self.compact.transpose(1, 2, 0))
        np.copyto(self.again, self.rows[: len(self.again)])
        hits += self.rows @ labels.reshape(-1)
        found: list[float] = []
        for later, earlier, out in self.steps:
            np.subtract(later, earlier, out=out)
            found += [self.absolute_sum(gap) for gap in out.reshape(-1, out.shape[-1])]
        gaps += self.scale * np.asarray(found)

    def add_log_losses(self, P: Floats, q: Floats, log_losses: Floats) -> None:
        np.add(P, P.dtype.type(EPSILON), out=self.logs)
        np.log(self.logs, out=self.logs)
        log_losses -= _class_sums(self.logs, q.astype(P.dtype, copy=False))


def _class_sums(values: Floats, labels: Floats) -> Floats:
    """Σ_i values[i, k, c] · labels[i, c], as [K, C]."""
    items, members, classes = values.shape
    step = _ONE_THREAD_PRODUCT // (members * classes * classes)
    if step < 1024:
        return np.asarray((values * labels[:, None, :]).sum(axis=0))
    # Few classes: numpy is slow along so short an axis. A matrix product is fast, though it also
    # weighs every class by every other class's labels; only its diagonal is wanted.
    total = np.zeros((members, classes))
    for s in slices(items, step):
        products = values[s].reshape(-1, members * classes).T @ labels[s]
        total += np.diagonal(products.reshape(members, classes, classes), axis1=1, axis2=2)
    return total
