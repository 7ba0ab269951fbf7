from __future__ import annotations

import literal
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from objective_cases import Case, cases, make_case

from edokit import Objective
from edokit.objective.loss import CROSS_ENTROPY, DrawnMember, InMemoryTerm, Linear, joint_loss
from edokit.objective.settings import ObjectiveSettings
from edokit.objective.summaries import Problem, Summaries
from tests.errors import raises_code


def ce_all(v: np.ndarray, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean of the members' own cross-entropies."""
    return Linear(problem.member_ce).at(v)


def ce_mean(v: np.ndarray, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The cross-entropy of the pool."""
    return InMemoryTerm.from_problem(CROSS_ENTROPY[problem.pool](), problem).at(v)


VARIANTS = ("mean", "all", "random")
POOLS = ("linear", "log")


@st.composite
def settings(draw: st.DrawFn, **fixed: object) -> ObjectiveSettings:
    """Settings with every term in play."""
    names = ("f1", "ce_weight", "div", "reg")
    pool = str(fixed.pop("pool", "linear"))
    return Objective(
        **{name: draw(st.floats(0.1, 2.0)) for name in names},
        **{
            "diversity": draw(st.sampled_from(["preserve", "suppress"])),
            **fixed,
        },
    ).resolve(pool)


def with_hard_labels_only(case: Case) -> Case:
    """The case without soft-label mass on classes that are no item's hard label."""
    q = case.q * (np.bincount(case.y, minlength=case.q.shape[1]) > 0)
    return case._replace(q=q / q.sum(axis=1, keepdims=True))


def problem_of(case: Case, chosen: ObjectiveSettings) -> Problem:
    return Problem.from_arrays(
        case.P, case.q, case.y, class_weights=chosen.class_weights, pool=chosen.pool
    )


def literal_terms(case: Case, chosen: ObjectiveSettings, noise: np.ndarray, temperature: float):
    """Each term as a function of v (and of w for the norm), straight from the paper."""
    P, q, y, _, _ = case
    weights = literal.alpha(y, P.shape[2]) if chosen.class_weights else [1.0] * P.shape[2]

    def cross_entropy(v, relaxed: bool = False):
        if chosen.ce == "mean":
            return literal.ce_mean(P, q, weights, v, chosen.pool)
        if chosen.ce == "all":
            return literal.ce_all(P, q, weights, v)
        if relaxed:
            return literal.ce_relaxed(P, q, weights, v, noise, temperature)
        drawn = (np.log(np.asarray(v) + literal.EPS) + noise).argmax(axis=1)
        return literal.ce_drawn(P, q, weights, drawn)

    return (
        lambda v: literal.f1_loss(P, y, v),
        cross_entropy,
        lambda v: literal.diversity(P, v),
        literal.norm,
    )


@pytest.mark.parametrize("ce", VARIANTS)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("class_weights", [False, True])
@given(case=cases(), data=st.data(), temperature=st.sampled_from([0.3, 1.0]))
def test_values_and_gradients_are_those_of_the_paper(
    ce: str, pool: str, class_weights: bool, case: Case, data: st.DataObject, temperature: float
) -> None:
    chosen = data.draw(settings(ce=ce, pool=pool, class_weights=class_weights))
    case = with_hard_labels_only(case) if class_weights else case
    noise = case.rng.gumbel(size=case.P.shape[:2])
    v = case.v
    found = joint_loss(v, problem_of(case, chosen), chosen, noise=noise, temperature=temperature)
    f1, cross_entropy, div, reg = literal_terms(case, chosen, noise, temperature)
    sign = -1.0 if chosen.diversity == "preserve" else 1.0

    def total(x, relaxed: bool = False):
        smooth = chosen.f1 * f1(x) + sign * chosen.div * div(x)
        norm = chosen.reg * reg(x)
        cross = cross_entropy(x, relaxed)
        return smooth + norm + chosen.ce_weight * cross

    close = {"rel": 1e-9, "abs": 1e-9}
    assert found.terms["f1"] == pytest.approx(literal.value(f1(v)), **close)
    assert found.terms["ce"] == pytest.approx(literal.value(cross_entropy(v)), **close)
    assert found.terms["div"] == pytest.approx(literal.value(div(v)), **close)
    assert found.terms["reg"] == pytest.approx(literal.value(reg(v)), **close)
    assert found.total == pytest.approx(literal.value(total(v)), **close)
    slope = literal.slope(lambda x: total(x, relaxed=True), v)
    # Off the simplex the literal F1's denominator moves too, by the same for every member.
    slope = slope - chosen.f1 * (1.0 - found.terms["f1"]) / 2.0
    np.testing.assert_allclose(found.gradient, slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ce", VARIANTS)
@pytest.mark.parametrize("pool", POOLS)
def test_a_batch_gives_what_its_rows_give_alone(ce: str, pool: str) -> None:
    case = make_case(20, 4, 3, seed=1)
    chosen = Objective(f1=0.4, div=0.3, reg=0.2, ce=ce).resolve(pool)
    v = case.rng.dirichlet(np.ones(4), size=5)
    noise = case.rng.gumbel(size=(5, 20, 4))
    temperature = case.rng.uniform(0.1, 1.0, (5, 1, 1))
    problem = problem_of(case, chosen)
    batch = joint_loss(v, problem, chosen, noise=noise, temperature=temperature)
    for t in range(5):
        alone = joint_loss(
            v[t], problem, chosen, noise=noise[t], temperature=float(temperature[t, 0, 0])
        )
        np.testing.assert_allclose(batch.gradient[t], alone.gradient, rtol=1e-12)
        for name, value in alone.terms.items():
            np.testing.assert_allclose(batch.terms[name][t], value, rtol=1e-12)


@given(cases(zeros=False))
def test_diversity_lies_between_the_spread_and_twice_the_spread(case: Case) -> None:
    """Appendix A, for every item."""
    P, _, _, v, _ = case
    for p in P:
        spread = (v * np.abs(p - v @ p).sum(axis=1)).sum()
        sums = Summaries.from_arrays(p[None], p[None, 0], np.array([0]))
        dispersion = v @ sums.matrices["div"] @ v
        assert spread - 1e-12 <= dispersion <= 2.0 * spread + 1e-12


@given(cases())
def test_diversity_is_concave_on_the_simplex(case: Case) -> None:
    P, q, y, v, rng = case
    D = Summaries.from_arrays(P, q, y).matrices["div"]
    other = rng.dirichlet(np.ones(len(v)))
    middle = (v + other) / 2.0
    assert middle @ D @ middle >= (v @ D @ v + other @ D @ other) / 2.0 - 1e-12
    direction = rng.normal(size=len(v))
    direction -= direction.mean()
    assert direction @ D @ direction <= 1e-12


@pytest.mark.parametrize("ce", ["mean", "all"])
@pytest.mark.parametrize("pool", POOLS)
@given(case=cases(), data=st.data(), share=st.floats(0.0, 1.0))
def test_preserve_is_convex_on_the_simplex(
    ce: str, pool: str, case: Case, data: st.DataObject, share: float
) -> None:
    chosen = data.draw(settings(ce=ce, pool=pool, diversity="preserve"))
    problem = problem_of(case, chosen)
    other = case.rng.dirichlet(np.ones(len(case.v)))
    ends = joint_loss(np.stack([case.v, other]), problem, chosen).total
    inside = joint_loss(share * case.v + (1.0 - share) * other, problem, chosen).total
    chord = share * ends[0] + (1.0 - share) * ends[1]
    assert inside <= chord + 1e-9 * max(1.0, abs(chord))


def test_random_ce_is_all_ce_in_expectation() -> None:
    case = make_case(5, 3, 2, seed=2)
    problem = problem_of(case, Objective().resolve())
    draws = 40_000
    v = np.broadcast_to(case.v, (draws, 3))
    values, _ = DrawnMember(problem, case.rng.gumbel(size=(draws, 5, 3))).at(v)
    expected = ce_all(case.v[None], problem)[0][0]
    assert len(np.unique(values.round(12))) > 10
    error = values.std() / np.sqrt(draws)
    assert abs(values.mean() - expected) < 5.0 * error


def test_members_are_drawn_as_often_as_they_weigh() -> None:
    weights = np.array([0.6, 0.3, 0.1, 0.0])
    q = np.tile([1.0, 0.0], (30_000, 1))
    row = np.exp(-np.array([1.0, 2.0, 3.0, 4.0]))
    P = np.tile(np.stack([row, 1.0 - row], axis=-1), (30_000, 1, 1))
    problem = Problem.from_arrays(P, q, np.zeros(30_000, dtype=int))
    noise = np.random.default_rng(0).gumbel(size=P.shape[:2])
    value, _ = DrawnMember(problem, noise).at(weights)
    assert value == pytest.approx(0.6 * 1 + 0.3 * 2 + 0.1 * 3, abs=0.02)


@given(cases())
def test_pooling_never_costs_more_than_its_members(case: Case) -> None:
    """−ln is convex, so the pool's CE is at most the members' mean CE; a log pool's too."""
    for kind in ("linear", "log"):
        problem = Problem.from_arrays(case.P, case.q, case.y, pool=kind)
        pooled = ce_mean(case.v[None], problem)[0]
        members = ce_all(case.v[None], problem)[0]
        assert pooled[0] <= members[0] + 1e-9


def test_one_member_is_its_own_pool() -> None:
    case = make_case(9, 1, 3, seed=5)
    for kind in ("linear", "log"):
        problem = Problem.from_arrays(case.P, case.q, case.y, pool=kind)
        loss = joint_loss(np.ones(1), problem, Objective(f1=1.0).resolve(kind))
        assert loss.terms["ce"] == pytest.approx(problem.member_ce[0], rel=1e-9)
        assert loss.terms["div"] == 0.0
        assert loss.terms["reg"] == 1.0


@pytest.mark.parametrize("kind", ["linear", "log"])
def test_a_pool_without_mass_on_the_label_costs_a_finite_loss(kind: str) -> None:
    P = np.array([[[1.0, 0.0], [0.5, 0.5]]])
    problem = Problem.from_arrays(P, np.array([[0.0, 1.0]]), np.array([1]), pool=kind)
    loss = joint_loss(np.array([1.0, 0.0]), problem, Objective().resolve(kind))
    assert loss.terms["ce"] == pytest.approx(-np.log(1e-12))
    assert np.isfinite(loss.gradient).all()
    assert loss.gradient[1] < loss.gradient[0]


def test_a_mini_batch_keeps_the_terms_of_all_items_but_the_cross_entropy() -> None:
    case = make_case(30, 3, 2, seed=7)
    whole = Problem.from_arrays(case.P, case.q, case.y, class_weights=True)
    items = np.array([3, 29, 3, 0])
    noise = case.rng.gumbel(size=(4, 3))
    for ask_before in (False, True):
        if ask_before:
            assert whole.item_losses.shape == (30, 3)
        part = whole.take(items)
        alone = Problem.from_arrays(
            case.P[items],
            case.q[items],
            case.y[items],
            class_weights=True,
            summaries=Summaries.from_arrays(case.P, case.q, case.y),
        )
        for ce in ("mean", "all", "random"):
            chosen = Objective(
                f1=1.0, ce_weight=1.0, div=1.0, reg=1.0, ce=ce, class_weights=True
            ).resolve()
            a = joint_loss(case.v, part, chosen, noise=noise)
            b = joint_loss(case.v, alone, chosen, noise=noise)
            assert a.total == pytest.approx(b.total, rel=1e-12)
            np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-12)
    assert ce_all(case.v[None], part)[0] == pytest.approx(ce_all(case.v[None], whole)[0])


def test_reordered_members_are_the_problem_of_reordered_predictions() -> None:
    case = make_case(12, 4, 3, seed=8)
    order = [2, 0, 3]
    a = Problem.from_arrays(case.P, case.q, case.y).select(order)
    b = Problem.from_arrays(case.P[:, order], case.q, case.y)
    v = case.rng.dirichlet(np.ones(3))
    chosen = Objective(f1=1.0, ce_weight=1.0, div=1.0, reg=1.0).resolve()
    np.testing.assert_allclose(
        joint_loss(v, a, chosen).gradient, joint_loss(v, b, chosen).gradient, rtol=1e-12
    )


def test_an_unknown_pool_is_refused() -> None:
    case = make_case(6, 3, 2)
    with raises_code("unknown-choice", "'linear', 'log'"):
        Problem.from_arrays(case.P, case.q, case.y, pool="median")


@pytest.mark.parametrize("pool", ["linear", "log"])
def test_a_problem_has_what_its_summaries_have(pool: str) -> None:
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(3), (700, 4))
    q = rng.dirichlet(np.ones(3), 700)
    data = P, q, q.argmax(axis=1)
    settings = Objective().resolve(pool)
    hits = Summaries.from_arrays(*data, distances=False, log_losses=False)
    whole = Problem.from_arrays(*data, pool=pool)
    lean = Problem.from_arrays(*data, pool=pool, summaries=hits)
    v = rng.dirichlet(np.ones(4))
    ours, theirs = (joint_loss(v, each, settings) for each in (lean, whole))
    assert float(ours.total) == pytest.approx(float(theirs.total), rel=1e-12)
    np.testing.assert_allclose(ours.gradient, theirs.gradient, rtol=1e-12)
    assert "div" not in ours.terms
    losses = Summaries.from_arrays(*data, distances=False)
    full = Summaries.from_arrays(*data)
    np.testing.assert_allclose(losses.log_losses, full.log_losses, rtol=1e-12)
    for part in ("class_counts", "soft_counts", "hits"):
        np.testing.assert_allclose(getattr(losses, part), getattr(full, part), rtol=1e-12)
    assert "div" not in losses.matrices
    assert "div" not in losses.select([2, 0]).matrices


@pytest.mark.parametrize(("sign", "mode"), [(-1, "preserve"), (1, "suppress"), (-1.0, "preserve")])
def test_the_sign_of_the_paper_names_what_to_do_with_diversity(sign: float, mode: str) -> None:
    assert Objective(div=1.0, diversity=sign) == Objective(div=1.0, diversity=mode)


@pytest.mark.parametrize("wrong", [0, 2, True, "both"])
def test_other_signs_are_refused(wrong: object) -> None:
    with raises_code("unknown-choice", "preserve", "suppress"):
        Objective(diversity=wrong)
