"""The options of an estimate of shares."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._errors import check_number


@dataclass(frozen=True)
class EstimateOptions:
    """Slices of the texts, and the level of the intervals.

    Parameters
    ----------
    by : str, default=None
        A column of the texts: shares are also estimated for each of its values.
    level : float, default=0.95
        Level of the intervals.

    Examples
    --------
    >>> from edokit.analysis.estimate.options import EstimateOptions
    >>> EstimateOptions(by="country").level
    0.95
    """

    by: str | None = None
    level: float = 0.95

    def __post_init__(self) -> None:
        check_number("level", self.level, 0.5, 0.9999)
