"""How far to shrink the weights towards uniform ones: λ_Reg, chosen on the fit data.

Few items can't carry many weights. Held-out cross-entropy says how strong the penalty should be,
and says it with noise, so no single value is picked: every value counts by its likelihood, and the
penalty is their mean: a strong one where the items say little (``benchmarks/shrinkage.py``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from edokit.fitdata import FitData
from edokit.metrics import ce_items
from edokit.objective import Regularize, Settings, pool
from edokit.solvers.exact import solve_path

FOLDS = 5
ITEMS = 5000
"""The choice is made on so many items at most."""
GRID = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
"""Values of λ_Reg to compare; infinity is the uniform mean."""
UNIFORM = 30.0
"""What the uniform mean counts as: weights differ from uniform ones by little more than nothing."""


def choose_lambda_reg(
    data: FitData,
    settings: Settings,
    *,
    order: str = "ce",
    max_members: int | None = None,
    random_state: int = 0,
) -> tuple[float, dict[str, Any]]:
    """λ_Reg, and how it was chosen, ready for JSON; `describe_lambda_reg` puts it into words.

    The geometric mean of ``GRID``, each value weighted by exp(−n·ΔCE/2): n items, and ΔCE its
    held-out cross-entropy above the lowest. Rounded to three digits. With fewer than two items a
    fold, or class weights and a class of one item, all values count the same.
    """
    sampled = data.draw(ITEMS)
    items, counts = sampled.items, np.bincount(sampled.sample.y)
    comparable = items >= 2 * FOLDS and not (settings.class_weights and 1 in counts)
    # The paper's literal penalty has no exact solution, and the same effect.
    settings = replace(settings, regularize=Regularize.EFFECTIVE)
    folds = sampled.folds(FOLDS, random_state) if comparable else []

    def held_out(*lambdas: float) -> Any:
        """[L, n] cross-entropy of every item when its fold was held out, for each λ_Reg."""
        losses_by_fold = []
        for train, fold in folds:
            path = solve_path(train, settings, lambdas, order=order, max_members=max_members)
            P, q, _ = fold.sample
            rows = [ce_items(np.asarray(pool(P, v, settings.pool)), q) for v in path]
            losses_by_fold.append(
                [fold.scale.per_item(row_losses, fold.items) for row_losses in rows]
            )
        return np.concatenate(losses_by_fold, axis=1)

    shares = np.full(len(GRID), 1.0 / len(GRID))
    if comparable:
        losses = held_out(*GRID)
        means = losses.mean(axis=1)
        shares = np.exp(-items * (means - means.min()) / 2)
        shares /= shares.sum()
    logs = np.log([UNIFORM if math.isinf(value) else value for value in GRID])
    penalty = float(f"{np.exp(shares @ logs):.3g}")
    record: dict[str, Any] = {"items": items, "folds": FOLDS if comparable else None}
    if comparable:
        (penalty_losses,) = held_out(penalty)
        excess = losses[-1] - penalty_losses
        record |= {
            "ce": float(penalty_losses.mean()),
            "uniform_ce": float(means[-1]),
            "uniform_above": float(excess.mean()),
            "uniform_above_error": float(excess.std() / np.sqrt(items)),
            "compared": [
                {"lambda_reg": "uniform" if math.isinf(value) else value, "ce": ce, "share": share}
                for value, ce, share in zip(GRID, means.tolist(), shares.tolist(), strict=True)
            ],
        }
    return penalty, record
