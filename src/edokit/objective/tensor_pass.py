"""The sums behind ``Summaries`` for torch tensors, perhaps on a GPU: gradients flow into P."""

from __future__ import annotations

import numpy as np
from array_api_compat import is_torch_array

from edokit.objective.arrays import EPSILON, Array, device_of, double, like, namespace, slices

# Numbers of P that go through at a time.
_BLOCK = 2**26
# Items whose distances one call of cdist adds up: long rows keep a GPU busy, and float32 exact.
_ROW = 16384


def tensor_sums(P: Array, q: Array, y: Array) -> list[Array]:
    """Class counts [C], soft counts [C], hits [K], distances [K, K] and log losses [K, C]."""
    members, classes = P.shape[1], P.shape[2]
    zeros = [like(np.zeros(n), P) for n in ((classes,), (classes,), (members,))]
    total = [*zeros, like(np.zeros((members, members)), P), like(np.zeros((members, classes)), P)]
    for s in slices(P.shape[0], max(1, _BLOCK // (members * classes))):
        total = [a + double(b) for a, b in zip(total, tensor_block(P[s], q[s], y[s]), strict=True)]
    return total


def tensor_block(P: Array, q: Array, y: Array) -> tuple[Array, Array, Array, Array, Array]:
    """The same of one block of items."""
    xp = namespace(P)
    members, classes = P.shape[1], P.shape[2]
    codes = xp.arange(classes, dtype=y.dtype, device=device_of(y))
    q = xp.astype(q, P.dtype, copy=False)
    # A code that is no class is counted as none, and refused by whoever counts.
    counts = xp.sum(xp.astype(y[:, None] == codes, P.dtype), axis=0)
    places = xp.broadcast_to(xp.clip(y, 0, classes - 1)[:, None, None], (P.shape[0], members, 1))
    return (
        counts,
        xp.sum(q, axis=0),
        xp.sum(xp.take_along_axis(P, places, axis=2), axis=(0, 2)),
        _cdist(P) if is_torch_array(P) else _differences(P),
        -xp.sum(xp.log(P + EPSILON) * q[:, None, :], axis=0),
    )


def _differences(P: Array) -> Array:
    """[K, K] summed L1 distances between members, as they are defined."""
    xp = namespace(P)
    rows = xp.reshape(xp.permute_dims(P, (1, 2, 0)), (P.shape[1], -1))
    return xp.stack([xp.sum(xp.abs(rows - rows[k, :]), axis=1) for k in range(P.shape[1])])


def _cdist(P: Array) -> Array:
    """The same by torch's own kernel, which keeps no differences in memory."""
    import torch

    items, members, classes = P.shape
    scale = 1.0
    if classes == 2 and not P.requires_grad:
        # Rows sum to one: ‖p − p'‖₁ = 2·|p_1 − p'_1|.
        P, scale = P[:, :, 1:], 2.0
    whole = items - items % _ROW
    total = torch.zeros((members, members), dtype=torch.float64, device=P.device)
    for part, row in ((P[:whole], _ROW), (P[whole:], items - whole)):
        if len(part):
            rows = part.reshape(-1, row, members, part.shape[2]).transpose(1, 2)
            rows = rows.reshape(-1, members, row * part.shape[2]).contiguous()
            total = total + torch.cdist(rows, rows, p=1).sum(0, dtype=torch.float64)
    return scale * total
