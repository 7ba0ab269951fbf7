"""The options of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edokit._errors import check_number, check_seed
from edokit.annotations.core import Ties
from edokit.predictions.core import Invalid

# With fewer resamples the ends of an interval are mostly noise.
FEWEST_SAMPLES = 50


@dataclass(frozen=True)
class EvaluateOptions:
    """Metrics and confidence intervals to compute.

    Parameters
    ----------
    by : str or sequence of str, default=None
        Columns of the items (see `Annotations.item_columns`) to evaluate by: each value (at
        most 50) is a slice, missing values are a slice of their own; ``agreement`` is how the votes
        of an item are divided.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.
    samples : int, default=1000
        Resamples, where an interval needs them; 0 for no intervals.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the resamples and of random ties.
    invalid : {"error", "normalize"}, default="error"
        What to do with rows that do not sum to 1: raise, or divide them by their sum.

    Examples
    --------
    >>> from edokit.analysis.evaluate.options import EvaluateOptions
    >>> EvaluateOptions(by="lang", samples=200).level
    0.95
    """

    by: str | Sequence[str] | None = None
    ties: Ties = "first"
    samples: int = 1000
    level: float = 0.95
    random_state: int = 0
    invalid: Invalid = "error"

    def __post_init__(self) -> None:
        check_number("level", self.level, 0, 0.9999, above=True)
        check_seed(self.random_state)
        if self.samples:
            hint = "use 1000, or 0 for no intervals"
            check_number("samples", self.samples, FEWEST_SAMPLES, whole=True, hint=hint)
