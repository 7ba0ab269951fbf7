"""What the exact solver asks of the joint loss is what the joint loss says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edokit import Objective
from edokit.objective import loss as module
from edokit.objective.loss import InMemoryTerm, JointObjective
from edokit.objective.settings import ObjectiveSettings
from edokit.objective.summaries import Problem
from edokit.solvers.exact import _active_set, _interior_point

SETTINGS = [
    Objective(f1=f1, div=div, diversity=diversity, ce=ce).resolve(pool)
    for f1, div, diversity, ce, pool in (
        (0.3, 0.0, "preserve", "mean", "linear"),
        (0.3, 0.2, "preserve", "mean", "linear"),
        (0.0, 0.2, "suppress", "mean", "linear"),
        (0.3, 0.2, "suppress", "mean", "log"),
        (0.3, 0.2, "preserve", "all", "linear"),
    )
]


def problem_of(items: int, members: int, classes: int, settings: ObjectiveSettings) -> Problem:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(classes), (items, members))
    q = rng.multinomial(3, np.full(classes, 1 / classes), items) / 3.0
    return Problem.from_arrays(P, q, q.argmax(axis=1), pool=settings.pool)


def weights(members: int) -> NDArray[Any]:
    return np.random.default_rng(1).dirichlet(np.ones(members))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("classes", [2, 7])
def test_value_slope_and_curvature_belong_together(
    settings: ObjectiveSettings, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 64)
    problem = problem_of(40, 5, classes, settings)
    objective = JointObjective(problem, settings)
    v = weights(5)
    terms = objective.terms(v)
    names = {"ce_weight": "ce", "f1": "f1", "div": "div", "reg": "reg"}
    total = sum(settings.signed_weight(field) * terms[name] for field, name in names.items())
    assert objective.value(v) == pytest.approx(total, rel=1e-12)
    ahead, behind = (
        np.array([objective.value(v + step * row) for row in np.eye(5)]) for step in (1e-6, -1e-6)
    )
    np.testing.assert_allclose(objective.slope(v), (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6)
    convex, concave = objective.curvature(v, np.arange(5))
    whole = convex if concave is None else convex + concave
    step = 1e-6
    moved = [objective.slope(v + step * row) - objective.slope(v - step * row) for row in np.eye(5)]
    np.testing.assert_allclose(whole, np.array(moved) / (2 * step), rtol=1e-4, atol=1e-5)
    assert (concave is None) == (settings.div == 0 or settings.diversity == "preserve")


STRONG_SUPPRESS = Objective(div=20.0, diversity="suppress").resolve()


@pytest.mark.parametrize("settings", [*SETTINGS, STRONG_SUPPRESS], ids=str)
def test_the_parts_of_the_curvature_are_convex_and_concave(settings: ObjectiveSettings) -> None:
    """Along the simplex: the solver steps through the first part and bounds the second."""
    problem = problem_of(40, 5, 3, settings)
    objective = JointObjective(problem, settings)
    convex, concave = objective.curvature(weights(5), np.arange(5))
    along = np.eye(5) - 1 / 5
    bends = np.linalg.eigvalsh(along @ convex @ along)
    assert bends.min() > -1e-12
    if settings.ce == "mean":
        assert bends.max() > 1e-3
    if concave is not None:
        bends = np.linalg.eigvalsh(along @ concave @ along)
        assert bends.max() < 1e-12
        assert bends.min() < -1e-3


def test_the_curvature_of_some_members_is_part_of_that_of_all() -> None:
    settings = SETTINGS[1]
    problem = problem_of(40, 5, 2, settings)
    objective = JointObjective(problem, settings)
    v = np.array([0.5, 0.0, 0.3, 0.2, 0.0])
    inside = np.array([0, 2, 3])
    whole, part = (objective.curvature(v, some)[0] for some in (np.arange(5), inside))
    np.testing.assert_allclose(part, whole[np.ix_(inside, inside)], rtol=1e-12)


def test_what_was_asked_a_moment_ago_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Objective().resolve()
    objective = JointObjective(problem_of(20, 3, 2, settings), settings)
    asked = []
    evaluate = InMemoryTerm._evaluate
    monkeypatch.setattr(
        InMemoryTerm, "_evaluate", lambda self, v: (asked.append(v), evaluate(self, v))[1]
    )
    corners = np.eye(3)
    for v in (*corners, *corners):
        objective.value(v)
        objective.slope(v)
    assert len(asked) == 3


@pytest.mark.parametrize("seed", range(20))
def test_exchanging_members_and_the_interior_method_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(12, 12))
    hessian = factor @ factor.T
    linear = rng.normal(size=12) * 3
    scale = np.abs(hessian).max()
    h = hessian / scale
    c = (linear - linear.min()) / scale
    exchanged = _active_set(h, c, np.ones(12, bool))
    assert exchanged is not None
    inside = _interior_point(h, c)
    np.testing.assert_allclose(exchanged, inside / inside.sum(), atol=1e-6)


def test_exchanging_gives_up_where_the_optimum_is_no_point() -> None:
    # Two members that are one and the same may share their weight in any way.
    assert _active_set(np.ones((2, 2)), np.zeros(2), np.ones(2, bool)) is None
