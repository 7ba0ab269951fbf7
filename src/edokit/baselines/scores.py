"""What methods scored, how sure that is, and whether they beat the uniform mean and a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from edokit._types import Codes, Floats, Ints
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.fitted import Constant
from edokit.metrics import MAIN_METRICS, PairedTest, bs_items, ce_items, md_items
from edokit.metrics.resampling import paired_tests, quantiles, resamples

CONSTANT = "constant"
"""The method that gives every item the same answer."""
SHARES = {
    "train": "the shares of the training items",
    "fit": "the shares of the items of the fit",
    "items": "the shares of these very items",
}
"""What the constant answer is, by its source."""


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
    against_constant: Mapping[str, PairedTest] = field(default_factory=dict)
    """Paired test of each metric against the constant answer."""
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
    only_label: str | None = None
    """The class that it gives every item, if that is the same one."""

    @property
    def within_noise(self) -> bool:
        """Whether its CE is not significantly above the lowest: their difference may be 0."""
        return self.above_lowest is None or self.above_lowest.low <= 0

    def on_items(self) -> dict[str, Any]:
        """The metrics with their intervals and tests as plain values."""
        return {
            "name": self.name,
            **{metric: getattr(self, metric) for metric in MAIN_METRICS},
            "intervals": {metric: list(ends) for metric, ends in self.intervals.items()},
            "against_reference": {metric: asdict(test) for metric, test in self.against.items()},
            "against_constant": {m: asdict(test) for m, test in self.against_constant.items()},
            "only_label": self.only_label,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        lowest = self.above_lowest
        return {
            **self.on_items(),
            "about": self.about,
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
    names = [one.name for one in found]
    others = [other for other in (reference, CONSTANT) if other in names]
    pairs = [(name, other, m) for other in others for name in names for m in MAIN_METRICS]
    pairs += [(name, lowest, "ce") for name in names]
    asked = [(name, other, m) for name, other, m in dict.fromkeys(pairs) if name != other]
    tests = paired_tests(
        [(losses[name][metric], losses[other][metric]) for name, other, metric in asked],
        samples=2 * samples,
        level=level,
        random_state=random_state,
    )
    known = dict(zip(asked, tests, strict=True))

    def against(name: str, other: str) -> dict[str, PairedTest]:
        found = {metric: known.get((name, other, metric)) for metric in MAIN_METRICS}
        return {metric: test for metric, test in found.items() if test is not None}

    return [
        replace(
            score,
            intervals={metric: next(ends) for metric in MAIN_METRICS},
            against=against(score.name, reference),
            against_constant=against(score.name, CONSTANT),
            above_lowest=known.get((score.name, lowest, "ce")),
        )
        for score in found
    ]


Answers = Mapping[str, Floats]
"""Probabilities [N, C] by method."""


def score_answers(
    answers: Answers,
    constant: Constant,
    q: Floats,
    y: Ints | Codes,
    classes: Sequence[str],
    *,
    about: Mapping[str, str] | None = None,
    samples: int,
    level: float,
    random_state: int,
) -> tuple[list[Score], dict[str, dict[str, Floats]]]:
    """The scores of these answers and, after them, of the constant; and the metrics by item."""
    hard = {name: p.argmax(axis=1) for name, p in answers.items()}
    hard[CONSTANT] = np.full(len(q), constant.label)
    every = {**answers, CONSTANT: np.tile(constant.shares, (len(q), 1))}
    losses = {name: item_scores(p, hard[name], q, y) for name, p in every.items()}
    scores = [
        Score(name, (about or {}).get(name, ""), only_label=only_label(hard[name], classes))
        for name in every
    ]
    resampling: Any = {"samples": samples, "level": level, "random_state": random_state}
    return score_methods(scores, losses, "uniform", **resampling), losses


def constant_of(
    ensemble: EDOEnsemble | None, classes: Sequence[str], q: Floats, y: Ints | Codes
) -> Constant:
    """The constant answer that an ensemble recorded, else that of these items."""
    known = None if ensemble is None else ensemble.constant_
    if ensemble is not None and known is not None:
        return known.ordered(ensemble.fitted_.classes, classes)
    return Constant.of(q.sum(axis=0), np.bincount(y, minlength=len(classes)), "items")


def only_label(hard: Ints | Codes, classes: Sequence[str]) -> str | None:
    """The class of all hard labels, if they are the same; of a single item that says nothing."""
    return str(classes[hard[0]]) if len(hard) > 1 and (hard == hard[0]).all() else None


def worth(score: Score, constant: Score, items: int, *, subject: str, source: str) -> list[str]:
    """Sentences for the headline: one label for everything, or no better than the constant.

    Better means that the interval of the difference excludes 0; without intervals, the estimates
    decide. The list is empty where the method is better in CE and in F1.
    """
    found, metrics = [], {"ce": 1, "f1": -1}
    if score.only_label is not None:
        same = score.only_label == constant.only_label
        share = "the majority share" if same else "the share of that class"
        found.append(
            f"{subject} labels all {items} items {score.only_label!r}: its F1 ({score.f1:.4f}) is"
            f" {share}."
        )
        if same:
            del metrics["f1"]
    kinds = ("worse than", "not better than", "not clearly better than")
    verdicts: dict[str, list[str]] = {kind: [] for kind in kinds}
    for metric, sign in metrics.items():
        own, other = getattr(score, metric), getattr(constant, metric)
        test, shown = score.against_constant.get(metric), f"{own:.4f} against {other:.4f}"
        low = high = sign * (own - other)
        if test is not None:
            low, high = sorted((sign * test.low, sign * test.high))
            shown += f"; difference {signed(test.low)} to {signed(test.high)}"
        if high >= 0:
            kind = 0 if low > 0 else 1 if sign * (own - other) >= 0 else 2
            verdicts[kinds[kind]].append(f"in {metric.upper()} ({shown})")
    parts: list[str] = []
    for verdict, where in verdicts.items():
        if where:
            rival = "it" if parts else f"a constant answer ({SHARES[source]})"
            parts.append(f"{verdict} {rival} {' and '.join(where)}")
    return [*found, f"{subject} is {' and '.join(parts)}."] if parts else found


def signed(value: float, digits: int = 4) -> str:
    """``+0.0012`` or ``−0.0097``."""
    return f"{value:+.{digits}f}".replace("-", "−")


def difference(test: PairedTest | None, full: bool = False) -> str | None:
    """``−.154…−.107``, or in full ``−0.1300 (−0.1540 … −0.1070)``."""
    if test is None:
        return None
    if not full:
        return f"{signed(test.low, 3)}…{signed(test.high, 3)}".replace("0.", ".")
    return f"{signed(test.difference)} ({signed(test.low)} … {signed(test.high)})"
