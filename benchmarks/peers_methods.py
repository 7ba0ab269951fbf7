"""The ways to find ensemble weights that ``peers.py`` compares; each takes the same arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from edokit.analysis.compare.method import make_method
from edokit.analysis.compare.methods.wel import evolve
from edokit.fitdata.data import FitData
from edokit.objective.loss import joint_loss
from edokit.objective.settings import GumbelSteps, Objective, ObjectiveSettings
from edokit.objective.summaries import Problem, Summaries, rank_members
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel

CE_ONLY = Objective(f1=0.0, reg=0.0).resolve()
DEFAULT = Objective().resolve()
CONFIGURATIONS = 50
LITERAL = 2  # configurations that the literal loop is timed on
_BLOCK = 2_000_000  # pooled numbers at a time in differential evolution


class Data(NamedTuple):
    """Predictions and labels of some items."""

    P: np.ndarray  # [N, K, C]
    q: np.ndarray  # [N, C]
    y: np.ndarray  # [N]


@dataclass(frozen=True)
class Peer:
    """One way to fit.

    ``fit(data)`` gives weights [S, K], with S > 1 for several settings of one search, or a function
    from P to probabilities [N, C].
    """

    name: str
    settings: ObjectiveSettings | None
    """The objective that it minimises; none if it has one of its own."""
    fit: Callable[[Any], Any]
    most: float = np.inf
    """Problems with more numbers (N·K·C) are left out."""
    divide: int = 1
    """The number of fits of a call."""
    needs: tuple[str, ...] = field(default=())
    """Packages beyond the project's own."""
    prepared: bool = False
    """Whether ``fit`` takes data that EDO has summed up already, instead of the arrays."""


def exact(settings: ObjectiveSettings) -> Callable[[Data], np.ndarray]:
    return lambda data: _weights(FitData.from_arrays(*data), settings, all_terms=False)


def solving(settings: ObjectiveSettings) -> Callable[[FitData], np.ndarray]:
    return lambda data: _weights(data, settings)


def _weights(data: FitData, settings: ObjectiveSettings, **options: bool) -> np.ndarray:
    return solve_exact(data, settings, **options).weights[None]


def configurations() -> list[GumbelSteps]:
    """Drawn from the paper's search space."""
    rng = np.random.default_rng(0)
    return [
        GumbelSteps(
            learning_rate=10 ** rng.uniform(-5, -3),
            temperature=rng.uniform(0.1, 1.0),
            temperature_decay=rng.uniform(0.01, 0.2),
        )
        for _ in range(CONFIGURATIONS)
    ]


def gumbel(data: Data) -> np.ndarray:
    settings = [CE_ONLY] * CONFIGURATIONS
    solutions = solve_gumbel(FitData.from_arrays(*data), settings, configurations())
    return np.array([solution.weights for solution in solutions])


def literal(data: Data) -> np.ndarray:
    """The first few of the same configurations, on the members that can be kept."""
    import torch
    from gumbel_literal import OwnNoise, fit_literally

    # With steps this small more threads only slow PyTorch down.
    torch.set_num_threads(1)
    ranks = rank_members(Summaries.from_arrays(*data))[: GumbelSteps().max_members]
    labels = np.eye(data.q.shape[1])[data.y]
    parts = (data.P[:, ranks], data.q, labels, np.ones(data.q.shape[1]))
    tensors = [torch.from_numpy(np.ascontiguousarray(part)).float() for part in parts]
    weights = np.zeros((LITERAL, data.P.shape[1]))
    for number, options in enumerate(configurations()[:LITERAL]):
        ranked_weights, _ = fit_literally(*tensors, CE_ONLY, options, OwnNoise(number))
        weights[number, ranks] = ranked_weights
    return weights


