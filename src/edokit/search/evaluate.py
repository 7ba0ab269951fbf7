"""From configurations to estimates: one batched fit on all data, and one per fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edokit._errors import InputError
from edokit._types import Floats
from edokit.search.data import FitData
from edokit.search.plan import Plan
from edokit.search.space import Configuration
from edokit.solvers import Solution

# The last digits of a fit depend on how many configurations it is batched with; without them, a
# search that was interrupted within a generation goes on as if it had not been.
_DIGITS = 12

Result = dict[str, Any]
"""``optimistic`` and ``cross-fitted`` estimates (None without folds), ``size``, ``weights``."""


class Evaluator:
    """Judges configurations on the fit data."""

    def __init__(self, data: FitData, plan: Plan) -> None:
        self.data, self.plan = data, plan
        self._folds = data.folds(plan.folds, plan.seed) if plan.folds else []

    def __call__(self, chosen: Sequence[Configuration]) -> list[Result | str]:
        """A result per configuration, or in words why there is none."""
        whole = self._solve(self.data, chosen)
        weights = _weights(whole, len(self.data.members))
        pools = [one.settings.pool for one in chosen]
        optimistic = self.data.scores(weights, pools).estimates()
        parts = [self._without_a_fold(learn, chosen) for learn, _ in self._folds]
        held_out: Sequence[dict[str, float] | None] = [None] * len(chosen)
        if parts:
            scores = [
                judge.scores(_weights(part, len(self.data.members)), pools)
                for part, (_, judge) in zip(parts, self._folds, strict=True)
            ]
            held_out = sum(scores[1:], scores[0]).estimates()
        return [
            _failure(t, whole, parts)
            or {
                "optimistic": _rounded(optimistic[t]),
                "cross-fitted": _rounded(held_out[t]),
                "size": _size(whole[t]),
                "weights": weights[t].round(_DIGITS).tolist(),
            }
            for t in range(len(chosen))
        ]

    def _solve(self, data: FitData, chosen: Sequence[Configuration]) -> list[Solution | str]:
        plan = self.plan
        return data.solve(chosen, solver=plan.solver, seed=plan.seed, order=plan.order)

    def _without_a_fold(
        self, learn: FitData, chosen: Sequence[Configuration]
    ) -> list[Solution | str]:
        try:
            return self._solve(learn, chosen)
        except InputError as error:
            raise InputError(
                f"without one of the {self.plan.folds} folds, {error.message}",
                "judge without folds (--folds 0), or turn class weights off"
                " (--space class_weights=false)",
            ) from error


def _weights(fitted: Sequence[Solution | str], members: int) -> Floats:
    """[T, K] weights; where there are none, any will do, for their scores are not used."""
    filler = np.full(members, 1.0 / members)
    return np.stack([filler if isinstance(one, str) else one.weights for one in fitted])


def _failure(
    t: int, whole: Sequence[Solution | str], parts: Sequence[Sequence[Solution | str]]
) -> str | None:
    """Why configuration t could not be fitted, on all data or without one of the folds."""
    said = [one for one in (whole[t], *(part[t] for part in parts)) if isinstance(one, str)]
    return said[0] if said else None


def _rounded(estimate: dict[str, float] | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {name: round(value, _DIGITS) for name, value in estimate.items()}


def _size(fitted: Solution | str) -> int:
    return 0 if isinstance(fitted, str) else fitted.size
