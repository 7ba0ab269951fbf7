"""The options of a search, and the plan that they make."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from edokit._errors import InputError, check_number, check_seed, option
from edokit.analysis.search.space import SearchSpace, Value
from edokit.annotations.core import Ties
from edokit.config import FitConfig

FOLDS = 5
FORMAT = 2  # raised when a search begun by an older version could no longer be continued


@dataclass(frozen=True)
class SearchOptions:
    """What a search tries, how its trials compete, and where they are stored.

    Parameters
    ----------
    trials : int, default=50
        Trials in all, those of an earlier run included.
    space : SearchSpace or {"thorough", "paper", "ordinal"}, default="thorough"
        What to vary. ``thorough``: the objective, with as many steps as weights need to settle.
        ``paper``: also the step size, in ten epochs, which move the weights hardly at all.
        ``ordinal``: as ``thorough``, and the terms of ordered classes.
    solver : {"gumbel", "exact"}, default="gumbel"
        How the weights of a trial are found.
    population : int, default=10
        Trials per generation. All trials of a generation are fitted in one batch.
    folds : int, optional
        Parts of the data that are held out in turn to estimate trials, which compete by this
        estimate; with 0 they compete in-sample. By default 5, but gumbel trials in the paper's
        space compete in-sample.
    groups : bool, default=False
        Average the members of each group first.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.
    random_state : int, default=0
        Seed of the search, the solver, the folds and random ties.
    storage : str or Path, optional
        Where trials are stored and found again: a file, or ``postgresql://USER@HOST/DATABASE``. By
        default ``search/journal.log`` in the folder of the results; without one, in memory.
    study : str, default="edo"
        Name of the search in its storage.
    worker : bool, default=False
        Share the search on PostgreSQL with other processes.

    Raises
    ------
    InputError
        If an option is invalid.

    Examples
    --------
    >>> from edokit import SearchOptions
    >>> SearchOptions(trials=20, solver="exact").population
    10
    """

    trials: int = 50
    space: SearchSpace | Literal["thorough", "paper", "ordinal"] = "thorough"
    solver: Literal["gumbel", "exact"] = "gumbel"
    population: int = 10
    folds: int | None = None
    groups: bool = False
    ties: Ties = "first"
    random_state: int = 0
    storage: str | Path | None = None
    study: str = "edo"
    worker: bool = False

    def __post_init__(self) -> None:
        self.plan()

    def plan(self) -> SearchPlan:
        """Return the options with every default resolved, checked.

        By default there are five folds, and trials compete by the held-out estimate. Where gumbel
        takes the paper's steps, they compete in-sample: these steps learn too little to overfit
        (``benchmarks/selection.py``). With a given number of folds, trials compete by these folds,
        or in-sample if it is 0.
        """
        if isinstance(self.space, str):
            space = SearchSpace.named(self.space)
        else:
            space = self.space
        if self.folds is None:
            folds = FOLDS
            in_sample = self.solver == "gumbel" and space.takes_paper_steps
        else:
            folds = self.folds
            in_sample = self.folds == 0
        return SearchPlan(
            trials=self.trials,
            space=space,
            solver=self.solver,
            population=self.population,
            folds=folds,
            groups=self.groups,
            ties=self.ties,
            random_state=self.random_state,
            storage=self.storage,
            study=self.study,
            worker=self.worker,
            judge="optimistic" if in_sample else "cross-fitted",
        )


@dataclass(frozen=True)
class SearchPlan(SearchOptions):
    """The options of a search with every default resolved.

    When a search is continued, only the number of trials may change.
    """

    space: SearchSpace = field(default_factory=SearchSpace)
    folds: int = FOLDS
    judge: Literal["cross-fitted", "optimistic"] = "cross-fitted"
    """The estimate by which trials compete: on held-out folds, or in-sample."""

    def plan(self) -> SearchPlan:
        """The plan itself."""
        return self

    def __post_init__(self) -> None:
        check_number("trials", self.trials, 1, whole=True, hint="the paper runs 50")
        check_seed(self.random_state)
        population_hint = "NSGA-II needs two parents; the usual is 10"
        check_number("population", self.population, 2, whole=True, hint=population_hint)
        check_number("folds", self.folds, 0, whole=True, hint="choose 5, or 0 for none")
        if self.folds == 1:
            raise InputError(
                f"one fold holds out nothing: {option('folds')} is 0 (none) or at least 2",
                "choose 5, the usual number",
                code="invalid-number",
            )
        # Databases keep no other names.
        if not re.fullmatch(r"(?!\s*$)[^\0\ud800-\udfff]{1,512}", self.study):
            raise InputError(
                f"{option('study', self.study[:40])} is not a valid name of a study: it must have 1"
                " to 512 characters of Unicode text, none of them NUL",
                "choose another name",
                code="invalid-name",
            )
        object.__setattr__(self, "space", self.space.for_solver(self.solver))
        if not self.space.searched:
            raise InputError(
                "there is nothing to search: every parameter of the space is fixed",
                "give one of them a range or a list of choices, or use `edo fit`",
                code="empty-search-space",
            )

    def fit_config(self, chosen: Mapping[str, Value], items: int) -> FitConfig:
        """Return the configuration of a trial with these values where the space varies."""
        return self.space.fit_config(
            chosen,
            items,
            solver=self.solver,
            groups=self.groups,
            ties=self.ties,
            seed=self.random_state,
        )

    def identity(self, data: dict[str, Any]) -> dict[str, Any]:
        """What must be the same when a search is continued, in plain values."""
        return {
            "format": FORMAT,
            "solver": self.solver,
            "population": self.population,
            "folds": self.folds,
            "judge": self.judge,
            "groups": self.groups,
            "space": json.loads(json.dumps(self.space.to_dict())),
            "seed": self.random_state,
            "data": data,
        }
