"""The paper's objective on ten members a seed: fixed settings (ablations) and NSGA-II searches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edokit._errors import EDOWarning
from edokit._types import Floats
from edokit.fitdata.data import FitData
from edokit.metrics import bs_items
from edokit.objective.pools import pool
from edokit.objective.settings import (
    CE,
    Diversity,
    GumbelSteps,
    ObjectiveSettings,
    preset_objective,
)
from edokit.solvers import Solution
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel
from reproduction.lewidi2023.study import Missing, Pool, Study
from reproduction.outcomes import Outcome, Predicted, outcome

Solve = Callable[[Pool, Sequence[ObjectiveSettings], int], list[Solution]]

VARIANTS = ("random", "mean", "all")
SIGNS = ("preserve", "suppress")
OBJECTIVES = ("f1", "ce", "f1+ce")
PAPERS_POOL = "random-select"


@dataclass(frozen=True)
class Configuration:
    """One line of an ablation."""

    variant: str
    """Of the cross-entropy: random, mean or all."""
    objective: str
    """``f1``, ``ce`` or ``f1+ce``."""
    diversity: str
    """``preserve`` (s = −1) or ``suppress`` (s = +1)."""
    with_diversity: bool = True

    def settings(self) -> ObjectiveSettings:
        """The paper's fixed settings with these choices."""
        terms = self.objective.split("+")
        fixed = preset_objective("paper-fixed").resolve()
        return replace(
            fixed,
            ce=CE(self.variant),
            f1=fixed.f1 if "f1" in terms else 0.0,
            ce_weight=fixed.ce_weight if "ce" in terms else 0.0,
            div=fixed.div if self.with_diversity else 0.0,
            diversity=Diversity(self.diversity),
        )


def variant_configurations() -> list[Configuration]:
    """Cross-entropy variants under both signs."""
    return [Configuration(v, "f1+ce", s) for v in VARIANTS for s in SIGNS]


def ablation_configurations() -> list[Configuration]:
    """Base objectives with and without diversity, CE over all members."""
    return [
        Configuration("all", objective, sign, with_diversity)
        for objective in OBJECTIVES
        for sign in SIGNS
        for with_diversity in (False, True)
    ]


def fixed_outcomes(
    study: Study, dataset: str, solver: str = "gumbel"
) -> dict[Configuration, Outcome] | Missing:
    """What every configuration of the ablations gives, ten members and a solver's seed each."""
    members = study.pool(dataset, PAPERS_POOL)
    if isinstance(members, Missing):
        return members
    configurations = list(dict.fromkeys([*variant_configurations(), *ablation_configurations()]))
    solve: Solve = by_gumbel if solver == "gumbel" else by_exact
    return study.once(
        (f"{solver} ablations", dataset),
        lambda: solved(
            members, configurations, [c.settings() for c in configurations], solve, study.seeds
        ),
    )


def solved(
    members: Pool,
    names: Sequence[Any],
    settings: Sequence[ObjectiveSettings],
    solve: Solve,
    seeds: int,
) -> dict[Any, Outcome]:
    """The outcome of each configuration over seeds."""
    predicted: dict[Any, list[tuple[Predicted, Predicted]]] = {name: [] for name in names}
    sizes: dict[Any, list[int]] = {name: [] for name in names}
    for seed in range(seeds):
        sampled = members.sampled(seed)
        for name, solution in zip(names, solve(sampled, settings, seed), strict=True):
            predicted[name].append(pooled(sampled, solution.weights))
            sizes[name].append(solution.size)
    return {
        name: outcome(predicted[name], members.fit_labels, members.test_labels, sizes[name])
        for name in names
    }


def pooled(members: Pool, weights: Floats) -> tuple[Predicted, Predicted]:
    """Linear pools of the fit and the test items."""
    fit, test = (
        np.asarray(part.probabilities, dtype=np.float64) for part in (members.fit, members.test)
    )
    return Predicted(pool(fit, weights)), Predicted(pool(test, weights))


