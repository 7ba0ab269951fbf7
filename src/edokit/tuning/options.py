"""The options of a search."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from edokit._errors import InputError, check_number, check_seed, one_of, option
from edokit.annotations import Ties
from edokit.objective.settings import ORDERS
from edokit.tuning.space import SearchSpace
from edokit.tuning.trials import check_rule

JUDGES = ("cross-fitted", "optimistic")
FOLDS = 5
FORMAT = 1  # raised when a search begun by an older version could no longer be continued


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
        Parts of the data that are held out in turn to estimate a trial; 0 for none, 5 by default.
    judge : {"cross-fitted", "optimistic"}, optional
        The estimate by which trials compete: on held-out folds, or in-sample. By default on
        held-out folds; in-sample without `folds`, and for gumbel in the paper's space.
    choose : {"lowest-ce", "lowest-md", "lowest-rps", "lowest-w1", "f1-within-one-se", "knee"}, \
optional
        How a trial is chosen from the front, see `ParetoFront.choose`. By default ``lowest-ce``,
        on an ordinal scale ``lowest-rps``.
    groups : bool, default=False
        Average the members of each group first.
    order : {"ce", "given"}, default="ce"
        How members are ranked: by their own CE, or as they are given.
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
    >>> from edokit.tuning import SearchOptions
    >>> SearchOptions(trials=20, solver="exact").population
    10
    """

    trials: int = 50
    space: SearchSpace | Literal["thorough", "paper", "ordinal"] = "thorough"
    solver: Literal["gumbel", "exact"] = "gumbel"
    population: int = 10
    folds: int | None = None
    judge: Literal["cross-fitted", "optimistic"] | None = None
    choose: str | None = None
    groups: bool = False
    order: Literal["ce", "given"] = "ce"
    ties: Ties = "first"
    random_state: int = 0
    storage: str | Path | None = None
    study: str = "edo"
    worker: bool = False

    def __post_init__(self) -> None:
        self.plan()

    def plan(self) -> Plan:
        """The same with everything filled in, checked.

        There are five folds, and trials compete by the held-out estimate, but in-sample where
        gumbel takes the paper's steps: these learn too little to overfit
        (``benchmarks/selection.py``). Given folds are there to compete by.
        """
        values = {part.name: getattr(self, part.name) for part in fields(SearchOptions)}
        space = SearchSpace.named(self.space) if isinstance(self.space, str) else self.space
        in_sample = self.folds == 0
        if self.folds is None:
            in_sample = self.solver == "gumbel" and space.takes_paper_steps
        values["space"] = space
        values["folds"] = FOLDS if self.folds is None else self.folds
        values["judge"] = self.judge or ("optimistic" if in_sample else "cross-fitted")
        return Plan(**values)


@dataclass(frozen=True)
class Plan(SearchOptions):
    """The options of a search with everything filled in; all but the trials stay the same."""

    space: SearchSpace = field(default_factory=SearchSpace)
    folds: int = FOLDS
    judge: Literal["cross-fitted", "optimistic"] = "cross-fitted"

    def __post_init__(self) -> None:
        check_rule(self.choose)
        check_number("trials", self.trials, 1, whole=True, hint="the paper runs 50")
        check_seed(self.random_state)
        one_of("judge", self.judge, JUDGES)
        one_of("order", self.order, ORDERS)
        two = "NSGA-II needs two parents; the usual is 10"
        check_number("population", self.population, 2, whole=True, hint=two)
        check_number("folds", self.folds, 0, whole=True, hint="choose 5, or 0 for none")
        if self.folds == 1:
            raise InputError(
                f"one fold holds out nothing: {option('folds')} is 0 (none) or at least 2",
                "choose 5, the usual number",
            )
        if self.judge == "cross-fitted" and not self.folds:
            raise InputError(
                f"{option('judge', 'cross-fitted')} needs folds, but got {option('folds', 0)}",
                f"give {option('judge', 'optimistic')}, or some folds",
            )
        # Databases keep no other names.
        if not re.fullmatch(r"(?!\s*$)[^\0\ud800-\udfff]{1,512}", self.study):
            raise InputError(
                f"{option('study', self.study[:40])} is no name of a study: it has 1 to 512"
                " characters, all of them Unicode text and none of them NUL",
                "choose another name",
            )
        object.__setattr__(self, "space", self.space.for_solver(self.solver))
        if not self.space.searched:
            raise InputError(
                "there is nothing to search: every parameter of the space is fixed",
                "give one of them a range or a list of choices, or use `edo fit`",
            )

    def shape(self, data: dict[str, Any]) -> dict[str, Any]:
        """What must be the same for a search to be continued, in plain values."""
        names = ("solver", "population", "folds", "judge", "groups", "order")
        return {
            "format": FORMAT,
            **{name: getattr(self, name) for name in names},
            "space": json.loads(json.dumps(self.space.to_dict())),
            "seed": self.random_state,
            "data": data,
        }
