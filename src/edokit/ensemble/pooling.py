"""Pooling of new predictions with the weights of a fitted ensemble."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edokit._types import Bools, Floats
from edokit.ensemble.fitted import Fitted
from edokit.objective.pools import average_groups, group_names, pool, sharpen


def pool_members(fitted: Fitted, P: Floats) -> tuple[Floats, Floats]:
    """Return the pool [N, C] of P [N, k, C] and the spread of its members [N].

    The k members of P are those that have weight, in the ensemble's order.
    """
    weights = fitted.weights[fitted.weights > 0]
    rows = sharpen(_pool(fitted, fitted.scale.rows(P), weights), fitted.temperature)
    spread = spread_items(fitted.scale.coordinates(P), weights)
    return fitted.scale.from_rows(rows, P.shape[2]), spread


def pool_knowing_members(fitted: Fitted, P: Floats, is_known: Bools) -> tuple[Floats, Floats]:
    """Return pool and spread as `pool_members`, for each row from the members that know its person.

    ``is_known`` [N, k] says whether a member knows the annotator of a row. Rows whose annotator no
    member knows are pooled from all members.
    """
    pooled = np.empty((len(P), P.shape[2]))
    spread = np.empty(len(P))
    has_weight = fitted.weights > 0
    # Rows that are known by the same members are pooled together.
    patterns, codes = np.unique(is_known, axis=0, return_inverse=True)
    for code, pattern in enumerate(patterns):
        rows = codes.ravel() == code
        is_selected = has_weight.copy()
        is_selected[has_weight] = pattern
        part = _with_members(fitted, is_selected)
        members = part.weights[has_weight] > 0
        pooled[rows], spread[rows] = pool_members(part, P[rows][:, members])
    return pooled, spread


def _with_members(fitted: Fitted, is_selected: Bools) -> Fitted:
    """Return the ensemble with only these members [K], or unchanged if these have no weight."""
    weights = np.where(is_selected, fitted.weights, 0.0)
    total = weights.sum()
    if total == 0:
        return fitted
    return replace(fitted, weights=weights / total)


def _pool(fitted: Fitted, rows: Floats, weights: Floats) -> Floats:
    """Return the pool [n, C] of rows [n, k, C] with these weights [k], before any temperature."""
    if fitted.groups is not None and fitted.pool == "log":
        # A log pool of groups is not a log pool of members: average each group first.
        groups = [fitted.groups[k] for k in np.flatnonzero(fitted.weights > 0)]
        rows = average_groups(rows, groups)
        names = group_names(groups)
        codes = [names.index(name) for name in groups]
        weights = np.asarray(np.bincount(codes, weights), dtype=np.float64)
    return np.asarray(pool(rows, weights, fitted.pool))


def spread_items(P: Floats, weights: Floats) -> Floats:
    """Return the spread of each item [N]: Σ_k v_k ‖p_k − φ‖₁ with the linear pool φ of P."""
    centre = np.einsum("nkc,k->nc", P, weights)
    spread = np.zeros(len(P))
    for k, weight in enumerate(weights):
        spread += weight * np.abs(P[:, k] - centre).sum(axis=1)
    return spread
