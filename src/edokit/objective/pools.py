"""Pools of members' probabilities: weights, groups and temperatures, for numpy and torch alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import array_api_compat
import numpy as np
from array_api_compat import device, is_numpy_array
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from edokit._errors import InputError, one_of
from edokit._types import Floats, Ints

Array: TypeAlias = Any
"""A numpy array or a torch tensor; docstrings give the shape."""

_Sums = TypeVar("_Sums", bound="Additive")

EPSILON = 1e-12
"""ε: keeps a logarithm finite where a member gives a class probability 0."""
_BLOCK = 2**22
"""Most probabilities that a pool processes at a time; it keeps the memory beside P small."""
_LOWEST_LOGIT = {"float64": -600.0, "float32": -80.0}
"""Logits of weights are raised to this much below the highest one, where exp is still positive.

Otherwise all members of a small size could have weight 0 beside a later member, and no weights that
sum to one."""
LOWEST_TEMPERATURE = 0.05
"""The lowest temperature that is fitted."""
HIGHEST_TEMPERATURE = 20.0
"""The highest temperature that is fitted."""
_FRACTIONAL_STEP = 0.618
_NUMPY: ModuleType = (
    np if hasattr(np, "cumulative_sum") else import_module("array_api_compat.numpy")
)
"""The array API for numpy arrays: numpy itself since 2.1, else a namespace that imports slowly."""


# --- Arrays of numpy and torch --------------------------------------------------------------------


def namespace(*arrays: Array) -> ModuleType:
    """The functions (``xp.log``, ``xp.sum`` …) of the library that these arrays come from."""
    if all(type(values) is np.ndarray for values in arrays):
        return _NUMPY  # looking it up would take longer than many of the products
    return array_api_compat.array_namespace(*arrays)


def like(values: Array, model: Array) -> Array:
    """``values`` as float64 in the library, and on the device, of ``model``."""
    xp = namespace(model)
    return xp.asarray(values, dtype=xp.float64, device=array_api_compat.device(model))


def double(values: Array) -> Array:
    """``values`` in float64; gradients flow through."""
    xp = namespace(values)
    return xp.astype(values, xp.float64, copy=False)


def without_gradient(values: Array) -> Array:
    """``values`` as a constant for torch's autograd; numpy arrays are returned unchanged."""
    if hasattr(values, "detach"):
        return values.detach()
    return values


def take(values: Array | None, index: Array, *axes: int) -> Array | None:
    """``values`` at these positions along each of the axes; None stays None."""
    if values is None:
        return None
    xp = namespace(values)
    positions = xp.asarray(index, dtype=xp.int64, device=array_api_compat.device(values))
    for axis in axes:
        values = xp.take(values, positions, axis=axis)
    return values


# --- Weights, pools and temperatures --------------------------------------------------------------


def softmax(logits: Array) -> Array:
    """exp(logits), normalised over the last axis."""
    xp = namespace(logits)
    powers = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


def effective_weights(theta: Array, sizes: Array, min_members: int = 1) -> Array:
    """[..., K] effective weights v, on the simplex.

    ``theta`` [..., K] are the logits of the members' weights, in rank order. ``sizes`` [..., M] is
    a distribution over the sizes min_members, min_members + 1, …. A size j keeps the first j
    members and renormalises their weights; v is the mean over the sizes.
    """
    xp = namespace(theta, sizes)
    members = theta.shape[-1]
    count = sizes.shape[-1]
    after = members - (min_members - 1 + count)
    lowest = _LOWEST_LOGIT["float32" if theta.dtype == xp.float32 else "float64"]
    theta = theta - xp.max(theta, axis=-1, keepdims=True)
    w = softmax(xp.where(theta < lowest, xp.full_like(theta, lowest), theta))
    zeros = xp.zeros_like(theta)
    padded = xp.concat([zeros[..., : min_members - 1], sizes, zeros[..., :after]], axis=-1)
    shares = xp.flip(padded / xp.cumulative_sum(w, axis=-1), axis=-1)  # k̃_j / S_j
    return w * xp.flip(xp.cumulative_sum(shares, axis=-1), axis=-1)  # v_k = w_k Σ_{j ≥ k} k̃_j / S_j


def log_probabilities(P: Array) -> Array:
    """ln(P + ε), in the shape of P."""
    shifted = P + EPSILON
    # Allocating memory takes longer than logarithms. A tensor may be needed for its gradient.
    if type(P) is np.ndarray:
        return np.log(shifted, out=shifted)
    return namespace(P).log(shifted)


