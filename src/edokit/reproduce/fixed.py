"""The paper's fixed settings on ten members a seed: every configuration of its ablations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edokit._types import Floats
from edokit.objective import CE, Problem, Settings, Summaries, pool, preset, rank_members
from edokit.reproduce.effects import Answers, Outcome, outcome
from edokit.reproduce.study import Missing, Pool, Study
from edokit.solvers import GumbelSettings, Solution, solve_exact, solve_gumbel

Solve = Callable[[Pool, Sequence[Settings], int], list[Solution]]

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

    def settings(self) -> Settings:
        """The paper's fixed settings with these choices."""
        terms = self.objective.split("+")
        fixed = preset("paper-fixed")
        return replace(
            fixed,
            ce=CE(self.variant),
            lambda_f1=fixed.lambda_f1 if "f1" in terms else 0.0,
            lambda_ce=fixed.lambda_ce if "ce" in terms else 0.0,
            lambda_div=fixed.lambda_div if self.with_diversity else 0.0,
            diversity=self.diversity,  # type: ignore[arg-type]  # a mode's name will do
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
    wanted = list(dict.fromkeys([*variant_configurations(), *ablation_configurations()]))
    solve: Solve = by_gumbel if solver == "gumbel" else by_exact
    return study.once(
        (f"{solver} ablations", dataset),
        lambda: solved(members, wanted, [c.settings() for c in wanted], solve, study.seeds),
    )


def solved(
    members: Pool,
    names: Sequence[Any],
    settings: Sequence[Settings],
    solve: Solve,
    seeds: int,
) -> dict[Any, Outcome]:
    """The outcome of each configuration over seeds."""
    answers: dict[Any, list[tuple[Answers, Answers]]] = {name: [] for name in names}
    sizes: dict[Any, list[int]] = {name: [] for name in names}
    for seed in range(seeds):
        drawn = members.drawn(seed)
        for name, solution in zip(names, solve(drawn, settings, seed), strict=True):
            answers[name].append(pooled(drawn, solution.weights))
            sizes[name].append(solution.size)
    return {
        name: outcome(answers[name], members.fit_labels, members.test_labels, sizes[name])
        for name in names
    }


def pooled(members: Pool, weights: Floats) -> tuple[Answers, Answers]:
    """Linear pools of the fit and the test items."""
    fit, test = (
        np.asarray(part.probabilities, dtype=np.float64) for part in (members.fit, members.test)
    )
    return Answers(pool(fit, weights)), Answers(pool(test, weights))


def by_gumbel(members: Pool, settings: Sequence[Settings], seed: int) -> list[Solution]:
    """As the paper does it: ten epochs, small steps."""
    labels = members.fit_labels
    return solve_gumbel(
        members.fit.probabilities, labels.soft, labels.hard, settings, GumbelSettings(), seeds=seed
    )


def by_exact(members: Pool, settings: Sequence[Settings], seed: int) -> list[Solution]:
    """The optimum of the same objectives; a drawn member is taken in expectation."""
    labels = members.fit_labels
    P = np.asarray(members.fit.probabilities, dtype=np.float64)
    sums = Summaries.from_arrays(P, labels.soft, labels.hard)
    order = rank_members(sums)
    problem = Problem.from_arrays(
        P, labels.soft, labels.hard, class_weights=True, pool="linear", summaries=sums
    )
    return [
        solve_exact(problem, one, order=order, max_members=GumbelSettings().max_members)
        for one in settings
    ]
