"""Why a member has weight zero, or most of the weight, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from edokit._types import Floats
from edokit.objective import CE, Problem, Regularize, Settings, joint_loss
from edokit.solvers import Solution

TERMS = {
    "lambda_f1": "missed hard labels",
    "lambda_ce": "the cross-entropy",
    "lambda_div": "the disagreement between members",
    "lambda_reg": "the penalty on large weights",
}
ZERO = 1e-6
LARGE = 0.6


def explain(
    names: Sequence[str],
    solution: Solution,
    problem: Problem,
    own: Floats,
    settings: Settings,
    max_members: int,
) -> tuple[str, ...]:
    """One sentence per member, heaviest first; ``own`` [K] is each member's cross-entropy alone."""
    weights = solution.weights
    slopes = _slopes(problem, settings, weights)
    total = np.sum(list(slopes.values()), axis=0)
    level = float(total @ weights)
    reach = set(solution.order[:max_members].tolist())
    sentences = []
    for k in np.argsort(-weights, kind="stable"):
        start = f"{names[k]}: weight {weights[k]:.3f}"
        alone = f"own cross-entropy {own[k]:.4f}, rank {int((own < own[k]).sum()) + 1}"
        if weights[k] > ZERO:
            share = ""
            if weights[k] > LARGE and len(names) > 1:
                best = " as the best alone" if own[k] <= own.min() else ""
                share = f"most of the weight{best}; "
            sentences.append(f"{start} ({share}{alone})")
        elif k not in reach:
            sentences.append(f"{start} ({alone}, beyond max_members={max_members})")
        else:
            price = total[k] - level
            term = max(slopes, key=lambda name: slopes[name][k] - float(slopes[name] @ weights))
            part = slopes[term][k] - float(slopes[term] @ weights)
            sentences.append(
                f"{start} ({alone}): with weight the loss would grow by {price:.4f} per unit,"
                f" above all through {TERMS[term]} ({part:+.4f})"
                if price > 0
                else f"{start} ({alone}): the chosen size {solution.size} leaves it out"
            )
    return tuple(sentences)


def _slopes(problem: Problem, settings: Settings, weights: Floats) -> dict[str, Floats]:
    """What each term of the loss gains per unit of each member's weight [K]."""
    if settings.ce is CE.RANDOM:
        settings = replace(settings, ce=CE.ALL)
    settings = replace(settings, regularize=Regularize.EFFECTIVE)
    silent = dict.fromkeys(TERMS, 0.0)
    return {
        name: joint_loss(
            weights, problem, replace(settings, **{**silent, name: getattr(settings, name)})
        ).gradient
        for name in TERMS
    }
