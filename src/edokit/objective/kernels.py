"""The sums behind ``Summaries``, one kernel per backend: numpy, numba, torch, Triton."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from array_api_compat import device
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from edokit._parallel import available_cores
from edokit.objective.pools import (
    EPSILON,
    Array,
    cumulative,
    double,
    like,
    namespace,
    one_thread,
    slices,
)

Floats: TypeAlias = NDArray[Any]

# One member's share of a block of items, and a block's differences between members, are at most
# this long: they stay in the cache, and each numpy call is long enough that threads, which meet
# between calls, rarely wait for each other.
_ROW_BYTES = 2**16
_GAPS_BYTES = 2**22
# Blocks are added up in chunks of fixed size, so the sums do not depend on the threads.
_BLOCKS_PER_CHUNK = 8
# Below so many numbers, loading what is compiled takes longer than it saves.
_WORTH_COMPILING = 2**24
# Above so many classes, weighing every class by every other one's labels costs more than it saves.
_FEW_CLASSES = 6


def block_sums(
    P: Floats,
    q: Floats | None,
    y: NDArray[Any] | None,
    threads: int | None = None,
    dtype: type | None = None,
    total: int = 0,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Class counts [C], soft counts [C], hits [K], distances [K, K] and log losses [K, C].

    In float64. P is [N, K, C] in float32 or float64, with rows that sum to one; q [N, C]; y [N].
    Without y class counts, hits and distances are zeros, without q the other two are. Inside a
    block of items numbers are of ``dtype``: that of P unless given. ``total`` are the numbers of
    all shards, if P is one of them.
    """
    items, members, classes = P.shape
    kind = np.dtype(dtype or P.dtype)
    # Every pair once: each member with the next, with the one after the next, and so on round. Of
    # an even number of members, the last step (half-way round) would meet every pair twice.
    left, right = (
        np.array(
            [
                (k, (k + step) % members)
                for step in range(1, members // 2 + 1)
                for k in range(members if 2 * step < members else members // 2)
            ],
            dtype=np.intp,
        )
        .reshape(-1, 2)
        .T
    )
    shapes = (classes,), (classes,), (members,), (len(left),), (members, classes)
    kernels = compiled() if max(P.size, total) >= _WORTH_COMPILING else None
    # Read in one precision and added up in another, a block has more to keep in the cache.
    gaps = _GAPS_BYTES if kind == P.dtype else _GAPS_BYTES // 16
    row = min(_ROW_BYTES, max(gaps // members, _ROW_BYTES // 4))
    block = max(1, min(items, row // kind.itemsize // (1 if classes == 2 else classes)))
    # Workspaces go from one chunk to the next: fresh memory costs more than what is done in it.
    spare: list[_Workspace] = []

    def chunk(start: int, stop: int) -> list[Floats]:
        sums = [np.zeros(shape) for shape in shapes]
        todo, soft = y, q
        if kernels is not None and y is not None:
            square = np.zeros((members, members))
            rows = np.zeros((members + 1, _COMPILED_ROW), kind)
            kernels.add_overlaps(P[start:stop], y[start:stop], rows, sums[0], sums[2], square)
            sums[3] += square[np.minimum(left, right), np.maximum(left, right)]
            todo = None
        if kernels is not None and q is not None:
            flat = np.ascontiguousarray(P[start:stop]).reshape(stop - start, members * classes)
            labels = np.ascontiguousarray(q[start:stop], dtype=np.float64)
            if kernels.add_log_losses(flat, labels, EPSILON, sums[1], sums[4].reshape(-1)):
                soft = None
        if todo is None and soft is None:
            return sums
        work = spare.pop() if spare else _Workspace(kind, P.dtype, block, members, classes)
        for part in slices(stop - start, block):
            s = slice(start + part.start, start + part.stop)
            rest = part.stop - part.start
            fit = work if rest == block else _Workspace(kind, P.dtype, rest, members, classes)
            if todo is not None:
                fit.add_overlaps(P[s], todo[s], sums[0], sums[2], sums[3])
            if soft is not None:
                fit.add_log_losses(P[s], soft[s], sums[1], sums[4])
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
    counts, soft_counts, hits, gaps, log_losses = (
        np.sum(each, axis=0) for each in zip(*parts, strict=True)
    )
    distances = np.zeros((members, members))
    distances[left, right] = distances[right, left] = gaps
    return counts, soft_counts, hits, distances, log_losses


class _Workspace:
    """Adds the sums of blocks of one size, always in the same memory."""

    def __init__(
        self, dtype: np.dtype[Any], given: np.dtype[Any], items: int, members: int, classes: int
    ) -> None:
        columns = 1 if classes == 2 else classes  # of two, one tells both: rows sum to one
        length = columns * items
        self.absolute_sum = _absolute_sum
        if length * members >= _LARGE:
            from scipy.linalg.blas import dasum, sasum

            # BLAS adds up absolute values several times faster than np.abs and np.sum do.
            self.absolute_sum = sasum if dtype == np.float32 else dasum
        self.compact = np.empty((items, members, columns), given)
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
        q = q.astype(self.logs.dtype, copy=False)
        # A product with ones: np.sum is slow where the other axis is as short as the classes.
        soft_counts += np.dot(np.ones(len(q), q.dtype), q)
        np.add(P, self.logs.dtype.type(EPSILON), out=self.logs)
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


# Items whose probabilities, as they come and member by member, stay in a core's first-level cache.
# It is a constant, so that what goes over a whole block is unrolled.
_COMPILED_BLOCK = 64
# Rows a power of two apart would push each other out of the cache.
_COMPILED_ROW = _COMPILED_BLOCK + 16
# Products of this many probabilities are kept side by side, one for each soft label and column.
_GROUPED = 2**15
# So many probabilities multiply to a number that float64 holds, even if all are EPSILON.
_FACTORS = 24


class _Compiled(NamedTuple):
    """What numba compiles."""

    add_overlaps: Callable[..., None]
    """Adds class counts [C], hits [K] and distances [K, K] (above the diagonal) of P [N, K, C] and
    y [N] to its last three arguments; ``rows`` [K + 1, _COMPILED_ROW] are of the type in which
    blocks are added up."""
    add_log_losses: Callable[..., bool]
    """Adds soft counts [C] and log losses [K · C] of P [N, K · C], q [N, C] and ε to its last two
    arguments, and returns True; False, and nothing is added, where soft labels hardly repeat."""


@lru_cache(maxsize=1)
def compiled() -> _Compiled | None:
    """The compiled kernels; None without numba."""
    try:
        import numba
    except ImportError:
        return None

    def jit(function: Any, **options: Any) -> Any:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder to keep what is compiled
            return numba.njit(nogil=True, **options)(function)

    def add_overlaps(P: Any, y: Any, rows: Any, counts: Any, hits: Any, gaps: Any) -> None:
        items, members, classes = P.shape
        # Of two classes one column tells both: ‖p − p'‖₁ = 2·|p_1 − p'_1|, as rows sum to one.
        columns = 1 if classes == 2 else classes
        scale = 2.0 if classes == 2 else 1.0
        zero, one = rows.dtype.type(0), rows.dtype.type(1)
        labels = rows[members]
        for start in range(0, items, _COMPILED_BLOCK):
            length = min(_COMPILED_BLOCK, items - start)
            if length < _COMPILED_BLOCK:
                # What a last, short block leaves over adds nothing.
                rows[:] = zero
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
                    for i in range(_COMPILED_BLOCK):
                        part += row[i] * labels[i]
                    hits[k] += part
                # Four others at a time: each number of ours is looked up once for all of them.
                for k in range(members - 1):
                    ours = rows[k]
                    for other in range(k + 1, members - 3, 4):
                        a, b, e, d = rows[other], rows[other + 1], rows[other + 2], rows[other + 3]
                        to_a, to_b, to_c, to_d = zero, zero, zero, zero
                        for i in range(_COMPILED_BLOCK):
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
                        for i in range(_COMPILED_BLOCK):
                            part += abs(ours[i] - theirs[i])
                        gaps[k, other] += scale * part

    # An argument, since numba would keep a compiled ε of another module when that changes.
    def add_log_losses(P: Any, q: Any, epsilon: float, soft_counts: Any, log_losses: Any) -> bool:
        items, width = P.shape
        classes = q.shape[1]
        most = _GROUPED // width
        # Which of the soft labels so far each item has, found in a table of their hashes.
        bits = q.view(np.uint64)
        group, first = np.empty(items, np.int32), np.empty(most, np.int64)
        slots = 4
        while slots < 2 * most:
            slots *= 2
        table = np.full(slots, -1, np.int32)
        groups = 0
        for i in range(items):
            mixed = np.uint64(0)
            for c in range(classes):
                mixed = (mixed ^ bits[i, c]) * np.uint64(0x9E3779B97F4A7C15)
                mixed ^= mixed >> np.uint64(32)
            slot = np.int64(mixed & np.uint64(slots - 1))
            while True:
                g = table[slot]
                if g < 0:
                    if groups == most:
                        return False
                    g = groups
                    table[slot], first[g] = g, i
                    groups += 1
                    break
                same = True
                for c in range(classes):
                    same &= bits[first[g], c] == bits[i, c]
                if same:
                    break
                slot = (slot + 1) & (slots - 1)
            group[i] = g
        # Items with the same soft label weigh the same: Σ ln p = ln Π p, of as many as float64
        # can hold, so that one logarithm serves for many items.
        products, logs = np.ones((groups, width)), np.zeros((groups, width))
        times = np.zeros(groups, np.int64)
        negative = False
        for i in range(items):
            g = group[i]
            for j in range(width):
                products[g, j] *= P[i, j] + epsilon
                negative |= P[i, j] < 0
            times[g] += 1
            if times[g] % _FACTORS == 0:
                for j in range(width):
                    logs[g, j] += np.log(products[g, j])
                    products[g, j] = 1.0
        for g in range(groups):
            for j in range(width):
                label = q[first[g], j % classes]
                log_losses[j] -= label * (logs[g, j] + np.log(products[g, j]))
            for c in range(classes):
                soft_counts[c] += times[g] * q[first[g], c]
        if negative:  # two of them would be a positive product
            log_losses[:] = np.nan
        return True

    # Sums may be taken in any order, so that one instruction adds several items.
    any_order = {"reassoc", "nsz", "contract"}
    return _Compiled(jit(add_overlaps, fastmath=any_order), jit(add_log_losses, fastmath=any_order))


def scale_sums(P: Array, q: Array, steps: Array, distances: bool) -> tuple[Array | None, Array]:
    """Of ordered classes, steps [C − 1] apart: distances [K, K] between the members' cumulative P
    (None if left out) and products [K, K] of their differences to the cumulative q."""
    xp, members = namespace(P), P.shape[1]
    apart = like(np.zeros((members, members)), P) if distances else None
    products = like(np.zeros((members, members)), P)
    for s in slices(P.shape[0], max(1, _SCALE_BLOCK // (members * P.shape[2]))):
        # Members in rows: [K, n · (C − 1)].
        rows = xp.permute_dims(cumulative(P[s]), (1, 0, 2))
        errors = xp.reshape((rows - cumulative(q[s])) * xp.sqrt(steps), (members, -1))
        products = products + errors @ xp.permute_dims(errors, (1, 0))
        if apart is not None:
            apart = apart + _city_block(xp.reshape(rows * steps, (members, -1)))
    return apart, products


def _absolute_sum(values: NDArray[Any]) -> Any:
    return np.abs(values).sum()


def _city_block(rows: Array) -> Array:
    """[K, K] L1 distances between rows [K, n]."""
    if isinstance(rows, np.ndarray):
        from scipy.spatial.distance import pdist, squareform

        return squareform(pdist(rows, "cityblock"))
    import torch

    return torch.cdist(rows, rows, p=1)


_SCALE_BLOCK = 2**20  # numbers of P at a time
_LARGE = 2**14  # numbers below which importing BLAS takes longer than it saves
# Numbers of P that go through at a time.
_TENSOR_BLOCK = 2**26
# Items whose distances one call of cdist adds up: long rows keep a GPU busy, and float32 exact.
_TENSOR_ROW = 16384


def tensor_sums(P: Array, q: Array, y: Array) -> list[Array]:
    """Class counts [C], soft counts [C], hits [K], distances [K, K] and log losses [K, C]."""
    _, members, classes = P.shape
    xp = namespace(P)
    y = xp.astype(y, xp.int64, copy=False)
    shapes = (classes,), (classes,), (members,), (members, members), (members, classes)
    total = [like(np.zeros(shape), P) for shape in shapes]
    codes = xp.arange(classes, dtype=y.dtype, device=device(y))
    for s in slices(P.shape[0], max(1, _TENSOR_BLOCK // (members * classes))):
        part, soft, hard = P[s], xp.astype(q[s], P.dtype, copy=False), y[s]
        places = xp.clip(hard, 0, classes - 1)[:, None, None]
        places = xp.broadcast_to(places, (part.shape[0], members, 1))
        sums = (
            # A code that is no class is counted as none, and refused by whoever counts.
            xp.sum(xp.astype(hard[:, None] == codes, P.dtype), axis=0),
            xp.sum(soft, axis=0),
            xp.sum(xp.take_along_axis(part, places, axis=2), axis=(0, 2)),
            _cdist(part),
            -xp.sum(xp.log(part + EPSILON) * soft[:, None, :], axis=0),
        )
        total = [a + double(b) for a, b in zip(total, sums, strict=True)]
    return total


def fused_sums(P: Array, q: Array, y: Array) -> Array | None:
    """All sums in one vector, as Triton's kernels write it; None where they do not work."""
    kernels = _triton_kernels(P, q)
    return None if kernels is None else kernels.triton_sums(P, q, y)


def _triton_kernels(P: Array, q: Array) -> Any:
    """The module of kernels that work on these tensors; None where there is none."""
    if not P.is_cuda or P.requires_grad or q.requires_grad:
        return None
    try:
        from edokit.objective import _triton
    except ImportError:
        return None
    return _triton if _triton.usable(P) else None


def _cdist(P: Array) -> Array:
    """[K, K] summed L1 distances between members, without keeping differences in memory."""
    import torch

    items, members, classes = P.shape
    scale = 1.0
    if classes == 2 and not P.requires_grad:
        # Rows sum to one: ‖p − p'‖₁ = 2·|p_1 − p'_1|.
        P, scale = P[:, :, 1:], 2.0
    whole = items - items % _TENSOR_ROW
    total = torch.zeros((members, members), dtype=torch.float64, device=P.device)
    for part, row in ((P[:whole], _TENSOR_ROW), (P[whole:], items - whole)):
        if len(part):
            rows = part.reshape(-1, row, members, part.shape[2]).transpose(1, 2)
            rows = rows.reshape(-1, members, row * part.shape[2]).contiguous()
            total = total + torch.cdist(rows, rows, p=1).sum(0, dtype=torch.float64)
    return scale * total
