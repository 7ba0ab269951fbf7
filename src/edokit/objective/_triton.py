"""The sums behind ``Summaries`` on a GPU: Triton kernels, two or three launches and one copy.

float32 inside a program, float64 over programs; no atomics, so the same tensors give the same sums.
Lanes keep their sums in registers: time goes into the arithmetic of K (K − 1) / 2 differences for
every number of P, hardly into the memory.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language import constexpr

from edokit.objective.pools import EPSILON, slices

# All pairs of so many members fit into the registers of a lane.
_FEW_MEMBERS = 12
_TILE = 10
# Numbers of P at a time, of many members and two classes: half of them are copied.
_BLOCK = 2**30
_EPSILON = constexpr(EPSILON)
_LANES, _WARP = constexpr(128), constexpr(32)
_WARPS = constexpr(4)
# Positions of a member that lie together in the copy of class 1.
_RUN = constexpr(256)
# Pairs of tiles in a program.
_SLOTS = constexpr(4)
# Partial sums that a program adds at a time.
_PARTIAL = constexpr(2048)
# Items whose sums over classes are looked at, so many members at a time.
_FIRST, _SOME = constexpr(64), constexpr(16)


@triton.jit
def _log(x):
    """ln x of a positive, normal number, within a unit in the last place; others give nonsense."""
    bits = x.to(tl.int32, bitcast=True)
    e = (bits - 0x3F2AAAAB) & -0x800000
    f = (bits - e).to(tl.float32, bitcast=True) - 1.0  # in [-1/3, 1/3]
    s = f * f
    r = tl.fma(s, -0.130310059, -0.121483512)
    t = tl.fma(s, 0.140869141, 0.139814854)
    r = tl.fma(r, s, -0.166846126)
    t = tl.fma(t, s, 0.200120345)
    r = tl.fma(r, s, -0.249996200)
    r = tl.fma(t, f, r)
    r = tl.fma(r, f, 0.333331972)
    r = tl.fma(r, f, -0.5)
    r = tl.fma(r, s, f)
    return tl.fma(e.to(tl.float32), 8.26295832e-08, r)  # 2^-23 ln 2


@triton.jit
def _read(P, at, inside, number: constexpr, step: constexpr, W: constexpr):
    """``number`` vectors of W numbers that lie ``step`` apart, as one tuple of tensors."""
    found = ()
    if W > 1:
        at = at[:, None] + tl.arange(0, W)[None, :]
        inside = inside[:, None]
    P += at
    for i in tl.static_range(number):
        x = tl.load(P + i * step, inside, 0.0)
        if W == 1:
            found = found + (x,)
        else:
            if W == 2:
                a, b = tl.split(x)
                found = found + (a, b)
            else:
                even, odd = tl.split(tl.reshape(x, (x.shape[0], 2, 2)))
                a, c = tl.split(even)
                b, d = tl.split(odd)
                found = found + (a, b, c, d)
    return found


@triton.jit
def _sum(x, warps: constexpr):
    """Of every warp: the sum of its lanes."""
    return tl.sum(tl.reshape(x, (warps, _WARP)), 1)


@triton.jit(do_not_specialize=["items", "steps"])
def _tiles(P, q, y, out, copy, items, steps, K: constexpr, C: constexpr, t: constexpr):
    """Everything of a tile of members: a lane holds a class of an item (both, of two), and all
    pairs of members. Class 1 of two is copied for ``_pairs``, members in rows,
    with zeros after the last item, up to a whole number of ``_LANES``."""
    W: constexpr = 2 if C == 2 else 1
    U: constexpr = 4 if C == 2 and t % 2 == 0 else W
    T: constexpr = (K + t - 1) // t
    G: constexpr = C // W
    per: constexpr = _LANES // G
    lane = tl.arange(0, _LANES)
    c = lane % G
    n = lane // G
    tile = tl.program_id(0) % T
    program = (tl.program_id(0) // T).to(tl.int64)
    first = program * (per * steps)
    member = tl.minimum(tile * t, K - t)
    P += first * (K * C) + member * C
    q += first * C
    y += first
    copy += (first // _RUN) * (_RUN * K) + member * _RUN
    within = (first % _RUN).to(tl.int32)
    runs = tl.minimum((items + _RUN - 1) // _RUN * _RUN - first, per * steps).to(tl.int32)
    left = tl.where(lane < per * G, tl.minimum(items - first, per * steps).to(tl.int32), 0)
    zero = tl.zeros((_LANES,), tl.float32)
    gaps = (zero,) * (t * (t - 1) // 2)
    losses = (zero,) * (t * W)
    hits = (zero,) * t
    soft = (zero,) * W
    counts = (zero,) * W
    worst = tl.zeros((_LANES,), tl.uint32)
    # The next items are on their way while these are worked on.
    p = _read(P, n * (K * C) + c, n < left, t * W // U, C * U // W, U)
    share = _read(q, n * C + c, n < left, 1, W, W)
    label = tl.load(y + n, n < left, -1)
    for _ in range(steps):
        now = n
        n += per
        next_p = _read(P, n * (K * C) + c, n < left, t * W // U, C * U // W, U)
        next_share = _read(q, n * C + c, n < left, 1, W, W)
        next_label = tl.load(y + n, n < left, -1)
        new_gaps = ()
        new_losses = ()
        new_hits = ()
        new_soft = ()
        new_counts = ()
        mine = ()
        for w in tl.static_range(W):
            mine = mine + ((label == c + w).to(tl.float32),)
            new_soft = new_soft + (soft[w] + share[w].to(tl.float32),)
            new_counts = new_counts + (counts[w] + mine[w],)
        for k in tl.static_range(t):
            for j in tl.static_range(k + 1, t):
                gap = tl.abs(p[k * W + W - 1] - p[j * W + W - 1])
                new_gaps = new_gaps + (gaps[len(new_gaps)] + gap,)
            hit = hits[k]
            for w in tl.static_range(W):
                x = p[k * W + w] + _EPSILON
                worst = tl.maximum(worst, x.to(tl.uint32, bitcast=True))
                new_losses = new_losses + (losses[k * W + w] - share[w].to(tl.float32) * _log(x),)
                hit = tl.fma(mine[w], p[k * W + w], hit)
            new_hits = new_hits + (hit,)
            if C == 2 and T > 1:
                at = (now + within) // _RUN * (_RUN * K) + (now + within) % _RUN
                tl.store(copy + at + k * _RUN, p[k * W + 1], now < runs)
        gaps = new_gaps
        losses = new_losses
        hits = new_hits
        soft = new_soft
        counts = new_counts
        p = next_p
        share = next_share
        label = next_label
    # A probability that is negative, no number or so large that sums overflow makes log losses NaN.
    wrong = tl.where(worst < 0x70000000, 0.0, float("nan"))
    width: constexpr = (t * (t + 1) // 2) * _WARPS + (2 + t) * W * (_WARPS if G == 1 else _LANES)
    out += (program * T + tile) * width
    warp = tl.arange(0, _WARPS)
    for i in tl.static_range(len(gaps)):
        tl.store(out + i * _WARPS + warp, _sum(gaps[i], _WARPS))
    out += (t * (t - 1) // 2) * _WARPS
    for k in tl.static_range(t):
        tl.store(out + k * _WARPS + warp, _sum(hits[k], _WARPS))
    out += t * _WARPS
    rest = counts + soft
    for i in tl.static_range(t * W):
        rest = rest + (losses[i] + wrong,)
    for i in tl.static_range(len(rest)):
        if G == 1:
            tl.store(out + i * _WARPS + warp, _sum(rest[i], _WARPS))
        else:
            tl.store(out + i * _LANES + lane, rest[i])


@triton.jit
def _step(a, b, gaps, t: constexpr, W: constexpr):
    """Sums of |a − b| of every member of a with every one of b, W positions each."""
    new = ()
    for k in tl.static_range(t):
        for j in tl.static_range(t):
            gap = tl.abs(a[k * W] - b[j * W])
            for w in tl.static_range(1, W):
                gap += tl.abs(a[k * W + w] - b[j * W + w])
            new = new + (gaps[len(new)] + gap,)
    return new


@triton.jit(do_not_specialize=["total", "chunk"])
def _pairs(V, out, total, chunk, K: constexpr, columns: constexpr, t: constexpr, parts: constexpr):
    """Σ |V[x, k] − V[x, j]| over positions x of members k, j in two tiles. A warp has a pair of
    tiles, and vectors of W positions at a time; a chunk of rows of V is shared by so many
    programs that every warp has work."""
    T: constexpr = (K + t - 1) // t
    units: constexpr = T * (T - 1) // 2
    row: constexpr = K * columns
    lane = tl.arange(0, _SLOTS * _WARP)
    programs: constexpr = units * parts // _SLOTS  # of a chunk
    W: constexpr = 4 if columns % 4 == 0 else 1
    slot = tl.program_id(0) % programs * _SLOTS + lane // _WARP
    unit = slot % units
    one = unit % T
    two = (one + 1 + unit // T) % T
    start = (tl.program_id(0) // programs).to(tl.int64) * chunk
    V += start * row
    ours = tl.minimum(one * t, K - t) * columns
    theirs = tl.minimum(two * t, K - t) * columns
    left = tl.minimum(total - start * columns, chunk * columns).to(tl.int32)
    x = slot // units * _WARP + lane % _WARP
    gaps = (tl.zeros((_SLOTS * _WARP,), tl.float32),) * (t * t)
    whole = left // (parts * _WARP * W)
    for _ in range(whole):
        at = (x // (columns // W)) * row + x % (columns // W) * W
        a = _read(V, at + ours, x >= 0, t, columns, W)
        b = _read(V, at + theirs, x >= 0, t, columns, W)
        gaps = _step(a, b, gaps, t, W)
        x += parts * _WARP
    for _ in range(whole * (parts * _WARP * W), left, parts * _WARP * W):
        at = (x // (columns // W)) * row + x % (columns // W) * W
        for w in range(W):
            a = _read(V, at + ours + w, x * W + w < left, t, columns, 1)
            b = _read(V, at + theirs + w, x * W + w < left, t, columns, 1)
            gaps = _step(a, b, gaps, t, 1)
    out += tl.program_id(0).to(tl.int64) * (t * t * _SLOTS) + tl.arange(0, _SLOTS)
    for i in tl.static_range(t * t):
        tl.store(out + i * _SLOTS, _sum(gaps[i], _SLOTS))


@triton.jit(do_not_specialize=["items", "programs", "chunks"])
def _finish(
    P,
    tiles,
    pairs,
    out,
    items,
    programs,
    chunks,
    K: constexpr,
    C: constexpr,
    t: constexpr,
    parts: constexpr,
    outs: constexpr,
):
    """Some numbers: distances [K, K], class counts [C], soft counts [C], hits [K], log losses
    [K, C]. Then the lowest and the highest sum over classes in the first items."""
    W: constexpr = 2 if C == 2 else 1
    T: constexpr = (K + t - 1) // t
    G: constexpr = C // W
    units: constexpr = T * (T - 1) // 2
    lanes: constexpr = _WARPS if G == 1 else _LANES
    many: constexpr = _WARPS if G == 1 else _LANES // G
    width: constexpr = (t * (t + 1) // 2) * _WARPS + (2 + t) * W * lanes
    size: constexpr = 2 * C + K + K * K + K * C
    if tl.program_id(0) == 0:
        n = tl.arange(0, _FIRST)[:, None]
        lowest = tl.full((_FIRST, _SOME), float("inf"), tl.float64)
        highest = -lowest
        for first in range(0, K, _SOME):
            k = first + tl.arange(0, _SOME)[None, :]
            there = (n < items) & (k < K)
            mass = tl.zeros((_FIRST, _SOME), tl.float64)
            for column in range(C):
                mass += tl.load(P + (n * K + k) * C + column, there, 0.0)
            lowest = tl.where(there & (mass < lowest), mass, lowest)
            highest = tl.where(there & (mass > highest), mass, highest)
        tl.store(out + size, tl.min(lowest))
        tl.store(out + size + 1, tl.max(highest))
    else:
        o = (tl.program_id(0) - 1) * outs + tl.arange(0, outs)
        label = o - K * K
        hit = label - 2 * C
        loss = hit - K
        of_gap = label < 0
        of_label = (label >= 0) & (hit < 0)
        of_hit = (hit >= 0) & (loss < 0)
        # Members, their tiles, and their places in them.
        k = tl.where(of_label, 0, tl.where(of_hit, hit, tl.where(of_gap, o // K, loss // C)))
        j = tl.where(of_gap, o % K, k)
        one = tl.minimum(k // t, T - 1)
        two = tl.minimum(j // t, T - 1)
        a = k - tl.minimum(one * t, K - t)
        b = j - tl.minimum(two * t, K - t)
        # Where the sums of a program are: so many, so far apart.
        c = tl.where(of_label, label, loss) % C
        entry = tl.where(of_label, label // C, 2 + a) * W + c % W
        low = tl.minimum(a, b)
        pair = low * (2 * t - low - 1) // 2 + tl.maximum(a, b) - low - 1
        few = of_hit | of_gap
        at = tl.where(of_gap, pair, t * (t - 1) // 2 + a) * _WARPS
        at = tl.where(few, at, (t * (t + 1) // 2) * _WARPS + entry * lanes + c // W) + one * width
        number = tl.where(few, _WARPS, many)
        number = tl.where((o < size) & (one == two) & ((k != j) | ~of_gap), number, 0)
        rows: constexpr = _PARTIAL // outs
        i = tl.arange(0, rows)[:, None]
        total = tl.zeros((rows, outs), tl.float64)
        for start in range(0, programs * tl.max(number), rows):
            r = start + i
            to_few = (r // _WARPS).to(tl.int64) * (T * width) + r % _WARPS
            to = (r // many).to(tl.int64) * (T * width) + r % many * G
            total += tl.load(tiles + tl.where(few, to_few, to) + at, r < programs * number, 0.0)
        if T > 1:
            # Pairs of tiles: from each to the next, to the one after the next, and so on round.
            far = (two - one + T) % T
            turned = (2 * far > T) | ((2 * far == T) & (one > two))
            unit = tl.where(turned, (T - far - 1) * T + two, (far - 1) * T + one)
            at = tl.where(turned, b * t + a, a * t + b) * _SLOTS
            number = tl.where((o < size) & (one != two), chunks * parts, 0)
            for start in range(0, tl.max(number), rows):
                r = start + i
                slot = r % parts * units + unit
                to = (r // parts).to(tl.int64) * (units * parts // _SLOTS) + slot // _SLOTS
                to = to * (t * t * _SLOTS) + at + slot % _SLOTS
                total += tl.load(pairs + to, r < number, 0.0)
        found = tl.sum(total, 0)
        if C == 2:
            found = tl.where(of_gap, 2 * found, found)
        tl.store(out + o, found, o < size)


def usable(P: Any) -> bool:
    """Whether the kernels take this P [N, K, C]; older Tritons know no tuples of tensors."""
    recent = _version() >= (3, 6)
    return recent and P.dtype is torch.float32 and len(P) > 0 and 0 < P.shape[2] <= _LANES.value


def triton_sums(P: Any, q: Any, y: Any) -> Any:
    """One vector: distances [K, K], class counts [C], soft counts [C], hits [K], log losses [K, C];
    then the lowest and the highest sum of an item's probabilities, in the first items."""
    P, q, y = P.contiguous(), q.contiguous(), y.contiguous()
    if P.is_cuda and P.device.index != torch.cuda.current_device():
        with torch.cuda.device(P.device):
            return _sums(P, q, y)
    return _sums(P, q, y)


