"""The scores agree with independent implementations and keep their invariants."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from metric_cases import Problem, problems, simplices, simulated
from scipy.spatial.distance import cdist, jensenshannon
from scipy.special import rel_entr
from scipy.stats import entropy as scipy_entropy
from scipy.stats import spearmanr
from sklearn.metrics import f1_score, log_loss

from edokit import metrics
from tests.errors import raises_code

CASES = [simulated(items, classes, seed=classes) for items in (1, 60) for classes in (2, 3, 11)]
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.p.shape}")


def macro_f1(p: Any, y: Any) -> Any:
    return metrics.compute_metrics(p, p, y, metrics=["macro_f1"])["macro_f1"]


def entropy_correlation(p: Any, q: Any) -> Any:
    y = np.zeros(len(p), dtype=int)
    return metrics.compute_metrics(p, q, y, metrics="entropy_correlation")["entropy_correlation"]


def jsd_items(p: Any, q: Any) -> Any:
    return metrics.item_values()["jsd"](p, q, np.zeros(len(p)))


@cases
def test_f1_is_scikit_learns(case: Problem) -> None:
    predicted = case.p.argmax(axis=1)
    micro = f1_score(case.y, predicted, average="micro")
    macro = f1_score(case.y, predicted, average="macro", zero_division=0.0)
    assert metrics.f1(case.p, case.y) == pytest.approx(micro)
    assert macro_f1(case.p, case.y) == pytest.approx(macro)


@cases
def test_ce_is_scikit_learns_log_loss_weighted_by_the_soft_labels(case: Problem) -> None:
    items, classes = case.p.shape
    every_class = np.tile(np.arange(classes), items)
    total = log_loss(
        every_class,
        case.p.repeat(classes, axis=0),
        normalize=False,
        sample_weight=case.q.ravel(),
        labels=np.arange(classes),
    )
    assert metrics.ce(case.p, case.q) == pytest.approx(total / items)


@cases
def test_md_and_bs_are_scipys_distances(case: Problem) -> None:
    manhattan = np.diag(cdist(case.p, case.q, "cityblock"))
    squared = np.diag(cdist(case.p, case.q, "sqeuclidean"))
    np.testing.assert_allclose(metrics.md_items(case.p, case.q), manhattan)
    np.testing.assert_allclose(metrics.bs_items(case.p, case.q), squared)
    assert metrics.md(case.p, case.q) == pytest.approx(manhattan.mean())
    assert metrics.bs(case.p, case.q) == pytest.approx(squared.mean())


@cases
def test_jsd_is_the_square_of_scipys_distance(case: Problem) -> None:
    each = jensenshannon(case.p, case.q, axis=1) ** 2
    np.testing.assert_allclose(jsd_items(case.p, case.q), each, atol=1e-15)
    assert metrics.jsd(case.p, case.q) == pytest.approx(each.mean())


@cases
def test_entropy_is_scipys(case: Problem) -> None:
    each = scipy_entropy(case.q, axis=1)
    np.testing.assert_allclose(metrics.entropy_items(case.q), each, atol=1e-15)
    assert metrics.entropy(case.q) == pytest.approx(each.mean(), abs=1e-15)


@pytest.mark.parametrize("classes", [2, 3, 11])
def test_entropy_correlation_is_scipys_spearman(classes: int) -> None:
    p, q, _ = simulated(60, classes)
    theirs = spearmanr(scipy_entropy(p, axis=1), scipy_entropy(q, axis=1).round(12)).statistic
    assert entropy_correlation(p, q) == pytest.approx(theirs)


@given(problems())
def test_every_formula_holds_item_by_item(problem: Problem) -> None:
    p, q, y = problem
    clipped = np.clip(p, 1e-12, 1 - 1e-12)
    for i in range(len(y)):
        middle = (p[i] + q[i]) / 2
        divergence = (rel_entr(p[i], middle).sum() + rel_entr(q[i], middle).sum()) / 2
        assert metrics.ce_items(p, q)[i] == pytest.approx(
            -sum(q[i, c] * np.log(clipped[i, c]) for c in range(p.shape[1])), abs=1e-9
        )
        assert jsd_items(p, q)[i] == pytest.approx(divergence, abs=1e-12)
        assert metrics.f1_items(p, y)[i] == (list(p[i]).index(max(p[i])) == y[i])


def test_a_tie_goes_to_the_first_class() -> None:
    assert metrics.f1([[0.5, 0.5]], [0]) == 1
    assert metrics.f1([[0.2, 0.4, 0.4]], [2]) == 0


def test_ce_is_clipped_as_in_the_official_scoring() -> None:
    assert metrics.ce([[1.0, 0.0]], [[0.0, 1.0]]) == pytest.approx(-np.log(1e-12))
    assert metrics.ce([[1.0, 0.0]], [[1.0, 0.0]]) == pytest.approx(1e-12, rel=1e-3)


def test_macro_f1_leaves_out_classes_that_do_not_occur() -> None:
    p = [[0.9, 0.1, 0.0], [0.8, 0.2, 0.0]]
    assert macro_f1(p, [0, 0]) == 1
    assert macro_f1(p, [0, 2]) == pytest.approx((2 / 3 + 0) / 2)


@given(problems())
def test_scores_stay_within_their_bounds(problem: Problem) -> None:
    p, q, y = problem
    rounding = 1e-12
    for value, most in [
        (metrics.f1(p, y), 1),
        (macro_f1(p, y), 1),
        (metrics.md(p, q), 2),
        (metrics.bs(p, q), 2),
        (metrics.jsd(p, q), np.log(2)),
        (metrics.entropy(q), np.log(q.shape[1])),
    ]:
        assert 0 <= value <= most + rounding
    correlation = entropy_correlation(p, q)
    assert correlation is None or -1 <= correlation <= 1


def test_opposite_certainties_reach_the_upper_bounds() -> None:
    p = [[1.0, 0.0]]
    q = [[0.0, 1.0]]
    assert metrics.md(p, q) == 2
    assert metrics.bs(p, q) == 2
    assert metrics.jsd(p, q) == pytest.approx(np.log(2))


@given(problems())
def test_ce_and_bs_are_smallest_where_p_is_q(problem: Problem) -> None:
    p, q, _ = problem
    assert np.all(metrics.ce_items(q, q) <= metrics.ce_items(p, q) + 1e-10)
    assert np.all(metrics.bs_items(q, q) <= metrics.bs_items(p, q))
    assert metrics.ce(q, q) == pytest.approx(metrics.entropy(q), abs=1e-10)


@given(problems())
def test_distances_are_zero_only_where_p_is_q(problem: Problem) -> None:
    p, q, _ = problem
    equal = (p == q).all(axis=1)
    np.testing.assert_array_equal(metrics.md_items(p, q) == 0, equal)
    assert metrics.md(q, q) == metrics.bs(q, q) == 0
    assert metrics.jsd(q, q) == pytest.approx(0, abs=1e-15)
    apart = np.abs(p - q).max(axis=1) > 1e-3
    assert np.all(metrics.bs_items(p, q)[apart] > 0)
    assert np.all(jsd_items(p, q)[apart] > 0)


def test_ce_and_bs_reward_the_true_distribution_on_average() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([0.6, 0.3, 0.1])
    q = rng.multinomial(4, truth, size=20_000) / 4
    for other in rng.dirichlet(np.ones(3), 20):
        for loss in (metrics.ce, metrics.bs):
            assert loss(np.tile(truth, (len(q), 1)), q) < loss(np.tile(other, (len(q), 1)), q)


@given(problems(), st.randoms())
def test_the_order_of_the_items_does_not_matter(problem: Problem, random: Random) -> None:
    order = list(range(len(problem.y)))
    random.shuffle(order)
    assert metrics.compute_metrics(*(part[order] for part in problem)) == pytest.approx(
        metrics.compute_metrics(*problem), abs=1e-9
    )


@given(problems(), st.randoms())
def test_the_order_of_the_classes_does_not_matter(problem: Problem, random: Random) -> None:
    top = np.sort(problem.p, axis=1)
    p, q, y = (part[top[:, -1] > top[:, -2]] for part in problem)  # a tie goes by class order
    assume(len(y))
    order = list(range(p.shape[1]))
    random.shuffle(order)
    names = [name for name in metrics.metrics_of() if name != "ece" or p.shape[1] > 2]
    moved = np.argsort(order)[y]
    assert metrics.compute_metrics(p[:, order], q[:, order], moved, metrics=names) == pytest.approx(
        metrics.compute_metrics(p, q, y, metrics=names), abs=1e-9
    )


@pytest.mark.parametrize("items", [1, 2, 30])
def test_entropy_correlation_is_none_where_one_side_is_constant(items: int) -> None:
    p, q, _ = simulated(items, 3)
    constant = np.tile([0.2, 0.3, 0.5], (items, 1))
    assert entropy_correlation(constant, q) is None
    assert entropy_correlation(p, constant) is None


def test_rounding_does_not_break_ties_of_entropy() -> None:
    rng = np.random.default_rng(0)
    levels = rng.dirichlet(np.ones(11), 3)
    q = np.array([rng.permutation(levels[i % 3]) for i in range(60)])
    p = levels[np.arange(60) % 3]
    assert len(np.unique(metrics.entropy_items(q))) > 3
    assert entropy_correlation(p, q) == pytest.approx(1, abs=1e-12)


@given(st.data())
def test_entropy_correlation_is_one_where_p_is_q(data: st.DataObject) -> None:
    q = data.draw(simplices(data.draw(st.integers(2, 12)), data.draw(st.integers(2, 11))))
    correlation = entropy_correlation(q, q)
    assert correlation is None or correlation == pytest.approx(1)


def test_half_precision_and_lists_are_welcome() -> None:
    p, q, y = simulated(50, 3)
    assert metrics.ce(p.astype(np.float16), q) == pytest.approx(metrics.ce(p, q), abs=1e-2)
    assert metrics.f1(p.tolist(), y.tolist()) == metrics.f1(p, y)


GOOD = np.full((3, 2), 0.5)


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        (GOOD[:2], GOOD, ("shapes-differ", "[2, 2]", "[3, 2]")),
        (np.full((3, 4), 0.25), GOOD, ("shapes-differ", "[3, 4]", "[3, 2]")),
        (np.empty((0, 2)), np.empty((0, 2)), ("wrong-shape", "[0, 2]")),
        (GOOD[0], GOOD, ("wrong-shape", "[2]", "[N, C]")),
        (GOOD[None], GOOD, ("wrong-shape", "[1, 3, 2]")),
        (np.ones((3, 1)), GOOD, ("too-few-classes",)),
        (GOOD, [[0.5, 0.5], [np.nan, 0.5], [0.5, 0.5]], ("invalid-number", "q[1, 0]", "1 of 6")),
        ([[0.5, 0.5], [np.inf, 0.5], [0.5, 0.5]], GOOD, ("invalid-number", "p[1, 0]", "inf")),
        (
            [[0.5, 0.5], [0.5, 0.5], [1.5, -0.5]],
            GOOD,
            ("invalid-probabilities", "p[2]", "(1.5, -0.5)"),
        ),
        (GOOD * 1.1, GOOD, ("invalid-probabilities", "p[0]", "0.55, 0.55", "3 of 3")),
        ([["a", "b"]], GOOD, ("not-numbers",)),
        ([[None, 0.5], [0.5, 0.5], [0.5, 0.5]], GOOD, ("invalid-number", "p[0, 0]")),
        ([[0.5, 0.5], [1.0]], GOOD, ("not-numbers",)),
    ],
)
def test_bad_probabilities_are_refused_in_one_line(
    p: object, q: object, message: tuple[str, ...]
) -> None:
    with raises_code(*message) as refused:
        metrics.ce(p, q)
    assert refused.value.hint
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], ("shapes-differ", "[2]", "[3]")),
        ([[0], [1], [0]], ("shapes-differ", "[3, 1]")),
        ([0, 1, 2], ("invalid-number", "y[2]", "1 of 3")),
        ([0, -1, 1], ("invalid-number", "y[1]")),
        ([0.0, 1.0, 0.5], ("not-class-codes", "float64")),
        (["a", "b", "a"], ("not-class-codes",)),
    ],
)
def test_bad_hard_labels_are_refused_in_one_line(y: object, message: tuple[str, ...]) -> None:
    for measure in (metrics.f1, macro_f1):
        with raises_code(*message) as refused:
            measure(GOOD, y)
        assert refused.value.hint
