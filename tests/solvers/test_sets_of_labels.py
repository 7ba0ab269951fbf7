"""The objective of multi-label data: against loops over items, labels and members, and solved."""

from __future__ import annotations

import cmath
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from edokit import Objective, Scale
from edokit.fitdata.data import FitData
from edokit.objective.loss import joint_loss
from edokit.objective.pools import spaced_positions
from edokit.objective.settings import GumbelSteps, ObjectiveSettings
from edokit.objective.summaries import rank_members
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel
from shard_cases import cut
from tests.objective import literal
from tests.solvers.gumbel_cases import Data, step_by_step

pytestmark = pytest.mark.filterwarnings("ignore:.*tied:edokit._errors.EDOWarning")
SETS = Scale("multi-label")
EPS = literal.EPS


class Sets(NamedTuple):
    P: np.ndarray  # [N, K, L] how likely each member finds each label
    q: np.ndarray  # [N, L] the share of annotators who chose it
    y: np.ndarray  # [N, L] whether most did

    def fit_data(self) -> FitData:
        return FitData.from_arrays(*self, scale="multi-label")


def make_sets(items: int, members: int, labels: int, seed: int = 0, zeros: float = 0.0) -> Sets:
    rng = np.random.default_rng(seed)
    truth = rng.random((items, labels))
    noise = rng.normal(size=(items, members, labels)) * rng.uniform(0.3, 2, (members, 1))
    P = 1 / (1 + np.exp(-np.log(truth / (1 - truth))[:, None] - noise))
    P[rng.random(P.shape) < zeros] = 0.0
    P[rng.random(P.shape) < zeros] = 1.0
    q = rng.binomial(3, truth) / 3
    return Sets(P, q, (q > 0.5).astype(int))


def loss_of_sets(sets: Sets, chosen: ObjectiveSettings, v: Any) -> Any:
    """The joint loss from its definition: the mean over items of the mean over their labels."""
    P, q, y = sets
    items, members, labels = P.shape
    alpha = {0: 1.0, 1: 1.0}
    if chosen.class_weights:
        alpha = {c: items * labels / (2 * max(1, (y == c).sum())) for c in (0, 1)}
    f1 = ce = div = 0.0
    for i in range(items):
        for label in range(labels):
            p = P[i, :, label]
            given = {1: p, 0: 1 - p}  # the label is chosen, or it is not
            phi = {c: sum(v[k] * given[c][k] for k in range(members)) for c in given}
            f1 = f1 + phi[y[i, label]]
            for k in range(members):
                for other in range(members):
                    div = div + v[k] * v[other] * 2 * abs(p[k] - p[other])
            for c, share in ((1, q[i, label]), (0, 1 - q[i, label])):
                if chosen.ce == "all":
                    log = sum(v[k] * np.log(given[c][k] + EPS) for k in range(members))
                elif chosen.pool == "log":
                    powers = {
                        one: cmath.exp(sum(v[k] * np.log(a + EPS) for k, a in enumerate(each)))
                        for one, each in given.items()
                    }
                    log = cmath.log(powers[c] / sum(powers.values()))
                else:
                    log = cmath.log(phi[c] + EPS) if share else 0.0
                ce = ce - alpha[c] * share * log
    cells = items * labels
    return (
        chosen.f1 * (1 - f1 / cells)
        + chosen.ce_weight * ce / cells
        + chosen.diversity.sign * chosen.div * div / cells
        + chosen.reg * literal.norm(v)
    )


@given(
    items=st.integers(1, 8),
    members=st.integers(1, 5),
    labels=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    zeros=st.sampled_from([0.0, 0.2]),
    ce=st.sampled_from(["mean", "all"]),
    pool=st.sampled_from(["linear", "log"]),
    diversity=st.sampled_from(["preserve", "suppress"]),
    class_weights=st.booleans(),
)
def test_values_and_gradients_are_those_of_the_definition(
    items: int,
    members: int,
    labels: int,
    seed: int,
    zeros: float,
    class_weights: bool,
    **modes: str,
) -> None:
    sets = make_sets(items, members, labels, seed, zeros)
    class_weights = class_weights and len(np.unique(sets.y)) == 2
    pool = modes.pop("pool", "linear")
    chosen = Objective(div=0.4, class_weights=class_weights, **modes).resolve(pool)  # type: ignore[arg-type]
    v = np.random.default_rng(seed).dirichlet(np.ones(members))
    found = joint_loss(v, sets.fit_data().problem(chosen), chosen)

    def total(weights: Any) -> Any:
        return loss_of_sets(sets, chosen, weights)

    assert found.total == pytest.approx(literal.value(total(v)), rel=1e-9)
    # Weights sum to one, so that only slopes along the simplex count.
    ours, expected = (x - x.mean() for x in (found.gradient, literal.slope(total, v)))
    assert ours == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("ce", ["mean", "all"])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_the_definition(ce: str, seed: int) -> None:
    sets = make_sets(25, 4, 3, seed)
    chosen = Objective(div=0.1, ce=ce).resolve()  # type: ignore[arg-type]
    solution = solve_exact(sets.fit_data(), chosen)
    assert solution.certificate.convex
    assert solution.certificate.gap < 1e-8

    def value(v: np.ndarray) -> float:
        return literal.value(loss_of_sets(sets, chosen, np.abs(v) / np.abs(v).sum()))

    assert solution.terms["total"] == pytest.approx(value(solution.weights))
    how = {"maxiter": 400, "xatol": 1e-6, "fatol": 1e-10}
    other = minimize(value, solution.weights + 0.1, method="Nelder-Mead", options=how)
    assert solution.terms["total"] <= other.fun + 1e-7