def pool(P: Array, v: Array, kind: str = "linear") -> Array:
    """[N, C] pooled probabilities φ of P [N, K, C] under weights v [K] on the simplex.

    ``"linear"``: Σ_k v_k p_k. ``"log"``: proportional to Π_k (p_k + ε)^v_k, so that a single
    zero does not veto a class.
    """
    one_of("pool", kind, ("linear", "log"))
    items, members, classes = P.shape
    if tuple(v.shape) != (members,):
        raise InputError(
            f"weights of shape {tuple(v.shape)} are not one for each of the {members} members",
            "give the weights in the order of the members",
            code="wrong-shape",
        )
    xp = namespace(P, v)
    v = xp.astype(v, P.dtype, copy=False)
    parts = []
    for s in slices(items, max(1, _BLOCK // (members * classes))):
        if kind == "log":
            parts.append(softmax(_linear(log_probabilities(P[s, ...]), v)))
        else:
            parts.append(_linear(P[s, ...], v))
    if not parts:  # no items
        return P[:, 0, :]
    return xp.concat(parts, axis=0)


def average_groups(P: Array, groups: Sequence[str]) -> Array:
    """[N, G, C] mean of the members of each group, groups in order of first appearance."""
    means = []
    for name in group_names(groups):
        members = [P[:, k, :] for k, group in enumerate(groups) if group == name]
        means.append(sum(members[1:], start=members[0]) / len(members))
    return namespace(P).stack(means, axis=1)


def group_names(groups: Sequence[str]) -> list[str]:
    """The distinct groups, in order of first appearance."""
    return list(dict.fromkeys(groups))


def spread_weights(weights: Array, groups: Sequence[str]) -> Array:
    """[K] weights of members from weights of groups [G]: members of a group have equal shares.

    The linear pool is then the same. A log pool of group means has no such member weights.
    """
    names = group_names(groups)
    shares = like([1.0 / groups.count(group) for group in groups], weights)
    return weights[..., [names.index(group) for group in groups]] * shares


def _linear(P: Array, v: Array) -> Array:
    """[N, C] weighted sums Σ_k v_k P[i, k, c] of P [N, K, C]."""
    xp = namespace(P)
    items, members, classes = P.shape
    if classes > 8:
        return xp.matmul(v[None, None, :], P)[:, 0, :]
    # With few classes, N tiny products are slow, and one long product with v ⊗ I is fast.
    blocks = v[:, None, None] * xp.eye(classes, dtype=P.dtype, device=device(P))
    return xp.matmul(
        xp.reshape(P, (items, members * classes)), xp.reshape(blocks, (members * classes, classes))
    )


def sharpen(probabilities: Floats, temperature: float) -> Floats:
    """Probabilities [N, C] to the power 1/temperature, normalised.

    A temperature below 1 makes them sharper.
    """
    if temperature == 1.0:
        return probabilities
    return np.asarray(softmax(log_probabilities(probabilities) / temperature))


def fit_temperature(probabilities: Floats, soft_labels: Floats) -> float:
    """The temperature between 1/20 and 20 with the lowest cross-entropy to the soft labels.

    The cross-entropy is convex in 1/temperature, so it has a single minimum.
    """
    from scipy.optimize import minimize_scalar

    logs = np.log(probabilities + EPSILON)

    def cross_entropy(power: float) -> float:
        scores = logs * power
        top = scores.max(axis=1, keepdims=True)
        norms = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
        return float(np.mean(norms - (soft_labels * scores).sum(axis=1)))

    optimum = minimize_scalar(
        cross_entropy,
        bounds=(1 / HIGHEST_TEMPERATURE, 1 / LOWEST_TEMPERATURE),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(1.0 / optimum.x)


# --- Sums over items, and rows --------------------------------------------------------------------


class Additive:
    """Base of dataclasses of sums over items: ``a + b`` has the sums over both shards.

    Both have the same fields that are None.
    """

    def __add__(self: _Sums, addend: _Sums) -> _Sums:
        if not isinstance(addend, type(self)):
            return NotImplemented
        totals: dict[str, Array] = {}
        for field in fields(self):  # type: ignore[arg-type]
            own_sum = getattr(self, field.name)
            added_sum = getattr(addend, field.name)
            if own_sum is None:
                totals[field.name] = None
            else:
                totals[field.name] = own_sum + added_sum
        return type(self)(**totals)

    def __radd__(self: _Sums, start: object) -> _Sums:
        # sum(shards) starts at 0.
        if isinstance(start, int) and start == 0:
            return self
        return NotImplemented


def cumulative(P: Array) -> Array:
    """[..., C − 1] cumulative probabilities of P [..., C] in float64, without the last one."""
    return namespace(P).cumulative_sum(double(P), axis=-1)[..., :-1]


def member_rows(P: Array, members: Sequence[int] | Ints | None = None) -> Array:
    """[K, N·C] P [N, K, C] by member in float64: the pools of all items are one matrix product.

    ``members`` [k] are positions of members; None: all of them.
    """
    if members is not None and is_numpy_array(P):
        items, _, classes = P.shape
        rows = np.empty((len(members), items, classes))
        for row, member in zip(rows, members, strict=True):
            row[:] = P[:, member]
        return rows.reshape(len(members), -1)
    xp = namespace(P)
    if members is not None:
        P = take(P, members, 1)
    return xp.reshape(double(xp.permute_dims(P, (1, 0, 2))), (P.shape[1], -1))


def slices(length: int, step: int) -> Iterator[slice]:
    """Consecutive slices of at most ``step`` positions that together cover ``range(length)``."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def spaced_positions(length: int, step: int) -> NDArray[np.intp]:
    """Positions below ``length``, about one in every ``step``.

    Adjacent rows may be the labels of one item. A whole step that has a divisor in common with
    their number would miss some labels in all items, so the step is not a whole number.
    """
    return np.arange(0, length, step + _FRACTIONAL_STEP).astype(np.intp)


def one_thread() -> AbstractContextManager[object]:
    """A context in which each matrix product runs on one thread.

    It is for many small products, whose threads would mostly wait for each other, and for code that
    runs in several threads already.
    """
    libraries = _libraries("scipy.linalg" in sys.modules)
    opened: AbstractContextManager[object] = libraries.limit(limits=1, user_api="blas")
    return opened


@lru_cache(maxsize=2)  # looking for the libraries takes longer than a fit
def _libraries(with_scipy: bool) -> ThreadpoolController:
    """The libraries for matrix products: numpy has one, and scipy another once it is imported."""
    return ThreadpoolController()