def by_gumbel(members: Pool, settings: Sequence[ObjectiveSettings], seed: int) -> list[Solution]:
    """As the paper does it: ten epochs, small steps."""
    return solve_gumbel(_data(members), settings, GumbelSteps(), random_state=seed)


def by_exact(members: Pool, settings: Sequence[ObjectiveSettings], seed: int) -> list[Solution]:
    """The optimum of the same objectives; a drawn member is taken in expectation."""
    data = _data(members)
    max_members = GumbelSteps().max_members
    return [solve_exact(data, setting, max_members=max_members) for setting in settings]


def _data(members: Pool) -> FitData:
    labels = members.fit_labels
    return FitData.from_arrays(members.fit.probabilities, labels.soft, labels.hard)


TRIALS = 50
POPULATION = 10
VARIED = (
    "lambda_f1",
    "lambda_ce",
    "lambda_div",
    "lambda_reg",
    "learning_rate",
    "temperature",
    "temperature_decay",
)
"""What a trial draws, once variant and sign are given."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One trial, evaluated on the items that it was fitted on, as in the paper."""

    seed: int
    variant: str
    diversity: str
    settings: Mapping[str, float]
    f1: float
    ce: float
    md: float
    bs: float
    size: int
    weights: Floats


def run_search(
    members: Pool, seed: int, variant: str, diversity: str, trials: int = TRIALS
) -> list[Trial]:
    """All trials of one search on the members of a seed."""
    from edokit.analysis.search import search
    from edokit.analysis.search.space import SearchSpace

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        result = search(
            members.fit,
            members.fit_labels.annotations,
            trials=trials,
            space=SearchSpace.paper(diversity=diversity, ce=variant),
            population=POPULATION,
            folds=0,
            random_state=seed,
        )
    P = np.asarray(members.fit.probabilities, dtype=np.float64)
    soft = members.fit_labels.soft
    return [
        Trial(
            seed,
            variant,
            diversity,
            {name: float(trial.searched[name]) for name in VARIED},
            trial.f1,
            trial.ce,
            trial.md,
            float(bs_items(pool(P, np.array(trial.weights)), soft).mean()),
            trial.size,
            np.array(trial.weights),
        )
        for trial in result.trials
    ]


def searched(study: Study, dataset: str, pool_name: str) -> list[Trial] | Missing:
    """The trials of every variant, sign and seed."""
    members = study.pool(dataset, pool_name)
    if isinstance(members, Missing):
        return members

    def find() -> list[Trial]:
        searches = [
            (members.sampled(seed), seed, variant, sign, study.trials)
            for seed in range(study.seeds)
            for variant in VARIANTS
            for sign in SIGNS
        ]
        return [trial for trials in study.each(run_search, searches) for trial in trials]

    return study.once(("searching", dataset, pool_name), find)


def chosen(trials: list[Trial], seed: int, **wanted: Any) -> Trial:
    """The trial of this seed with the lowest dev CE: the paper's choice from the front."""
    seed_trials = [t for t in trials if t.seed == seed]
    seed_trials = [
        t for t in seed_trials if all(getattr(t, name) == value for name, value in wanted.items())
    ]
    return min(seed_trials, key=lambda t: (t.ce, -t.f1, t.md))


def searched_outcome(
    study: Study, dataset: str, pool_name: str, **wanted: Any
) -> Outcome | Missing:
    """The chosen trial of each seed, on test."""
    trials = searched(study, dataset, pool_name)
    members = study.pool(dataset, pool_name)
    if isinstance(trials, Missing):
        return trials
    assert isinstance(members, Pool)
    best = [chosen(trials, seed, **wanted) for seed in range(study.seeds)]
    return outcome(
        [pooled(members.sampled(trial.seed), trial.weights) for trial in best],
        members.fit_labels,
        members.test_labels,
        [trial.size for trial in best],
    )
