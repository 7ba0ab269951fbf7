"""Pools of new predictions with the weights of a fitted ensemble."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edokit._types import Bools, Floats
from edokit.ensemble.fitted import Fitted
from edokit.objective.pools import average_groups, group_names, pool, sharpen


def pool_members(fitted: Fitted, P: Floats) -> tuple[Floats, Floats]:
    """Return the pool [N, C] of P [N, k, C], the members with weight, and their spread [N]."""
    weights = fitted.weights[fitted.weights > 0]
    rows = sharpen(_pool(fitted, fitted.scale.rows(P), weights), fitted.temperature)
    spread = spread_items(fitted.scale.coordinates(P), weights)
    return fitted.scale.from_rows(rows, P.shape[2]), spread


def pool_known(fitted: Fitted, P: Floats, is_known: Bools) -> tuple[Floats, Floats]:
    """Return the same, each row by the members that know its annotator (``is_known`` [N, k])."""
    pooled = np.empty((len(P), P.shape[2]))
    spread = np.empty(len(P))
    has_weight = fitted.weights > 0
    patterns, codes = np.unique(is_known, axis=0, return_inverse=True)
    for code, pattern in enumerate(patterns):
        rows = codes.ravel() == code
        selected = has_weight.copy()
        selected[has_weight] = pattern
        part = _select_members(fitted, selected)
        members = part.weights[has_weight] > 0
        pooled[rows], spread[rows] = pool_members(part, P[rows][:, members])
    return pooled, spread


def _select_members(fitted: Fitted, selected: Bools) -> Fitted:
    """Return the ensemble with these members [K] alone, or unchanged if they carry no weight."""
    weights = np.where(selected, fitted.weights, 0.0)
    total = weights.sum()
    if total == 0:
        return fitted
    return replace(fitted, weights=weights / total)


def _pool(fitted: Fitted, rows: Floats, weights: Floats) -> Floats:
    """Return the pool [n, C] of rows [n, k, C] with these weights [k]."""
    if fitted.groups is not None and fitted.pool == "log":
        # A log pool of groups is not a log pool of members: average each group first.
        groups = [fitted.groups[k] for k in np.flatnonzero(fitted.weights > 0)]
        rows = average_groups(rows, groups)
        names = group_names(groups)
        codes = [names.index(name) for name in groups]
        weights = np.asarray(np.bincount(codes, weights), dtype=np.float64)
    return np.asarray(pool(rows, weights, fitted.pool))


def spread_items(P: Floats, weights: Floats) -> Floats:
    """Return Σ_k v_k ‖p_k − φ‖₁ of each item [N], φ the linear pool of P [N, K, C]."""
    centre = np.einsum("nkc,k->nc", P, weights)
    spread = np.zeros(len(P))
    for k, weight in enumerate(weights):
        spread += weight * np.abs(P[:, k] - centre).sum(axis=1)
    return spread