@pytest.mark.parametrize("ce", ["mean", "all", "random"])
def test_gumbel_takes_the_steps_of_the_formulas(ce: str) -> None:
    data = make_sets(20, 5, 3).fit_data()
    rows = Data(*data.sample)
    rows = rows._replace(P=rows.P[:, rank_members(data.summaries())])
    chosen = Objective(div=0.2, ce=ce, class_weights=True).resolve()  # type: ignore[arg-type]
    how = GumbelSteps(epochs=5, batch_size=16, learning_rate=0.02)
    (found,) = solve_gumbel(data, chosen, how, random_state=3)
    expected = step_by_step(rows, chosen, how, 3)
    np.testing.assert_allclose(found.weights[found.order], expected, rtol=0, atol=1e-9)


@settings(max_examples=10)
@given(
    ce=st.sampled_from(["mean", "all"]),
    pool=st.sampled_from(["linear", "log"]),
    div=st.sampled_from([0.0, 0.2]),
    class_weights=st.booleans(),
)
def test_shards_have_the_optimum_of_memory(
    tmp_path_factory: pytest.TempPathFactory, **modes: Any
) -> None:
    made = cut(tmp_path_factory.mktemp("shards"), 240, [90, 200], classes=3, scale=SETS)
    memory = FitData.from_predictions(made.pool, made.people)
    pool = modes.pop("pool", "linear")
    chosen = Objective(**modes).resolve(pool)
    expected = solve_exact(memory, chosen)
    (drawn,) = solve_gumbel(memory, chosen, GumbelSteps(epochs=2))
    with (
        pytest.MonkeyPatch.context() as patch,
        FitData.open(made.predictions, made.annotations, jobs=1) as streamed,
        FitData.open(made.predictions, made.annotations, jobs=1) as whole,
    ):
        (again,) = solve_gumbel(whole, chosen, GumbelSteps(epochs=2))
        np.testing.assert_allclose(again.weights, drawn.weights, atol=1e-6)
        patch.setattr("edokit.fitdata.sharded.SAMPLE", 100)
        assert streamed.is_sampled
        assert len(streamed.sample.y) == 300
        solution = solve_exact(streamed, chosen)
    assert solution.terms["total"] == pytest.approx(expected.terms["total"], abs=1e-4)
    assert solution.certificate.gap < 1e-3


def test_the_joint_loss_is_the_mean_over_the_labels() -> None:
    data = make_sets(40, 4, 3, 1).fit_data()
    chosen = Objective(reg=0.0).resolve()
    shared = solve_exact(data, chosen)
    labels = [FitData.from_arrays(*(part[k::3] for part in data.sample)) for k in range(3)]
    each = [solve_exact(label, chosen) for label in labels]
    assert np.mean([one.terms["total"] for one in each]) < shared.terms["total"]
    parts = [joint_loss(shared.weights, label.problem(chosen), chosen).total for label in labels]
    assert np.mean(parts) == pytest.approx(shared.terms["total"])


def test_sets_of_one_label_are_two_classes() -> None:
    P, q, y = make_sets(30, 4, 1)
    rows = [np.concatenate([1 - part, part], axis=-1) for part in (P, q)]
    chosen = replace(Objective().resolve(), class_weights=True)
    two = solve_exact(FitData.from_arrays(*rows, y[:, 0]), chosen)
    solution = solve_exact(Sets(P, q, y).fit_data(), chosen)
    np.testing.assert_array_equal(solution.weights, two.weights)


@given(step=st.integers(1, 40), labels=st.integers(1, 12))
def test_a_sample_of_rows_comes_to_every_label(step: int, labels: int) -> None:
    found = np.bincount(spaced_positions(200 * step * labels, step) % labels, minlength=labels)
    assert found.min() > 0.5 * found.mean()
