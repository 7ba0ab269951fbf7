"""What methods scored: `Score`, the gain over another method, and scores on slices of the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from edokit.metrics import METRIC, PairedTest

CONSTANT = "constant"
"""Name of the method that gives every item the same answer."""
UNIFORM = "uniform"
"""Name of the uniform mean of the members."""
MISSING = "(missing)"
"""How a slice of items without a value is named."""

Standing = Literal["better", "worse", "unclear"]


@dataclass(frozen=True)
class Score:
    """One method on the test items.

    Attributes
    ----------
    name : str
    description : str
        What the method does, in a few words.
    metrics : mapping of str to float
        The metrics by name, the main ones of the answer scale among them; ``score.ce`` is
        ``score.metrics["ce"]``.
    intervals : mapping of str to (float, float)
        Interval of each metric.
    against : mapping of str to PairedTest
        Paired test of each metric against the reference: below 0, this method's value is lower.
    against_constant : mapping of str to PairedTest
        Paired test of each metric against the constant answer.
    above_lowest : PairedTest or None
        Paired test of the headline metric against the method that has the lowest.
    headline_metric : str
        The metric that ranks methods: CE, or RPS on an ordinal scale.
    dev : mapping of str to float
        The same metrics on the items that it was fitted on.
    size : int or None
        Number of members with weight.
    weights : mapping of str to float, or None
        Weight of each member, for methods that weigh members.
    seconds : float
        Time of the fit.
    only_label : str or None
        The class (or labels) of every item, if the method gives all items the same one.
    seed_deviations : mapping of str to float
        Standard deviation of each metric over seeds, where a method was fitted with several.
    """

    name: str
    description: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    against: Mapping[str, PairedTest] = field(default_factory=dict)
    against_constant: Mapping[str, PairedTest] = field(default_factory=dict)
    above_lowest: PairedTest | None = None
    headline_metric: str = "ce"
    dev: Mapping[str, float] = field(default_factory=dict)
    size: int | None = None
    weights: Mapping[str, float] | None = None
    seconds: float = 0.0
    only_label: str | None = None
    seed_deviations: Mapping[str, float] = field(default_factory=dict)

    def __getattr__(self, name: str) -> float:
        if name not in METRIC:
            raise AttributeError(f"a score has no {name!r}")
        return float(self.__dict__.get("metrics", {}).get(name, "nan"))

    @property
    def headline_value(self) -> float:
        """The value of the metric that ranks methods."""
        return self.metrics[self.headline_metric]

    @property
    def within_noise(self) -> bool:
        """Whether its headline metric is not significantly above the lowest."""
        return self.above_lowest is None or self.above_lowest.low <= 0

    def metrics_to_dict(self) -> dict[str, object]:
        """Return name, metrics, intervals and tests as plain values, without those of the fit."""
        return {
            "name": self.name,
            **self.metrics,
            "intervals": {metric: list(ends) for metric, ends in self.intervals.items()},
            "against_reference": _plain_tests(self.against),
            "against_constant": _plain_tests(self.against_constant),
            "only_label": self.only_label,
        }

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        against_lowest = None
        if self.above_lowest is not None:
            against_lowest = asdict(self.above_lowest)
        within_noise = None
        if self.intervals:
            within_noise = self.within_noise
        weights = None
        if self.weights is not None:
            weights = dict(self.weights)
        deviations = {}
        if self.seed_deviations:
            deviations["seed_deviations"] = dict(self.seed_deviations)
        return {
            **self.metrics_to_dict(),
            **deviations,
            "about": self.description,
            f"against_lowest_{self.headline_metric}": against_lowest,
            f"within_noise_of_lowest_{self.headline_metric}": within_noise,
            "dev": dict(self.dev),
            "size": self.size,
            "weights": weights,
            "seconds": self.seconds,
        }


def _plain_tests(tests: Mapping[str, PairedTest]) -> dict[str, object]:
    return {metric: asdict(test) for metric, test in tests.items()}


def lowest_score(scores: Sequence[Score]) -> Score:
    """The score with the lowest headline metric."""
    return min(scores, key=lambda score: score.headline_value)


@dataclass(frozen=True)
class Gain:
    """How much better a method is than another, as a share of the other's metric.

    Attributes
    ----------
    share : float
        Above 0, it is better: 0.04 is a cross-entropy that is 4 % lower.
    low, high : float
        Ends of the interval.
    """

    share: float
    low: float
    high: float

    @classmethod
    def from_test(cls, metric: str, test: PairedTest, rival: Score) -> Gain:
        """The gain of a method over a rival, from their paired test and the rival's score."""
        is_higher_better = METRIC[metric].higher
        if test.ratio is not None and test.ratio_low is not None and test.ratio_high is not None:
            if is_higher_better:
                return cls(test.ratio - 1, test.ratio_low - 1, test.ratio_high - 1)
            return cls(1 - test.ratio, 1 - test.ratio_high, 1 - test.ratio_low)
        # A test that an earlier version saved has no ratios: the rival's mean is taken as exact.
        unit = rival.metrics[metric]
        if not is_higher_better:
            unit = -unit
        if unit == 0:
            return cls(0.0, 0.0, 0.0)
        low, high = sorted((test.low / unit, test.high / unit))
        return cls(test.difference / unit, low, high)

    @property
    def standing(self) -> Standing:
        """``better`` or ``worse`` if the interval excludes 0, else ``unclear``."""
        if self.low > 0:
            return "better"
        if self.high < 0:
            return "worse"
        return "unclear"


@dataclass(frozen=True)
class Slice:
    """The methods on the items with one value of a column.

    Attributes
    ----------
    column : str
    value : str or None
        None for the items without a value.
    items : int
    floor : float
        The lowest possible value of the headline metric on these items.
    scores : tuple of Score
        One per method, with intervals and tests where there are enough items.
    """

    column: str
    value: str | None
    items: int
    floor: float
    scores: tuple[Score, ...]

    @property
    def name(self) -> str:
        """``lang: en``."""
        value = MISSING if self.value is None else self.value
        return f"{self.column}: {value}"

    def score(self, method: str) -> Score | None:
        """The scores of one method."""
        for score in self.scores:
            if score.name == method:
                return score
        return None

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        return {
            "column": self.column,
            "value": self.value,
            "items": self.items,
            f"{self.scores[0].headline_metric}_floor": self.floor,
            "methods": [score.metrics_to_dict() for score in self.scores],
        }
