"""A term that CONTRIBUTING adds is known to solvers, certificate, explanations and shards."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import Objective
from edokit.cli.fit import LOSS_TERMS, FitFlags
from edokit.ensemble._fit import explain
from edokit.fitdata.data import FitData
from edokit.metrics import bs
from edokit.objective import loss, settings
from edokit.objective.pools import pool
from edokit.objective.settings import (
    CE,
    GumbelSteps,
    ObjectiveSettings,
    Pool,
    Shape,
    TermOption,
)
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel
from tests.errors import raises_code

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True, repr=False)
class WithBrier(ObjectiveSettings):
    added: float = field(default=0.0)


@pytest.fixture
def brier(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The objective with the term as CONTRIBUTING prints it."""
    code: dict[str, Any] = {"__name__": __name__}
    section = TEXT.split("## Adding a term to the objective")[1]
    exec(section.split("```python\n")[1].split("```")[0], code)
    monkeypatch.setitem(loss.SMOOTH_TERMS, "added", code["Brier"])
    exec(section.split("```python\n")[2].split("```")[0].replace("\nTerm", "\nterm = Term"), code)
    term = code["term"]
    resolved = Objective(f1=0.0, ce_weight=0.0, reg=0.0).resolve()
    monkeypatch.setitem(settings.TERMS, "added", term)
    return WithBrier(**vars(resolved), added=1.0)


@pytest.fixture
def data() -> FitData:
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 200)
    noisy = [np.clip(q + rng.normal(0, s, q.shape), 0.01, None) for s in (0.1, 0.2)]
    members = [*(p / p.sum(axis=1, keepdims=True) for p in noisy), np.eye(3)[q.argmin(axis=1)]]
    P = np.stack(members, axis=1)
    return FitData.from_arrays(P, q, q.argmax(axis=1))


def test_the_exact_solver_minimises_it_with_a_certificate(
    brier: ObjectiveSettings, data: FitData
) -> None:
    solution = solve_exact(data, brier)
    P, q, _ = data.sample
    assert solution.terms["added"] == pytest.approx(bs(pool(P, solution.weights), q))
    assert solution.certificate is not None
    assert solution.certificate.global_optimum
    assert solution.certificate.gap < 1e-8
    others = np.random.default_rng(1).dirichlet(np.ones(3), 200)
    assert min(bs(pool(P, v), q) for v in others) >= solution.terms["added"] - 1e-9


def test_gumbel_comes_close_to_it(brier: ObjectiveSettings, data: FitData) -> None:
    options = GumbelSteps(epochs=150, learning_rate=0.03, temperature=0.2)
    (learned,) = solve_gumbel(data, brier, options)
    exact = solve_exact(data, brier)
    assert exact.terms["added"] <= learned.terms["added"] < exact.terms["added"] * 1.2


def test_an_explanation_names_it(brier: ObjectiveSettings, data: FitData) -> None:
    worst = explain(data, solve_exact(data, brier), brier)[-1]
    assert (worst.term, worst.kind) == ("lambda_brier", "excluded_by_loss")


def test_it_joins_the_cross_entropy(brier: ObjectiveSettings, data: FitData) -> None:
    both = replace(brier, ce=CE.MEAN, ce_weight=1.0)
    solution = solve_exact(data, both)
    expected = solution.terms["ce"] + solution.terms["added"]
    assert solution.terms["total"] == pytest.approx(expected)


class Ripple(loss.PoolTerm):
    """Σ_c sin(9 φ_c), which bends either way."""

    def __init__(self, steps: Any = None) -> None:
        pass

    def value(self, pooled: Any, targets: Any) -> Any:
        return np.sin(9 * pooled).sum((-2, -1))

    def slope(self, pooled: Any, targets: Any) -> Any:
        return 9 * np.cos(9 * pooled)

    def hessian_factor(self, rows: Any, pooled: Any, targets: Any) -> Any:
        return 0 * rows


