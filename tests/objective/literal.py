"""The paper's formulas as plain loops over items, members and classes.

Weights may be complex, so that ``slope`` can differentiate by the complex step, which is almost
free of rounding errors.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable

import numpy as np

EPS = 1e-12


def pool(P, v):
    """φ_ic = Σ_k w_k ŷ_ic^(k)."""
    items, members, classes = P.shape
    rows = []
    for i in range(items):
        row = []
        for c in range(classes):
            row.append(sum(v[k] * P[i, k, c] for k in range(members)))
        rows.append(row)
    return rows


def log_pool(P, v):
    """φ_ic ∝ Π_k (ŷ_ic^(k) + ε)^w_k."""
    items, members, classes = P.shape
    rows = []
    for i in range(items):
        powers = []
        for c in range(classes):
            power = 1.0
            for k in range(members):
                power = power * cmath.exp(v[k] * np.log(P[i, k, c] + EPS))
            powers.append(power)
        rows.append([power / sum(powers) for power in powers])
    return rows


def alpha(y, classes):
    """α_c = N / (C · N_c); 0 for a class that no item has (it must not be needed)."""
    weights = []
    for c in range(classes):
        count = sum(label == c for label in y)
        if count == 0:
            weights.append(0.0)
        else:
            weights.append(len(y) / (classes * count))
    return weights


def f1_loss(P, y, v):
    """1 − 2TP / (2TP + FP + FN + ε) with soft counts over all classes."""
    phi = pool(P, v)
    tp = fp = fn = 0.0
    for i, label in enumerate(y):
        for c in range(P.shape[2]):
            if c == label:
                tp = tp + phi[i][c]
                fn = fn + 1.0 - phi[i][c]
            else:
                fp = fp + phi[i][c]
    return 1.0 - 2.0 * tp / (2.0 * tp + fp + fn + EPS)


def ce_mean(P, q, weights, v, kind="linear"):
    """−1/N Σ_ic α_c y_ic ln(φ_ic + ε); the log pool is positive by itself."""
    if kind == "linear":
        phi = pool(P, v)
        small = EPS
    else:
        phi = log_pool(P, v)
        small = 0.0
    total = 0.0
    for i in range(P.shape[0]):
        for c in range(P.shape[2]):
            if q[i, c] > 0:
                total = total - weights[c] * q[i, c] * cmath.log(phi[i][c] + small)
    return total / P.shape[0]


def ce_all(P, q, weights, v):
    """−1/N Σ_ic α_c y_ic Σ_k w_k ln(ŷ_ic^(k) + ε)."""
    total = 0.0
    for i in range(P.shape[0]):
        for c in range(P.shape[2]):
            for k in range(P.shape[1]):
                total = total - weights[c] * q[i, c] * v[k] * np.log(P[i, k, c] + EPS)
    return total / P.shape[0]


def ce_drawn(P, q, weights, drawn):
    """−1/N Σ_ic α_c y_ic ln(ŷ_ic^(k) + ε) with the member k drawn for item i."""
    total = 0.0
    for i, k in enumerate(drawn):
        for c in range(P.shape[2]):
            total = total - weights[c] * q[i, c] * np.log(P[i, k, c] + EPS)
    return total / P.shape[0]


def ce_relaxed(P, q, weights, v, noise, temperature):
    """The cross-entropy with the draw relaxed to a softmax at this temperature."""
    total = 0.0
    for i in range(P.shape[0]):
        powers = [
            cmath.exp((cmath.log(v[k] + EPS) + noise[i, k]) / temperature)
            for k in range(P.shape[1])
        ]
        for k in range(P.shape[1]):
            share = powers[k] / sum(powers)
            for c in range(P.shape[2]):
                total = total - share * weights[c] * q[i, c] * np.log(P[i, k, c] + EPS)
    return total / P.shape[0]


def diversity(P, v):
    """1/N Σ_i Σ_kl w_k w_l ‖ŷ_i^(k) − ŷ_i^(l)‖₁."""
    total = 0.0
    for i in range(P.shape[0]):
        for k in range(P.shape[1]):
            for m in range(P.shape[1]):
                distance = sum(abs(P[i, k, c] - P[i, m, c]) for c in range(P.shape[2]))
                total = total + v[k] * v[m] * distance
    return total / P.shape[0]


def norm(w):
    """‖w‖₂²."""
    return sum(x * x for x in w)


def effective_weights(theta, sizes, min_members):
    """v_k = Σ_j k̃_j w_k 1[k ≤ j] / Σ_{l ≤ j} w_l."""
    members = len(theta)
    top = max(complex(x).real for x in theta)
    w = [cmath.exp(x - top) for x in theta]
    v = [0.0] * members
    for step, share in enumerate(sizes):
        size = min_members + step
        for k in range(size):
            v[k] = v[k] + share * w[k] / sum(w[:size])
    return v


def slope(function: Callable, point) -> np.ndarray:
    """The gradient of a real function, by the complex step."""
    gradient = []
    for k in range(len(point)):
        moved = [complex(x) for x in point]
        moved[k] += 1e-30j
        gradient.append(complex(function(moved)).imag / 1e-30)
    return np.asarray(gradient)


def value(number) -> float:
    """The real number behind a result of the loops."""
    return float(complex(number).real)


def scale_diversity(P, steps, v):
    """1/N Σ_i Σ_kl w_k w_l Σ_c s_c |F_ic^(k) − F_ic^(l)|, F the cumulative shares."""
    total = 0.0
    for i in range(P.shape[0]):
        for k in range(P.shape[1]):
            for m in range(P.shape[1]):
                distance = sum(
                    step * abs(sum(P[i, k, : c + 1]) - sum(P[i, m, : c + 1]))
                    for c, step in enumerate(steps)
                )
                total = total + v[k] * v[m] * distance
    return total / P.shape[0]


def rps(P, q, steps, v):
    """1/N Σ_i Σ_c s_c (F_ic − G_ic)², F and G the cumulative shares of pool and annotators."""
    phi = pool(P, v)
    total = 0.0
    for i in range(P.shape[0]):
        for c, step in enumerate(steps):
            total = total + step * (sum(phi[i][: c + 1]) - sum(q[i, : c + 1])) ** 2
    return total / P.shape[0]


def w1(P, q, steps, v, smoothing):
    """1/N Σ_i Σ_c s_c (√((F_ic − G_ic)² + δ²) − δ)."""
    phi = pool(P, v)
    total = 0.0
    for i in range(P.shape[0]):
        for c, step in enumerate(steps):
            gap = sum(phi[i][: c + 1]) - sum(q[i, : c + 1])
            total = total + step * (cmath.sqrt(gap * gap + smoothing**2) - smoothing)
    return total / P.shape[0]