def evolution(data: Data) -> np.ndarray:
    """WEL's search (100 generations, 15 points per dimension) on the cross-entropy alone."""
    rows = np.ascontiguousarray(data.P.transpose(1, 0, 2)).reshape(data.P.shape[1], -1)
    targets = data.q.ravel()

    def loss(points: np.ndarray) -> np.ndarray:
        weights = simplex(points)
        step = max(1, _BLOCK // len(targets))
        blocks = range(0, len(weights), step)
        parts = [np.log(weights[k : k + step] @ rows + 1e-12) @ targets for k in blocks]
        return -np.concatenate(parts) / len(data.q)

    members = len(rows)
    best, _ = evolve(loss, np.zeros(members), np.ones(members), np.random.default_rng(0))
    return simplex(best[None])


def autogluon(data: Data) -> np.ndarray:
    """AutoGluon's greedy selection on soft labels, with as many rounds as EDO's."""
    from autogluon.core.metrics.softclass_metrics import soft_log_loss
    from autogluon.core.models.greedy_ensemble.ensemble_selection import EnsembleSelection

    selection = EnsembleSelection(
        ensemble_size=100,
        problem_type="softclass",
        metric=soft_log_loss,
        random_state=np.random.RandomState(0),
    )
    selection.fit([data.P[:, k] for k in range(data.P.shape[1])], data.q)
    return simplex(np.asarray(selection.weights_)[None])


def greedy(data: Data) -> np.ndarray:
    method: Any = make_method("greedy")
    return method.find_weights(*data)[None]


def slsqp(settings: ObjectiveSettings) -> Callable[[Data], np.ndarray]:
    """With the gradient written out, from uniform weights."""

    def fit(data: Data) -> np.ndarray:
        from scipy.optimize import minimize

        rows, targets, hits = _plain(data)
        members = len(rows)
        items = len(data.q)

        def loss(v: np.ndarray) -> tuple[float, np.ndarray]:
            pooled = v @ rows + 1e-12
            value = -targets @ np.log(pooled) / items
            value += settings.f1 * (1 - hits @ v) + settings.reg * (v @ v)
            slope = -(rows @ (targets / pooled)) / items
            return value, slope - settings.f1 * hits + 2 * settings.reg * v

        sum_to_one = {"type": "eq", "fun": lambda v: v.sum() - 1, "jac": lambda v: np.ones(members)}
        solution = minimize(
            loss,
            np.full(members, 1 / members),
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * members,
            constraints=[sum_to_one],
            options={"ftol": 1e-10, "maxiter": 1000},
        )
        return simplex(solution.x[None])

    return fit


def clarabel(settings: ObjectiveSettings) -> Callable[[Data], np.ndarray]:
    """As a model of cvxpy, with an exponential cone for each item and class that anybody chose."""

    def fit(data: Data) -> np.ndarray:
        import cvxpy as cp

        rows, targets, hits = _plain(data)
        is_chosen = targets > 0
        v = cp.Variable(len(rows), nonneg=True)
        loss = -(targets[is_chosen] / len(data.q)) @ cp.log(rows[:, is_chosen].T @ v)
        if settings.f1:
            loss += settings.f1 * (1 - hits @ v)
        if settings.reg:
            loss += settings.reg * cp.sum_squares(v)
        cp.Problem(cp.Minimize(loss), [cp.sum(v) == 1]).solve(solver=cp.CLARABEL)
        return simplex(v.value[None])

    return fit


def stacking(data: Data) -> Callable[[np.ndarray], np.ndarray]:
    """scikit-learn's final estimator on the members' probabilities, people's answers as weights."""
    from sklearn.linear_model import LogisticRegression

    classes = data.q.shape[1]
    items, labels = np.nonzero(data.q)
    model = LogisticRegression(max_iter=1000)
    model.fit(_features(data.P)[items], labels, sample_weight=data.q[items, labels])

    def predict(P: np.ndarray) -> np.ndarray:
        p = np.zeros((len(P), classes))
        p[:, model.classes_] = model.predict_proba(_features(P))
        return p

    return predict


def simplex(points: np.ndarray) -> np.ndarray:
    """Nonnegative, and summing to one."""
    clipped = np.maximum(points, 0) + 1e-300
    return clipped / clipped.sum(axis=1, keepdims=True)


def objective(weights: np.ndarray, problem: Problem, settings: ObjectiveSettings) -> np.ndarray:
    """The joint loss [S] of weights [S, K], one formula for everybody."""
    return np.array([float(joint_loss(v, problem, settings).total) for v in weights])


def _plain(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities [K, N·C], soft labels [N·C], mean probability on the hard labels [K]."""
    members = data.P.shape[1]
    rows = np.ascontiguousarray(data.P.transpose(1, 0, 2)).reshape(members, -1)
    return rows, data.q.ravel(), data.P[np.arange(len(data.y)), :, data.y].mean(axis=0)


def _features(P: np.ndarray) -> np.ndarray:
    """Probabilities as StackingClassifier has them: of two classes, a column for each member."""
    if P.shape[2] == 2:
        return P[:, :, 1]
    return P.reshape(len(P), -1)


PEERS = [
    Peer("EDO exact, CE only", CE_ONLY, exact(CE_ONLY)),
    Peer("… its solver alone, CE only", CE_ONLY, solving(CE_ONLY), prepared=True),
    Peer("scipy SLSQP, CE only", CE_ONLY, slsqp(CE_ONLY), 3e8),
    Peer("cvxpy (Clarabel), CE only", CE_ONLY, clarabel(CE_ONLY), 5e5, needs=("cvxpy", "clarabel")),
    Peer("AutoGluon's EnsembleSelection", CE_ONLY, autogluon, 5e6, needs=("autogluon.core",)),
    Peer("the same, EDO's method `greedy`", CE_ONLY, greedy, 5e6),
    Peer("WEL's differential evolution", CE_ONLY, evolution, 2e5),
    Peer("literal PyTorch loop, a configuration", CE_ONLY, literal, 5e5, LITERAL, ("torch",)),
    Peer("EDO gumbel, a configuration of 50", CE_ONLY, gumbel, 5e6, CONFIGURATIONS),
    Peer("EDO exact, default", DEFAULT, exact(DEFAULT)),
    Peer("… its solver alone, default", DEFAULT, solving(DEFAULT), prepared=True),
    Peer("scipy SLSQP, default", DEFAULT, slsqp(DEFAULT), 3e8),
    Peer("cvxpy (Clarabel), default", DEFAULT, clarabel(DEFAULT), 5e5, needs=("cvxpy", "clarabel")),
    Peer("stacking logistic regression", None, stacking, 5e7),
]
REFERENCE = {CE_ONLY: PEERS[0].name, DEFAULT: "EDO exact, default", None: PEERS[0].name}
