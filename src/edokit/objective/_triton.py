"""The sums behind ``Summaries`` on a GPU: Triton kernels that read P once, or twice.

float32 inside a program, float64 over programs; no atomics, so the same tensors give the same sums.
Lanes keep their sums in registers: time goes into the arithmetic of K (K − 1) / 2 differences for
every number of P, hardly into the memory.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language import constexpr

from edokit.objective.pools import EPSILON, slices

# Above so many members, the pairs of one item no longer fit into the registers of a lane.
_FEW_MEMBERS = 12
# Numbers of P at a time, of more members: half of them are copied.
_BLOCK = 2**28
_EPSILON = constexpr(EPSILON)
_LANES = constexpr(128)
# Items at a time, and how often, where all columns of P are read.
_ROWS, _STEPS = constexpr(16), constexpr(32)
# Pairs of tiles in a program, members of a tile, positions at a time.
_PAIRS, _TILE, _WARP = constexpr(16), constexpr(10), constexpr(32)
# Positions of a member that lie together in the copy of class 1.
_RUN = constexpr(256)


@triton.jit(do_not_specialize=["items", "steps"])
def _few(P, q, y, out, items, steps, K: constexpr, C: constexpr):
    """Everything at once: a lane holds class c of an item, and all pairs of members."""
    lane = tl.arange(0, _LANES)
    per: constexpr = _LANES // C
    c = lane % C
    n = lane // C
    first = tl.program_id(0).to(tl.int64) * (per * steps)
    P += first * (K * C)
    q += first * C
    y += first
    left = tl.where(lane < per * C, tl.minimum(items - first, per * steps).to(tl.int32), 0)
    zero = tl.zeros((_LANES,), tl.float32)
    gaps = (zero,) * (K * (K - 1) // 2)
    losses = (zero,) * K
    hits = (zero,) * K
    soft = zero
    counts = zero
    # The next items are on their way while these are worked on.
    p = ()
    for k in tl.static_range(K):
        p = p + (tl.load(P + (n * (K * C) + c) + k * C, n < left, 0.0),)
    share = tl.load(q + n * C + c, n < left, 0.0).to(tl.float32)
    label = tl.load(y + n, n < left, -1)
    for _ in range(steps):
        n += per
        next_p = ()
        for k in tl.static_range(K):
            next_p = next_p + (tl.load(P + (n * (K * C) + c) + k * C, n < left, 0.0),)
        next_share = tl.load(q + n * C + c, n < left, 0.0).to(tl.float32)
        next_label = tl.load(y + n, n < left, -1)
        mine = label == c
        soft += share
        counts += mine.to(tl.float32)
        new_gaps = ()
        new_losses = ()
        new_hits = ()
        for k in tl.static_range(K):
            for j in tl.static_range(k + 1, K):
                new_gaps = new_gaps + (gaps[len(new_gaps)] + tl.abs(p[k] - p[j]),)
            new_losses = new_losses + (losses[k] - share * tl.log(p[k] + _EPSILON),)
            new_hits = new_hits + (hits[k] + tl.where(mine, p[k], 0.0),)
        gaps = new_gaps
        losses = new_losses
        hits = new_hits
        p = next_p
        share = next_share
        label = next_label
    # distances [K, K], then counts, soft, hits [K] and losses [K] of every lane
    out += tl.program_id(0).to(tl.int64) * (K * K + (2 * K + 2) * _LANES)
    for k in tl.static_range(K):
        tl.store(out + k * (K + 1), 0.0)
        for j in tl.static_range(k + 1, K):
            gap = tl.sum(gaps[k * (2 * K - k - 1) // 2 + j - k - 1])
            tl.store(out + k * K + j, gap)
            tl.store(out + j * K + k, gap)
    out += K * K + lane
    tl.store(out, counts)
    tl.store(out + _LANES, soft)
    for k in tl.static_range(K):
        tl.store(out + (2 + k) * _LANES, hits[k])
        tl.store(out + (2 + K + k) * _LANES, losses[k])


@triton.jit(do_not_specialize=["items"])
def _columns(P, q, y, rest, labels, copy, items, K: constexpr, C: constexpr, classes: constexpr):
    """Hits and log losses of some columns (k, c). Class 1 of two is copied, members in rows."""
    width: constexpr = K * C
    j = tl.program_id(1) * _LANES + tl.arange(0, _LANES)
    every = tl.arange(0, classes)
    first = tl.program_id(0).to(tl.int64) * (_ROWS * _STEPS)
    P += first * width
    q += first * C
    y += first
    left = tl.minimum(items - first, _ROWS * _STEPS).to(tl.int32)
    hits = tl.zeros((_ROWS, _LANES), tl.float32)
    losses = tl.zeros((_ROWS, _LANES), tl.float32)
    counts = tl.zeros((_ROWS, classes), tl.float32)
    soft = tl.zeros((_ROWS, classes), tl.float32)
    for start in range(0, _ROWS * _STEPS, _ROWS):
        n = start + tl.arange(0, _ROWS)
        inside = (n < left)[:, None]
        p = tl.load(P + n[:, None] * width + j[None, :], inside & (j < width)[None, :], 0.0)
        if C == 2:
            share = tl.load(q + n[:, None] * C + every[None, :], inside, 0.0).to(tl.float32)
            share = tl.reshape(
                tl.broadcast_to(share[:, None, :], (_ROWS, _LANES // 2, 2)), (_ROWS, _LANES)
            )
        else:
            share = tl.load(q + n[:, None] * C + (j % C)[None, :], inside, 0.0).to(tl.float32)
        label = tl.load(y + n, n < left, -1)[:, None]
        hits += tl.where(label == (j % C)[None, :], p, 0.0)
        losses -= share * tl.log(p + _EPSILON)
        if C == 2:
            _, one = tl.split(tl.reshape(p, (_ROWS, _LANES // 2, 2)))
            k = tl.program_id(1) * (_LANES // 2) + tl.arange(0, _LANES // 2)
            to = first * K + (n // _RUN) * (K * _RUN) + n % _RUN
            tl.store(copy + to[:, None] + (k * _RUN)[None, :], one, inside & (k < K)[None, :])
        if tl.program_id(1) == 0:
            counts += (label == every[None, :]).to(tl.float32)
            known = inside & (every < C)[None, :]
            soft += tl.load(q + n[:, None] * C + every[None, :], known, 0.0).to(tl.float32)
    program = tl.program_id(0).to(tl.int64)
    rest += (program * tl.num_programs(1) + tl.program_id(1)) * (2 * _LANES) + tl.arange(0, _LANES)
    tl.store(rest, tl.sum(hits, 0))
    tl.store(rest + _LANES, tl.sum(losses, 0))
    if tl.program_id(1) == 0:
        at = program * (2 * classes) + every
        tl.store(labels + at, tl.sum(counts, 0))
        tl.store(labels + at + classes, tl.sum(soft, 0))


@triton.jit(do_not_specialize=["total", "known", "chunk"])
def _pairs(V, apart, total, known, chunk, K: constexpr, columns: constexpr):
    """Σ |V[x, k] − V[x, j]| over positions x. A warp has a pair of tiles of members and some
    positions at a time; a program has pairs that share what is read, and chunk rows of V."""
    t: constexpr = _TILE
    T: constexpr = (K + t - 1) // t
    row: constexpr = K * columns
    lane = tl.arange(0, _PAIRS * _WARP)
    pair = tl.program_id(1) * _PAIRS + lane // _WARP
    one = pair % T
    two = (one + pair // T) % T
    start = tl.program_id(0).to(tl.int64) * chunk
    V += start * row
    ours = V + tl.minimum(one * t, K - t) * columns
    theirs = V + tl.minimum(two * t, K - t) * columns
    left = tl.minimum(total - start * columns, chunk * columns).to(tl.int32)
    left = tl.where(pair < T * (T + 1) // 2, left, 0)
    # A number of each sector that comes next, so that it is in the cache by then.
    end = tl.minimum(known - start * row, chunk * row).to(tl.int32)
    end = tl.where(lane * 8 < _WARP * K, end, 0)
    ahead = lane * 8 + _RUN * K
    x = lane % _WARP
    zero = tl.zeros((_PAIRS * _WARP,), tl.float32)
    gaps = (zero,) * (t * t)
    touched = zero
    for _ in range(0, chunk * columns, _WARP):
        at = (x // columns) * row + x % columns
        a = ()
        b = ()
        for k in tl.static_range(t):
            a = a + (tl.load(ours + at + k * columns, x < left, 0.0),)
        for k in tl.static_range(t):
            b = b + (tl.load(theirs + at + k * columns, x < left, 0.0),)
        next_touched = tl.load(V + ahead, ahead < end, 0.0)
        new = (gaps[0] + touched * 0.0 + tl.abs(a[0] - b[0]),)
        for k in tl.static_range(t):
            for j in tl.static_range(t):
                if k + j > 0:
                    new = new + (gaps[len(new)] + tl.abs(a[k] - b[j]),)
        gaps = new
        touched = next_touched
        ahead += _WARP * K
        x += _WARP
    program = tl.program_id(0).to(tl.int64) * tl.num_programs(1) + tl.program_id(1)
    apart += program * (t * t * _PAIRS) + tl.arange(0, _PAIRS)
    for i in tl.static_range(t * t):
        tl.store(apart + i * _PAIRS, tl.sum(tl.reshape(gaps[i], (_PAIRS, _WARP)), 1))


def usable(P: Any) -> bool:
    """Whether the kernels take this P [N, K, C]; older Tritons know no tuples of tensors."""
    recent = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 6)
    return recent and P.dtype is torch.float32 and len(P) > 0 and 0 < P.shape[2] <= _LANES.value


def triton_sums(P: Any, q: Any, y: Any) -> list[Any]:
    """Class counts [C], soft counts [C], hits [K], distances [K, K] and log losses [K, C]."""
    P, q, y = P.contiguous(), q.contiguous(), y.contiguous()
    with torch.cuda.device(P.device) if P.is_cuda else nullcontext():
        return _sums(P, q, y)


def _sums(P: Any, q: Any, y: Any) -> list[Any]:
    _, members, classes = P.shape
    if members <= _FEW_MEMBERS:
        return _sums_of_few(P, q, y)
    parts = [
        _sums_of_many(P[s], q[s], y[s])
        for s in slices(P.shape[0], max(1, _BLOCK // (members * classes)))
    ]
    return [torch.stack(part).sum(0) for part in zip(*parts, strict=True)]


def _sums_of_few(P: Any, q: Any, y: Any) -> list[Any]:
    (N, K, C), lanes = P.shape, _LANES.value
    per = lanes // C
    steps = _share(-(-N // per), 8 * _processors(P), 256)
    programs = -(-N // (per * steps))
    out = _empty(P, programs, K * K + (2 * K + 2) * lanes)
    _few[(programs,)](P, q, y, out, N, steps, K, C, num_warps=lanes // 32)
    out = out.sum(0)
    rest = out[K * K :].reshape(-1, lanes)[:, : per * C].reshape(-1, per, C).sum(1)
    return [rest[0], rest[1], rest[2 : 2 + K].sum(1), out[: K * K].reshape(K, K), rest[2 + K :]]


def _sums_of_many(P: Any, q: Any, y: Any) -> list[Any]:
    (N, K, C), lanes, run, t = P.shape, _LANES.value, _RUN.value, _TILE.value
    # Of two classes, ‖p − p'‖₁ = 2·|p_1 − p'_1|: one of them is enough.
    two, padded = C == 2, triton.next_power_of_2(C)
    V = P.new_empty((-(-N // run), K, run)) if two else P
    grid = -(-N // (_ROWS.value * _STEPS.value)), -(-K * C // lanes)
    rest, labels = _empty(P, *grid, 2, lanes), _empty(P, grid[0], 2, padded)
    _columns[grid](P, q, y, rest, labels, V, N, K, C, padded, num_warps=lanes // 32)
    rest = rest.sum(0).transpose(0, 1).reshape(2, -1)[:, : K * C].reshape(2, K, C)
    labels = labels.sum(0)[:, :C]

    tiles = -(-K // t)
    pairs, columns = tiles * (tiles + 1) // 2, run if two else C
    total, known = (N, N // run * run * K) if two else (N * C, N * C * K)
    rows = max(1, run // columns)
    chunk = rows * _share(-(-total // (rows * columns)), _processors(P), 32)
    grid = -(-total // (chunk * columns)), -(-pairs // _PAIRS.value)
    apart = _empty(P, *grid, t * t, _PAIRS.value)
    _pairs[grid](V, apart, total, known, chunk, K, columns, num_warps=_PAIRS.value)
    apart = apart.sum(0).transpose(1, 2).reshape(-1, t, t)[:pairs] * (2 if two else 1)
    pair, member = torch.arange(pairs, device=P.device), torch.arange(t, device=P.device)
    first = (pair % tiles * t).clamp(max=K - t)[:, None, None] + member[:, None]
    second = ((pair + pair // tiles) % tiles * t).clamp(max=K - t)[:, None, None] + member
    distances = torch.zeros((K, K), dtype=torch.float64, device=P.device)
    distances[first, second] = apart
    distances[second, first] = apart
    return [labels[0], labels[1], rest[0].sum(1), distances, rest[1]]


def _share(steps: int, programs: int, most: int) -> int:
    """Steps of a program: at most so many, and as many for all that run at a time."""
    return -(-steps // (programs * -(-steps // (programs * most))))


def _processors(P: Any) -> int:
    return torch.cuda.get_device_properties(P.device).multi_processor_count if P.is_cuda else 1


def _empty(P: Any, *shape: int) -> Any:
    return torch.empty(shape, dtype=torch.float64, device=P.device)
