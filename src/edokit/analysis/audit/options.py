"""The options of an audit."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._errors import check_number


@dataclass(frozen=True)
class AuditOptions:
    """Tests and confidence intervals of an audit.

    Parameters
    ----------
    replace : bool, default=False
        Also test whether members, their uniform mean and the ensemble can replace an
        annotator.
    epsilon : float, default=0.1
        By how much a person may be better and still be replaced, as a probability: 0.2 for
        experts, 0.15 for skilled annotators, 0.1 for crowd workers.
    min_items : int, default=30
        Annotators who share fewer items with others are left out of the replacement test.
    samples : int, default=1000
        Bootstrap samples of the items, for the estimated number of judges.
    level : float, default=0.95
        Level of the intervals; 1 − level is the false discovery rate of the replacement test.
    random_state : int, default=0
        Seed of the bootstrap.

    Examples
    --------
    >>> from edokit.analysis.audit.options import AuditOptions
    >>> AuditOptions(replace=True).epsilon
    0.1
    """

    replace: bool = False
    epsilon: float = 0.1
    min_items: int = 30
    samples: int = 1000
    level: float = 0.95
    random_state: int = 0

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, 1)
        check_number("min_items", self.min_items, 2, whole=True)
        check_number("samples", self.samples, 50, whole=True)
        check_number("level", self.level, 0.5, 0.9999)