@pytest.fixture
def ripple(monkeypatch: pytest.MonkeyPatch, brier: ObjectiveSettings) -> Any:
    """How to declare the shape of this term, which takes the place of the other."""
    monkeypatch.setitem(loss.SMOOTH_TERMS, "added", Ripple)

    def declare(shape: Shape) -> None:
        term = TermOption("ripple", "lambda_ripple", "a ripple", shape)
        monkeypatch.setitem(settings.TERMS, "added", term)

    return declare


def test_a_term_that_bends_either_way_has_no_certificate(
    ripple: Any, brier: ObjectiveSettings, data: FitData
) -> None:
    ripple(Shape.NEITHER)
    solution = solve_exact(data, brier)
    certificate = solution.certificate
    assert certificate is not None
    assert not certificate.convex
    assert not certificate.global_optimum
    assert "because of a ripple" in str(certificate)
    corners = [Ripple().value(data.sample.P[:, k], None) / 200 for k in range(3)]
    assert solution.terms["added"] <= min(corners) + 1e-9
    assert solution.terms["total"] <= solve_exact(data, brier, max_members=1).terms["total"]


@pytest.mark.parametrize("shape", [Shape.CONVEX, Shape.CONCAVE, Shape.LINEAR])
def test_a_wrong_declaration_is_refused(
    ripple: Any, brier: ObjectiveSettings, data: FitData, shape: Shape
) -> None:
    ripple(shape)
    with raises_code("wrong-declaration", "'ripple'", str(shape), "'neither'"):
        solve_exact(data, brier)


def test_a_slope_that_is_not_the_derivative_is_refused(
    monkeypatch: pytest.MonkeyPatch, brier: ObjectiveSettings, data: FitData
) -> None:
    right = loss.SMOOTH_TERMS["added"]
    for factor in (0.75, 1.25, -1.0):

        class Wrong(right):  # type: ignore[valid-type, misc]
            factor_of_slope = factor

            def slope(self, pooled: Any, targets: Any) -> Any:
                return self.factor_of_slope * super().slope(pooled, targets)

        monkeypatch.setitem(loss.SMOOTH_TERMS, "added", Wrong)
        with raises_code("wrong-declaration", "'brier'", "Wrong"):
            solve_exact(data, brier)


def test_a_log_pool_refuses_it(brier: ObjectiveSettings, data: FitData) -> None:
    with raises_code("conflicting-options", "lambda_brier", "linear"):
        solve_exact(data, replace(brier, pool=Pool.LOG))


def test_a_matrix_that_is_declared_wrongly_is_refused(
    monkeypatch: pytest.MonkeyPatch, data: FitData
) -> None:
    term = settings.TERMS["div"]._replace(shape=Shape.CONVEX)
    monkeypatch.setitem(settings.TERMS, "div", term)
    with raises_code("wrong-declaration", "'div'", "concave"):
        solve_exact(data, Objective(div=0.5).resolve())


def test_a_certificate_of_suppress_needs_a_penalty_that_outweighs_it(data: FitData) -> None:
    bent = Objective(div=0.5, reg=0.0, diversity="suppress").resolve()
    weak = solve_exact(data, bent).certificate
    strong = solve_exact(data, replace(bent, reg=5.0)).certificate
    assert weak is not None
    assert strong is not None
    assert (weak.convex, strong.convex, strong.global_optimum) == (False, True, True)
    assert "the disagreement between members" in str(weak)


def test_every_option_of_the_objective_has_a_flag_and_every_term_a_row() -> None:
    assert {option.name for option in fields(Objective)} == set(settings.FLAT_NAMES)
    assert set(settings.FLAT_NAMES.values()) <= {flag.name for flag in fields(FitFlags)}
    assert {term.name for term in settings.TERMS.values()} | {"total"} == set(LOSS_TERMS)


def test_every_term_declares_a_shape() -> None:
    for option in settings.TERMS.values():
        assert isinstance(option.shape, Shape)
    assert Shape.CONVEX.times(-1) is Shape.CONCAVE
    assert Shape.NEITHER.times(-1) is Shape.NEITHER
