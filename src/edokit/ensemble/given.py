"""An ensemble whose weights come from elsewhere, such as training end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.explain import explain
from edokit.ensemble.inputs import as_predictions, together
from edokit.ensemble.presets import objective_of
from edokit.metrics import ce, evaluate
from edokit.objective import CE, Problem, Regularize, Summaries, joint_loss
from edokit.solvers import Solution

GIVEN = "given"
"""The name of the solver where there was none."""
TERMS = ("f1", "ce", "div", "reg", "total")


def with_weights(
    weights: Sequence[float] | npt.NDArray[Any],
    predictions: Any,
    annotations: Any,
    *,
    size: int | None = None,
    **parameters: Any,
) -> EDOEnsemble:
    """The ensemble with these member weights [K], judged on predictions and people's answers."""
    ensemble = EDOEnsemble(**{**parameters, "order": GIVEN})
    chosen = {**ensemble._choices(), "solver": GIVEN}
    if chosen["groups"] or chosen["recalibrate"] is not None:
        raise InputError(
            "weights are given for members as they are, but groups or recalibrate is set",
            "leave both out",
        )
    named, people = together(as_predictions(predictions), annotations)
    v = _simplex(weights, len(named.members))
    q, y = people.soft_labels, people.hard_labels(ties=ensemble.ties, seed=ensemble.random_state)
    P = np.asarray(named.probabilities, dtype=np.float64)
    settings = objective_of(chosen)
    # Nothing is drawn here, and there are no weights but these.
    variant = CE.ALL if settings.ce is CE.RANDOM else settings.ce
    settings = replace(settings, ce=variant, regularize=Regularize.EFFECTIVE)
    sums, weighted = Summaries.from_arrays(P, q, y), settings.class_weights
    if weighted:
        sums.class_weights(named.classes)  # what has none is refused by its name
    problem = Problem.from_arrays(
        P, q, y, class_weights=weighted, pool=settings.pool, summaries=sums
    )
    loss = joint_loss(v, problem, settings)
    solution = Solution(
        weights=v,
        size=int((v > 0).sum()) if size is None else size,
        terms={name: float(getattr(loss, name)) for name in TERMS},
        order=np.argsort(v == 0, kind="stable"),
    )
    hard = np.bincount(y, minlength=len(named.classes)).tolist()
    data = {
        "annotators": len(people.annotators),
        "annotations": len(people),
        "hard_labels": dict(zip(named.classes, hard, strict=True)),
    }
    ensemble._keep(chosen, solution, named.members, named.classes, None, data)
    ensemble.member_ce_ = np.array([ce(P[:, k], q) for k in range(len(v))])
    ensemble.metrics_ = evaluate(ensemble._pooled(P), q, y)
    own = ensemble.member_ce_
    ensemble._reasons = explain(named.members, solution, problem, own, settings, len(v))
    return ensemble


def _simplex(weights: Any, members: int) -> npt.NDArray[np.float64]:
    v = np.asarray(weights, dtype=np.float64)
    if v.shape != (members,) or not (v >= 0).all() or not abs(v.sum() - 1.0) < 1e-6:
        raise InputError(
            f"weights must be one for each of the {members} members, not negative and sum to 1,"
            f" but got {v.tolist()}",
            "divide them by their sum",
        )
    return v
