"""A term that CONTRIBUTING adds is known to solvers, certificate, explanations and shards."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit.ensemble._fit import explain
from edokit.fitdata.data import FitData
from edokit.metrics import bs
from edokit.objective import loss, settings
from edokit.objective.pools import pool
from edokit.objective.settings import CE, GumbelSteps, Objective, ObjectiveSettings
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True, repr=False)
class WithBrier(ObjectiveSettings):
    brier: float = field(default=0.0)


@pytest.fixture
def brier(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The objective with the term as CONTRIBUTING prints it."""
    code: dict[str, Any] = {"__name__": __name__}
    section = TEXT.split("## Adding a term to the objective")[1]
    exec(section.split("```python\n")[1].split("```")[0], code)
    monkeypatch.setitem(loss.SMOOTH_TERMS, "brier", code["Brier"])
    term = settings.Term("brier", "lambda_brier", "the Brier score", False)
    resolved = Objective(f1=0.0, ce_weight=0.0, reg=0.0).resolve()
    monkeypatch.setitem(settings.TERMS, "brier", term)
    return WithBrier(**vars(resolved), brier=1.0)


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
    assert solution.terms["brier"] == pytest.approx(bs(pool(P, solution.weights), q))
    assert solution.certificate is not None
    assert solution.certificate.global_optimum
    assert solution.certificate.gap < 1e-8
    others = np.random.default_rng(1).dirichlet(np.ones(3), 200)
    assert min(bs(pool(P, v), q) for v in others) >= solution.terms["brier"] - 1e-9


def test_gumbel_comes_close_to_it(brier: ObjectiveSettings, data: FitData) -> None:
    options = GumbelSteps(epochs=150, learning_rate=0.03, temperature=0.2)
    (learned,) = solve_gumbel(data, brier, options)
    exact = solve_exact(data, brier)
    assert exact.terms["brier"] <= learned.terms["brier"] < exact.terms["brier"] * 1.2


def test_an_explanation_names_it(brier: ObjectiveSettings, data: FitData) -> None:
    worst = explain(data, solve_exact(data, brier), brier)[-1]
    assert (worst.term, worst.kind) == ("lambda_brier", "excluded_by_loss")


def test_it_joins_the_cross_entropy(brier: ObjectiveSettings, data: FitData) -> None:
    both = replace(brier, ce=CE.MEAN, ce_weight=1.0)
    solution = solve_exact(data, both)
    expected = solution.terms["ce"] + solution.terms["brier"]
    assert solution.terms["total"] == pytest.approx(expected)