def _sums(P: Any, q: Any, y: Any) -> Any:
    N, K, C = P.shape
    most = max(1, _BLOCK // (K * C))
    if most >= N or C != 2 or K <= _FEW_MEMBERS:
        return _block(P, q, y)
    found, *others = [_block(P[s], q[s], y[s]) for s in slices(N, most)]
    for other in others:
        found[:-2] += other[:-2]
    return found


@lru_cache(1024)
def _plan(N: int, K: int, C: int, device: Any) -> tuple[Any, ...]:
    """Of every launch: programs, what it is given besides tensors; sizes of what they write."""
    lanes, run, slots, warps = _LANES.value, _RUN.value, _SLOTS.value, _WARPS.value
    processors = _processors(device)
    tiles = 1 if K <= _FEW_MEMBERS else -(-K // _TILE)
    t = -(-K // tiles)
    units = tiles * (tiles - 1) // 2
    parts = slots // gcd(units, slots) if units else 1
    # Of two classes, a lane has both; ‖p − p'‖₁ = 2·|p_1 − p'_1|: one of them is enough.
    two = C == 2
    # Registers limit how many programs a multiprocessor runs at a time.
    per, at_a_time = (lanes, 3) if two else (lanes // C, 4)
    registers = None if two or t > _TILE else 128
    steps = _share(-(-N // per) * tiles, at_a_time * processors, 256)
    programs = -(-N // (per * steps))
    entries = (2 + t) * (2 * warps if two else lanes)
    partial = programs * tiles * (t * (t + 1) // 2 * warps + entries)
    columns, total = (run, -(-N // lanes) * lanes) if two else (C, N * C)
    rows = max(1, run // columns)
    wanted = -(-total // (rows * columns)) * (units * parts // slots)
    chunk = rows * _share(max(1, wanted), 3 * processors, 64 * parts)
    chunks = -(-total // (chunk * columns)) if units else 0
    size = 2 * C + K + K * K + K * C
    outs = 2 if size < 512 else 8
    return (
        (programs * tiles, (N, steps), (K, C, t), warps, registers),
        (chunks * (units * parts // slots), (total, chunk), (K, columns, t, parts), slots, 168),
        (-(-size // outs) + 1, (N, programs, chunks), (K, C, t, parts, outs), 8, None),
        (partial, -(-N // run) * K * run if two and units else 0, chunks * units * parts * t * t),
        size + 2,
    )


def _block(P: Any, q: Any, y: Any) -> Any:
    tiles, pairs, finish, (partial, copy, apart), size = _plan(*P.shape, P.device)
    found = P.new_empty(partial)
    V = P.new_empty(copy) if copy else P
    _launch(_tiles, (P, q, y, found, V), *tiles)
    others = P.new_empty(apart) if apart else found
    if apart:
        _launch(_pairs, (V, others), *pairs)
    out = torch.empty(size, dtype=torch.float64, device=P.device)
    _launch(_finish, (P, found, others, out), *finish)
    return out


# What Triton compiled, by what it depends on: its own search takes as long as some kernels.
_compiled: dict[Any, Any] = {}


def _launch(
    kernel: Any,
    tensors: tuple[Any, ...],
    programs: int,
    numbers: tuple[int, ...],
    constants: tuple[int, ...],
    warps: int,
    registers: int | None,
) -> None:
    # It knows numbers of 32 bits, and vectors in memory that is aligned, from others.
    key: Any = kernel, constants, tensors[0].device, *[x.dtype for x in tensors]
    plain = numbers[0] < 2**31 and not any(x.data_ptr() % 16 for x in tensors)
    if plain and (found := _compiled.get(key)) is not None:
        found[programs, 1, 1](*tensors, *numbers, *constants)
        return
    options = {} if registers is None else {"maxnreg": registers}
    found = kernel[(programs,)](*tensors, *numbers, *constants, num_warps=warps, **options)
    if plain and found is not None:
        _compiled[key] = found


def _share(steps: int, programs: int, most: int) -> int:
    """Steps of a program: at most so many, and as many for all that run at a time."""
    return -(-steps // (programs * -(-steps // (programs * most))))


@lru_cache
def _processors(device: Any) -> int:
    return (
        torch.cuda.get_device_properties(device).multi_processor_count
        if device.type == "cuda"
        else 1
    )


@lru_cache
def _version() -> tuple[int, ...]:
    return tuple(map(int, triton.__version__.split(".")[:2]))
