"""What makes a search this search and no other."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edokit._errors import InputError, one_of
from edokit.search.space import SOLVERS, SearchSpace

JUDGES = ("cross-fitted", "optimistic")
FOLDS = 5
"""Held-out parts, unless told."""
BETTER = {"gumbel": "optimistic", "exact": "cross-fitted"}
"""By which estimate trials compete, unless told: what ``benchmarks/selection.py`` found better."""
FORMAT = 1
"""Raised when a search begun by an older version could no longer be continued."""


@dataclass(frozen=True)
class Plan:
    """A search but for its data and its number of trials, which may grow."""

    space: SearchSpace = field(default_factory=SearchSpace)
    solver: str = "gumbel"
    population: int = 10
    """Trials per generation."""
    folds: int = FOLDS
    """Parts of the fit data that are held out in turn; 0 for none."""
    judge: str = "cross-fitted"
    """By which estimate trials compete: on held-out folds, or on the data they were fitted on."""
    seed: int = 0
    groups: bool = False
    """Whether the members of a group are averaged first."""
    order: str = "ce"
    """How members are ranked: ``ce`` or ``given``."""
    name: str = "edo"
    """Of the study in its storage."""

    def __post_init__(self) -> None:
        one_of("solver", self.solver, SOLVERS)
        one_of("judge", self.judge, JUDGES)
        one_of("order", self.order, ("ce", "given"))
        _whole("population", self.population, 2, "NSGA-II needs two parents; the usual is 10")
        _whole("seed", self.seed, 0, "use seed=0")
        _whole("folds", self.folds, 0, "choose 5, or 0 for none")
        if self.folds == 1:
            raise InputError(
                "folds must be 0 (none) or at least 2, but got 1", "choose 5, the usual number"
            )
        if self.judge == "cross-fitted" and not self.folds:
            raise InputError(
                "judge='cross-fitted' needs folds, but folds is 0", "choose judge='optimistic'"
            )
        object.__setattr__(self, "space", self.space.for_solver(self.solver))
        if not self.space.searched:
            raise InputError(
                "a search needs something to vary, but every parameter of the space is fixed",
                "give one of them a range or a list of choices, or use `edo fit`",
            )

    def shape(self, data: dict[str, Any]) -> dict[str, Any]:
        """What must be the same for a search to be continued, in plain values."""
        shape: dict[str, Any] = {
            "format": FORMAT,
            "space": self.space.to_dict(),
            "solver": self.solver,
            "population": self.population,
            "folds": self.folds,
            "judge": self.judge,
            "seed": self.seed,
            "groups": self.groups,
            "order": self.order,
            "data": data,
        }
        plain: dict[str, Any] = json.loads(json.dumps(shape))
        return plain


def check_trials(trials: Any) -> int:
    """The number of trials, if it is one."""
    _whole("trials", trials, 1, "the paper runs 50")
    return int(trials)


def _whole(name: str, value: Any, least: int, hint: str) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise InputError(
            f"{name} must be a whole number of at least {least}, but got {value!r}", hint
        )


def folds_and_judge(folds: int | None, judge: str | None, solver: str) -> tuple[int, str]:
    """What is not told: five folds, and the estimate that is better for this solver; folds that
    are asked for are there to judge by."""
    if folds is None:
        return FOLDS, judge or BETTER.get(solver, JUDGES[0])
    return folds, judge or ("cross-fitted" if folds else "optimistic")
