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
        ``constant`` and ``uniform`` are always there. So is ``soft``, the best single member that
        was trained on soft labels, where ``member_info`` of the predictions says of any that it was
        (``supervision: soft``, as `edokit.train_members` notes it).
    samples : int, default=1000
        Resamples of the intervals that need them; tests make twice as many sign flips. With 0 there
        are neither tests nor intervals.
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
        deal other folds. Metrics are means over the seeds, and tests are about these. Metrics that
        are not means over items, such as macro-F1 and the ECE, are computed from the answers of all
        seeds together.
    metrics : iterable of str, default=None
        The metrics of the tables, of those registered for the answer scale; its main metrics if
        None. The result always has the main metrics.
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
        check_number("samples", self.samples, 0, whole=True, hint="use 1000, or 0 for no intervals")
        check_number("level", self.level, 0, 0.9999, above=True)
        check_seed(self.random_state)
        check_number("folds", self.folds, 2, whole=True)
        check_number("seeds", self.seeds, 1, whole=True)
        one_of("correct", self.correct, get_args(Correction))
