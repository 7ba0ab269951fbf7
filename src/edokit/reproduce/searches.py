"""The paper's tuned configuration: 50 trials of NSGA-II for each variant and sign, seed by seed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from edokit._errors import EDOWarning
from edokit._types import Floats
from edokit.metrics import bs_items
from edokit.objective import pool
from edokit.reproduce.effects import Outcome, outcome
from edokit.reproduce.fixed import SIGNS, VARIANTS, pooled
from edokit.reproduce.study import Missing, Pool, Study

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
    """One trial, judged on the items that it was fitted on, as in the paper."""

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
    from edokit.search import SearchSpace, search

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        found = search(
            members.fit,
            members.fit_labels.people,
            trials=trials,
            space=SearchSpace(diversity=diversity, ce=variant),
            population=POPULATION,
            folds=0,
            seed=seed,
        )
    P = np.asarray(members.fit.probabilities, dtype=np.float64)
    soft = members.fit_labels.soft
    return [
        Trial(
            seed,
            variant,
            diversity,
            {name: float(one.searched[name]) for name in VARIED},
            one.f1,
            one.ce,
            one.md,
            float(bs_items(pool(P, np.array(one.weights)), soft).mean()),
            one.size,
            np.array(one.weights),
        )
        for one in found.trials
        if one.state == "complete"
    ]


def searched(study: Study, dataset: str, pool_name: str) -> list[Trial] | Missing:
    """The trials of every variant, sign and seed."""
    members = study.pool(dataset, pool_name)
    if isinstance(members, Missing):
        return members

    def find() -> list[Trial]:
        wanted = [
            (members.drawn(seed), seed, variant, sign, study.trials)
            for seed in range(study.seeds)
            for variant in VARIANTS
            for sign in SIGNS
        ]
        return [trial for found in study.each(run_search, wanted) for trial in found]

    return study.once(("searching", dataset, pool_name), find)


def chosen(trials: list[Trial], seed: int, **wanted: Any) -> Trial:
    """The trial of this seed with the lowest dev CE: the paper's choice from the front."""
    own = [t for t in trials if t.seed == seed]
    own = [t for t in own if all(getattr(t, name) == value for name, value in wanted.items())]
    return min(own, key=lambda t: (t.ce, -t.f1, t.md))


def searched_outcome(
    study: Study, dataset: str, pool_name: str, **wanted: Any
) -> Outcome | Missing:
    """The chosen trial of each seed, on test."""
    trials, members = searched(study, dataset, pool_name), study.pool(dataset, pool_name)
    if isinstance(trials, Missing):
        return trials
    assert isinstance(members, Pool)
    best = [chosen(trials, seed, **wanted) for seed in range(study.seeds)]
    return outcome(
        [pooled(members.drawn(one.seed), one.weights) for one in best],
        members.fit_labels,
        members.test_labels,
        [one.size for one in best],
    )
