"""The paper's objective on ten members a seed: fixed settings (ablations) and NSGA-II searches."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

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
SIGN_NAMES = {"preserve": "s=−1", "suppress": "s=+1"}
"""The signs in the paper's notation."""
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
        settings = replace(
            preset_objective("paper-fixed").resolve(),
            ce=CE(self.variant),
            diversity=Diversity(self.diversity),
        )
        if "f1" not in terms:
            settings = replace(settings, f1=0.0)
        if "ce" not in terms:
            settings = replace(settings, ce_weight=0.0)
        if not self.with_diversity:
            settings = replace(settings, div=0.0)
        return settings


def variant_configurations() -> list[Configuration]:
    """Cross-entropy variants under both signs."""
    return [Configuration(variant, "f1+ce", sign) for variant, sign in product(VARIANTS, SIGNS)]


def ablation_configurations() -> list[Configuration]:
    """Base objectives with and without diversity, CE over all members."""
    return [
        Configuration("all", objective, sign, with_diversity)
        for objective, sign, with_diversity in product(OBJECTIVES, SIGNS, (False, True))
    ]


def fixed_outcomes(
    study: Study, dataset: str, solver: str = "gumbel"
) -> dict[Configuration, Outcome] | Missing:
    """The outcome of each configuration of the ablations; a seed has its members and solver."""
    members = study.pool(dataset, PAPERS_POOL)
    if isinstance(members, Missing):
        return members
    configurations = list(dict.fromkeys([*variant_configurations(), *ablation_configurations()]))
    solve: Solve = by_exact
    if solver == "gumbel":
        solve = by_gumbel
    return study.once(
        (f"{solver} ablations", dataset),
        lambda: solved(members, configurations, solve, study.seeds),
    )


def solved(
    members: Pool, configurations: Sequence[Configuration], solve: Solve, seeds: int
) -> dict[Configuration, Outcome]:
    """The outcome of each configuration over seeds."""
    settings = [configuration.settings() for configuration in configurations]
    predicted: dict[Configuration, list[tuple[Predicted, Predicted]]] = defaultdict(list)
    sizes: dict[Configuration, list[int]] = defaultdict(list)
    for seed in range(seeds):
        sampled = members.sampled(seed)
        solutions = solve(sampled, settings, seed)
        for configuration, solution in zip(configurations, solutions, strict=True):
            predicted[configuration].append(pooled(sampled, solution.weights))
            sizes[configuration].append(solution.size)
    outcomes = {}
    for configuration in configurations:
        outcomes[configuration] = outcome(
            predicted[configuration],
            members.fit_labels,
            members.test_labels,
            sizes[configuration],
        )
    return outcomes


def pooled(members: Pool, weights: Floats) -> tuple[Predicted, Predicted]:
    """Linear pools of the fit and the test items."""
    fit = np.asarray(members.fit.probabilities, dtype=np.float64)
    test = np.asarray(members.test.probabilities, dtype=np.float64)
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
    evaluated = []
    for trial in result.trials:
        weights = np.array(trial.weights)
        evaluated.append(
            Trial(
                seed,
                variant,
                diversity,
                {name: float(trial.searched[name]) for name in VARIED},
                trial.f1,
                trial.ce,
                trial.md,
                float(bs_items(pool(P, weights), soft).mean()),
                trial.size,
                weights,
            )
        )
    return evaluated


def searched(study: Study, dataset: str, pool_name: str) -> list[Trial] | Missing:
    """The trials of every variant, sign and seed."""
    members = study.pool(dataset, pool_name)
    if isinstance(members, Missing):
        return members

    def find() -> list[Trial]:
        searches = [
            (members.sampled(seed), seed, variant, sign, study.trials)
            for seed, variant, sign in product(range(study.seeds), VARIANTS, SIGNS)
        ]
        return list(chain.from_iterable(study.each(run_search, searches)))

    return study.once(("searching", dataset, pool_name), find)


def chosen(trials: list[Trial], seed: int) -> Trial:
    """The trial of this seed with the lowest dev CE: the paper's choice from the front."""
    seed_trials = [trial for trial in trials if trial.seed == seed]
    return min(seed_trials, key=lambda trial: (trial.ce, -trial.f1, trial.md))


def searched_outcome(study: Study, dataset: str, pool_name: str) -> Outcome | Missing:
    """The chosen trial of each seed, on test."""
    trials = searched(study, dataset, pool_name)
    members = study.pool(dataset, pool_name)
    if isinstance(trials, Missing):
        return trials
    assert isinstance(members, Pool)
    best = [chosen(trials, seed) for seed in range(study.seeds)]
    return outcome(
        [pooled(members.sampled(trial.seed), trial.weights) for trial in best],
        members.fit_labels,
        members.test_labels,
        [trial.size for trial in best],
    )
