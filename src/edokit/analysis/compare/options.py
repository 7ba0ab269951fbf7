"""The options of a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from edokit._errors import check_number, check_seed, one_of
from edokit.annotations.core import Ties

Correction: TypeAlias = Literal["holm", "none"]
"""How p-values are corrected for the number of tests."""


@dataclass(frozen=True)
class CompareOptions:
    """Methods to compare, and how they are evaluated.

    Parameters
    ----------
    methods : iterable of str or "all", default=None
        Names of methods (see `edokit.analysis.compare.method.method_names`). If None, all but
        ``wel`` and ``wel-ce``, whose search is the slowest; ``"all"`` runs them, too.
        ``constant`` and ``uniform`` are always there, and ``soft``, a single member trained on
        soft labels, where ``member_info`` of the predictions has such (``supervision: soft``, as
        `edokit.train_members` notes it).
    samples : int, default=1000
        Half the sign flips of the tests; 0 for neither tests nor intervals.
    level : float, default=0.95
        Level of the intervals.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.
    random_state : int, default=0
        Seed of searches, intervals, folds and random ties.
    folds : int, default=5
        Folds of the cross-validation without test predictions.
    seeds : int, default=1
        How often each method is fitted: with ``random_state`` and the seeds after it, which also
        deal other folds. Metrics are means over the seeds, and tests are about these.
    metrics : iterable of str, default=None
        Metrics of the tables, any that are registered for the answer scale; its main metrics if
        None. The main metrics are always in the result.
    correct : {"holm", "none"}, default="holm"
        How p-values against ``uniform`` are corrected for the number of tests in the table.

    Examples
    --------
    >>> from edokit.analysis.compare.options import CompareOptions
    >>> CompareOptions(methods=["greedy", "edo"], samples=200).level
    0.95
    """

    methods: Iterable[str] | Literal["all"] | None = None
    samples: int = 1000
    level: float = 0.95
    ties: Ties = "first"
    random_state: int = 0
    folds: int = 5
    seeds: int = 1
    metrics: Iterable[str] | None = None
    correct: Correction = "holm"

    def __post_init__(self) -> None:
        check_seed(self.random_state)
        check_number("folds", self.folds, 2, whole=True)
        check_number("seeds", self.seeds, 1, whole=True)
        one_of("correct", self.correct, get_args(Correction))
