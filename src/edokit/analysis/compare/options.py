"""The options of a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from edokit._errors import check_number, check_seed
from edokit.annotations.core import Ties


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
        Folds of the cross-validation, where there are no test predictions.

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

    def __post_init__(self) -> None:
        check_seed(self.random_state)
        check_number("folds", self.folds, 2, whole=True)
