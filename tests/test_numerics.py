"""Numbers at the edge of what floating point holds: results stay finite and certificates true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from edokit import Annotations, EDOEnsemble, Objective, Predictions
from edokit.fitdata.data import FitData
from edokit.objective.loss import joint_loss
from edokit.objective.summaries import Problem
from edokit.solvers.exact import solve_exact

Floats = NDArray[Any]
Case = tuple[Floats, Floats]
"""Probabilities [N, K, C] and answers [N, A] as numbers of classes."""


def ordinary(items: int, members: int, classes: int, seed: int = 0) -> Case:
    """Members that see the same leaning through more or less noise."""
    rng = np.random.default_rng(seed)
    leaning = rng.normal(size=(items, classes))
    noise = rng.normal(size=(items, members, classes)) * rng.uniform(0.3, 2, (1, members, 1))
    answers = np.stack([rng.choice(classes, 5, p=softmax(row)) for row in leaning])
    return softmax(leaning[:, None] + noise), answers


def softmax(values: Floats) -> Floats:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def zeros_and_ones() -> Case:
    P, answers = ordinary(40, 4, 3)
    hard = np.eye(3)[P.argmax(axis=2)]
    return np.concatenate([hard[:, :2], P[:, 2:]], axis=1), answers


def all_wrong_and_certain() -> Case:
    _, answers = ordinary(40, 3, 2)
    wrong = np.eye(2)[1 - (answers[:, 0])]
    return np.repeat(wrong[:, None], 3, axis=1), np.repeat(answers[:, :1], 5, axis=1)


def denormals() -> Case:
    P, answers = ordinary(40, 4, 2)
    P[:, 0, 0] = 5e-324
    P[:, 0, 1] = 1.0
    P[:20, 1, 1] = 1e-310
    P[:20, 1, 0] = 1.0
    return P, answers


def half_precision() -> Case:
    P, answers = ordinary(60, 5, 3)
    return P.astype(np.float16), answers


def single_precision() -> Case:
    P, answers = ordinary(60, 5, 3)
    P[0, 0] = (1e-45, 1.0, 0.0)
    return P.astype(np.float32), answers


def one_item() -> Case:
    return ordinary(1, 4, 2)


def one_member() -> Case:
    return ordinary(30, 1, 3)


def all_equal_members() -> Case:
    P, answers = ordinary(50, 1, 3)
    return np.repeat(P, 6, axis=1), answers


def duplicated_items() -> Case:
    P, answers = ordinary(5, 4, 3)
    return np.repeat(P, 40, axis=0), np.repeat(answers, 40, axis=0)


def a_thousand_members() -> Case:
    return ordinary(30, 1000, 2)


def a_hundred_members() -> Case:
    return ordinary(30, 100, 2)


def a_hundred_classes() -> Case:
    return ordinary(120, 4, 100)


def one_in_ten_thousand() -> Case:
    rng = np.random.default_rng(0)
    P = softmax(rng.normal(size=(10_001, 3, 2)) + np.array([6.0, 0.0]))
    answers = np.zeros((10_001, 3), dtype=int)
    answers[0] = 1
    return P, answers


def uniform_members() -> Case:
    _, answers = ordinary(30, 3, 4)
    return np.full((30, 3, 4), 0.25), answers


CASES: list[Callable[[], Case]] = [
    zeros_and_ones,
    all_wrong_and_certain,
    denormals,
    half_precision,
    single_precision,
    one_item,
    one_member,
    all_equal_members,
    duplicated_items,
    a_thousand_members,
    a_hundred_classes,
    one_in_ten_thousand,
    uniform_members,
]


def named(case: Case) -> tuple[Annotations, Predictions]:
    P, answers = case
    items = [f"i{i}" for i in range(len(P))]
    classes = [str(c) for c in range(P.shape[2])]
    people = Annotations.from_matrix(answers.astype(str), items=items, classes=classes)
    predictions = Predictions.from_arrays(P, items=items, classes=classes, layout="NKC")
    return people, predictions


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(finite(entry) for entry in value.values())
    return value is None or isinstance(value, str) or bool(np.all(np.isfinite(value)))


def weights_to_try(members: int) -> Floats:
    """Corners, the middle and random points of the simplex [M, K]."""
    rng = np.random.default_rng(1)
    corners = np.eye(members)[:20]
    some = 50 if members < 100 else 5
    return np.concatenate(
        [
            corners,
            np.full((1, members), 1 / members),
            rng.dirichlet(np.ones(members), some),
            rng.dirichlet(np.full(members, 0.1), some),
        ]
    )


@pytest.mark.parametrize("pool", ["linear", "log"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_no_weights_are_better_than_the_certificate_allows(
    case: Callable[[], Case], pool: str
) -> None:
    people, made = named(case())
    settings = Objective(f1=0.0, ce_weight=1.0, div=0.0, reg=0.0).resolve(pool)
    problem = Problem.from_arrays(
        made.probabilities,
        people.soft_labels,
        people.soft_labels.argmax(axis=1),
        pool=settings.pool,
        class_weights=settings.class_weights,
    )
    solution = solve_exact(
        FitData.from_arrays(
            made.probabilities, people.soft_labels, people.soft_labels.argmax(axis=1)
        ),
        settings,
    )
    assert solution.certificate is not None
    assert solution.certificate.convex
    best = solution.terms["total"]
    scale = max(1.0, abs(best))
    assert -1e-12 * scale <= solution.certificate.gap < 1e-6 * scale
    assert abs(solution.weights.sum() - 1) < 1e-9
    assert (solution.weights >= 0).all()
    tried = weights_to_try(problem.members)
    losses = np.array([float(joint_loss(v, problem, settings).total) for v in tried])
    assert np.isfinite(losses).all()
    assert losses.min() >= best - solution.certificate.gap - 1e-9 * scale


@pytest.mark.parametrize(
    "ensemble",
    [
        EDOEnsemble(ties="random"),
        EDOEnsemble(pool="log", ties="random"),
        EDOEnsemble("paper-fixed", ties="random").set_params(objective__class_weights=False),
    ],
    ids=["default", "log", "paper"],
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_ensembles_are_finite_at_the_edge(case: Callable[[], Case], ensemble: EDOEnsemble) -> None:
    if case is a_thousand_members and ensemble.preset != "paper-fixed":
        case = a_hundred_members  # a thousand are in the test above
    if case is a_hundred_classes and (ensemble.pool == "log" or ensemble.preset != "default"):
        # How annotators differ takes most of the time with so many classes: the default has it.
        ensemble = clone(ensemble).set_params(people=False)
    people, made = named(case())
    ensemble.fit(made, people)
    shares = ensemble.predict_proba(made)
    assert np.isfinite(shares).all()
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-9)
    assert abs(ensemble.weights_.sum() - 1) < 1e-9
    assert finite(ensemble.objective_)
    assert finite({k: v for k, v in ensemble.metrics_.items() if isinstance(v, float)})
    assert finite(ensemble.member_ce_)
    if ensemble.certificate_ is not None:
        assert np.isfinite(ensemble.certificate_.gap)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_narrow_numbers_change_the_result_by_their_rounding_alone(kind: Any) -> None:
    P, answers = ordinary(200, 4, 3)
    people, wide = named((P, answers))
    _, narrow = named((P.astype(kind), answers))
    one, two = (EDOEnsemble(ties="random").fit(made, people).weights_ for made in (wide, narrow))
    np.testing.assert_allclose(one, two, atol=50 * float(np.finfo(kind).eps))


def test_items_that_stand_there_twice_change_nothing() -> None:
    settings = Objective(f1=0.0, ce_weight=1.0, div=0.0, reg=0.0).resolve()
    P, answers = ordinary(30, 4, 3)
    q = np.stack([(answers == c).mean(axis=1) for c in range(3)], axis=1)
    one, two = (
        solve_exact(FitData.from_arrays(*arrays), settings)
        for arrays in ((P, q, q.argmax(1)), [np.repeat(a, 2, axis=0) for a in (P, q, q.argmax(1))])
    )
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-6)
    assert one.terms["total"] == pytest.approx(two.terms["total"], abs=1e-12)
