"""The options of a gate."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._errors import check_number


@dataclass(frozen=True)
class GateOptions:
    """Slices of the new items, and what counts as a fall.

    Parameters
    ----------
    by : str, default=None
        A column of the items: those with each of its values are also compared.
    level : float, default=0.95
        Level of the intervals. Without any change, at most half of 1 − level of the gates fail.
    tolerance : float, default=0
        A rise of the loss up to this share of the loss on the items of the fit still passes.

    Examples
    --------
    >>> from edokit.analysis.gate.options import GateOptions
    >>> GateOptions(tolerance=0.02).level
    0.95
    """

    by: str | None = None
    level: float = 0.95
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        check_number("level", self.level, 0.5, 0.9999)
        check_number("tolerance", self.tolerance, 0, 10)
