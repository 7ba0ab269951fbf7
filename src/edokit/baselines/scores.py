"""What methods scored, how sure that is, and whether they differ from the uniform mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from edokit._types import Codes, Floats, Ints
from edokit.metrics import MAIN_METRICS, PairedTest, bs_items, ce_items, md_items
from edokit.metrics.resampling import paired_tests, quantiles, resamples


@dataclass(frozen=True)
class Score:
    """One method on the test items."""

    name: str
    about: str
    """What the method does, in a few words."""
    f1: float = float("nan")
    ce: float = float("nan")
    md: float = float("nan")
    bs: float = float("nan")
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Bootstrap interval of each metric."""
    against: Mapping[str, PairedTest] = field(default_factory=dict)
    """Paired test of each metric against the reference: below 0, this method's value is lower."""
    above_lowest: PairedTest | None = None
    """Paired test of the CE against the method with the lowest CE."""
    dev: Mapping[str, float] = field(default_factory=dict)
    """The same metrics on the items that it was fitted on."""
    size: int | None = None
    """How many members carry weight."""
    weights: Mapping[str, float] | None = None
    """Weight of each member, where the method has some."""
    seconds: float = 0.0
    """How long fitting took."""

    @property
    def within_noise(self) -> bool:
        """Whether its CE is not significantly above the lowest: their difference may be 0."""
        return self.above_lowest is None or self.above_lowest.low <= 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        lowest = self.above_lowest
        return {
            "name": self.name,
            "about": self.about,
            **{metric: getattr(self, metric) for metric in MAIN_METRICS},
            "intervals": {metric: list(ends) for metric, ends in self.intervals.items()},
            "against_reference": {metric: asdict(test) for metric, test in self.against.items()},
            "against_lowest_ce": None if lowest is None else asdict(lowest),
            "within_noise_of_lowest_ce": self.within_noise if self.intervals else None,
            "dev": dict(self.dev),
            "size": self.size,
            "weights": None if self.weights is None else dict(self.weights),
            "seconds": self.seconds,
        }


def item_scores(p: Floats, hard: Ints | Codes, q: Floats, y: Ints | Codes) -> dict[str, Floats]:
    """Each metric item by item [N]; ``hard`` [N] are the predicted classes, for F1."""
    return {
        "f1": (hard == y).astype(np.float64),
        "ce": ce_items(p, q),
        "md": md_items(p, q),
        "bs": bs_items(p, q),
    }


def score_methods(
    scores: Sequence[Score],
    losses: Mapping[str, Mapping[str, Floats]],
    reference: str,
    *,
    samples: int,
    level: float,
    random_state: int,
) -> list[Score]:
    """The scores with test metrics, intervals and tests, from ``losses[name][metric]`` [N]."""
    found = []
    for score in scores:
        means: dict[str, Any] = {m: float(losses[score.name][m].mean()) for m in MAIN_METRICS}
        found.append(replace(score, **means))
    if not samples:
        return found
    # Percentile intervals of every method and metric over the same resamples.
    columns = np.column_stack([losses[one.name][m] for one in found for m in MAIN_METRICS])
    counts = resamples(len(columns), samples, np.random.default_rng(random_state))
    drawn = np.concatenate([block @ columns / len(columns) for block in counts])
    ends = iter([quantiles(column, level) for column in drawn.T])
    lowest = min(found, key=lambda score: score.ce).name
    against = [
        (one.name, reference, m) for one in found if one.name != reference for m in MAIN_METRICS
    ]
    above = [(one.name, lowest, "ce") for one in found if one.name != lowest]
    asked = list(dict.fromkeys([*against, *above]))
    tests = paired_tests(
        [(losses[name][metric], losses[other][metric]) for name, other, metric in asked],
        samples=2 * samples,
        level=level,
        random_state=random_state,
    )
    known = dict(zip(asked, tests, strict=True))
    return [
        replace(
            score,
            intervals={metric: next(ends) for metric in MAIN_METRICS},
            against={
                metric: known[score.name, reference, metric]
                for metric in MAIN_METRICS
                if score.name != reference
            },
            above_lowest=known.get((score.name, lowest, "ce")),
        )
        for score in found
    ]
