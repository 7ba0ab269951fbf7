"""What methods scored, how sure that is, and whether they beat the uniform mean and a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import signed
from edokit._types import Codes, Floats, Ints
from edokit.ensemble.fitted import Constant
from edokit.metrics import METRIC, PairedTest, headline_metric, item_values, main_metrics
from edokit.metrics.checks import pair
from edokit.metrics.resampling import Resampling, intervals_and_tests
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations
    from edokit.ensemble.estimator import EDOEnsemble

CONSTANT = "constant"
# What the constant answer is, by its source.
SHARES = {
    "train": "the shares of the training items",
    "fit": "the shares of the items of the fit",
    "items": "the shares of these very items",
}


@dataclass(frozen=True)
class Score:
    """One method on the test items.

    Attributes
    ----------
    name : str
    about : str
        What the method does, in a few words.
    metrics : mapping of str to float
        The main metrics of the answer scale by name; ``score.ce`` is ``score.metrics["ce"]``.
    intervals : mapping of str to (float, float)
        Bootstrap interval of each metric.
    against : mapping of str to PairedTest
        Paired test of each metric against the reference: below 0, this method's value is lower.
    against_constant : mapping of str to PairedTest
        Paired test of each metric against the constant answer.
    above_lowest : PairedTest or None
        Paired test of the headline metric against the method that has the lowest.
    headline : str
        The metric that ranks methods: CE, or RPS on an ordinal scale.
    dev : mapping of str to float
        The same metrics on the items that it was fitted on.
    size : int or None
        How many members carry weight.
    weights : mapping of str to float, or None
        Weight of each member, where the method has some.
    seconds : float
        How long fitting took.
    only_label : str or None
        The class (or labels) that it gives every item, if that is the same one.
    """

    name: str
    about: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    against: Mapping[str, PairedTest] = field(default_factory=dict)
    against_constant: Mapping[str, PairedTest] = field(default_factory=dict)
    above_lowest: PairedTest | None = None
    headline: str = "ce"
    dev: Mapping[str, float] = field(default_factory=dict)
    size: int | None = None
    weights: Mapping[str, float] | None = None
    seconds: float = 0.0
    only_label: str | None = None

    def __getattr__(self, name: str) -> float:
        if name not in METRIC:
            raise AttributeError(f"a score has no {name!r}")
        return float(self.__dict__.get("metrics", {}).get(name, "nan"))

    @property
    def within_noise(self) -> bool:
        """Whether its headline metric is not significantly above the lowest."""
        return self.above_lowest is None or self.above_lowest.low <= 0

    def on_items(self) -> dict[str, Any]:
        """The metrics with their intervals and tests as plain values."""
        return {
            "name": self.name,
            **self.metrics,
            "intervals": {metric: list(ends) for metric, ends in self.intervals.items()},
            "against_reference": {metric: asdict(test) for metric, test in self.against.items()},
            "against_constant": {m: asdict(test) for m, test in self.against_constant.items()},
            "only_label": self.only_label,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        lowest, tested = self.above_lowest, bool(self.intervals)
        return {
            **self.on_items(),
            "about": self.about,
            f"against_lowest_{self.headline}": None if lowest is None else asdict(lowest),
            f"within_noise_of_lowest_{self.headline}": self.within_noise if tested else None,
            "dev": dict(self.dev),
            "size": self.size,
            "weights": None if self.weights is None else dict(self.weights),
            "seconds": self.seconds,
        }


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
    def of(cls, metric: str, test: PairedTest, rival: Score) -> Gain:
        """From the paired test of a metric, and the score of the method it was tested against."""
        unit = rival.metrics[metric] * (1 if METRIC[metric].higher else -1)
        ends = sorted(value / unit for value in (test.low, test.high)) if unit else (0.0, 0.0)
        return cls(test.difference / unit if unit else 0.0, *ends)

    @property
    def standing(self) -> str:
        """``better`` or ``worse`` if the interval excludes 0, else ``unclear``."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "unclear"

    @property
    def percent(self) -> str:
        """``4 %``, of less than one ``0.4 %``."""
        size = abs(100 * self.share)
        return f"{size:.0f} %" if size >= 0.95 else f"{size:.1g} %"

    def sentence(self, rival: str = "a plain average of your models") -> str:
        """The result in plain words; better and worse only where the interval says so."""
        if self.standing == "unclear":
            return f"Matches your annotators about as well as {rival}"
        percent = self.percent.replace(" ", "\u00a0")  # it does not break
        return f"Matches your annotators {percent} {self.standing} than {rival}"


def item_scores(
    p: Floats, hard: Ints | Codes, q: Floats, y: Ints | Codes, scale: Scale = NOMINAL
) -> dict[str, Floats]:
    """Each main metric item by item [N]; ``hard`` are the predicted hard labels, as ``y`` is."""
    predicted, soft = pair(p, q, scale)
    certain = scale.indicators(hard, soft.shape[1]).astype(np.float64)
    values = item_values(scale)
    return {
        metric: values[metric](certain if METRIC[metric].hard else predicted, soft, y)
        for metric in main_metrics(scale)
    }


def score_methods(
    scores: Sequence[Score],
    losses: Mapping[str, Mapping[str, Floats]],
    reference: str,
    resampling: Resampling,
    scale: Scale = NOMINAL,
) -> list[Score]:
    """The scores with test metrics, intervals and tests, from ``losses[name][metric]`` [N]."""
    metrics, headline = main_metrics(scale), headline_metric(scale)
    evaluated = []
    for score in scores:
        means = {metric: float(losses[score.name][metric].mean()) for metric in metrics}
        evaluated.append(replace(score, metrics=means, headline=headline))
    if not resampling.samples:
        return evaluated
    lowest, names = lowest_score(evaluated).name, [score.name for score in evaluated]
    rivals = [rival for rival in (reference, CONSTANT) if rival in names]
    triples = [*product(rivals, names, metrics), *product([lowest], names, [headline])]
    # Each comparison once: the constant, for one, may be the lowest.
    comparisons = dict.fromkeys((name, rival, m) for rival, name, m in triples if name != rival)
    ends, tests = intervals_and_tests(
        {(name, metric): losses[name][metric] for name in names for metric in metrics},
        [((name, metric), (rival, metric)) for name, rival, metric in comparisons],
        resampling,
    )
    by_comparison = dict(zip(comparisons, tests, strict=True))

    def against(name: str, rival: str) -> dict[str, PairedTest]:
        keys = {metric: (name, rival, metric) for metric in metrics}
        return {m: by_comparison[key] for m, key in keys.items() if key in by_comparison}

    return [
        replace(
            score,
            intervals={metric: ends[score.name, metric] for metric in metrics},
            against=against(score.name, reference),
            against_constant=against(score.name, CONSTANT),
            above_lowest=by_comparison.get((score.name, lowest, headline)),
        )
        for score in evaluated
    ]


def lowest_score(scores: Sequence[Score]) -> Score:
    """The score with the lowest headline metric."""
    return min(scores, key=lambda score: score.metrics[score.headline])


def score_answers(
    answers: Mapping[str, Floats],
    constant: Constant,
    labels: Annotations,
    y: Ints | Codes,
    resampling: Resampling,
    reference: str = "uniform",
) -> tuple[list[Score], dict[str, dict[str, Floats]]]:
    """The scores of these answers [N, C] and, after them, of the constant; the metrics by item."""
    q, scale = labels.soft_labels, labels.scale
    hard = {name: scale.hard(p) for name, p in answers.items()}
    hard[CONSTANT] = same_label(constant, len(q))
    probabilities = {**answers, CONSTANT: np.tile(constant.shares, (len(q), 1))}
    losses = {name: item_scores(p, hard[name], q, y, scale) for name, p in probabilities.items()}
    scores = [
        Score(name, only_label=only_label(hard[name], labels.classes)) for name in probabilities
    ]
    return score_methods(scores, losses, reference, resampling, scale), losses


def constant_of(ensemble: EDOEnsemble | None, labels: Annotations, y: Ints | Codes) -> Constant:
    """The constant answer that an ensemble recorded, else that of these items."""
    if ensemble is not None:
        return ensemble.constant_.ordered(ensemble.fitted_.classes, labels.classes)
    return constant_answer(labels.soft_labels, y, labels.scale, "items")


def constant_answer(q: Floats, y: Ints | Codes, scale: Scale, source: str) -> Constant:
    """The mean soft label and the majority class; of sets, for each label on its own."""
    hard = scale.indicators(y, q.shape[1]).astype(np.int64)
    return Constant.of(scale.totals(q), scale.totals(hard), source)


def same_label(constant: Constant, items: int) -> Codes:
    """The hard label of the constant answer for every item: [N], or [N, L] of sets."""
    label = np.asarray(constant.label, dtype=np.int32)
    return np.tile(label, (items, *(1 for _ in label.shape)))


def only_label(hard: Ints | Codes, classes: Sequence[str]) -> str | None:
    """The hard label of all items, if it is the same one; of a single item that says nothing."""
    if len(hard) < 2 or (hard != hard[0]).any():
        return None
    if hard.ndim == 1:
        return str(classes[hard[0]])
    return ", ".join(np.asarray(classes)[hard[0].astype(bool)]) or "none"


def worth(score: Score, constant: Score, items: int, *, subject: str, source: str) -> list[str]:
    """Sentences for the headline: one label for everything, or no better than the constant.

    Better means that the interval of the difference excludes 0; without intervals, the estimates
    decide. The list is empty where the method is better in the headline metric and in F1.
    """
    sentences, metrics = [], {score.headline: 1, "f1": -1}
    if score.only_label is not None:
        is_majority = score.only_label == constant.only_label
        share = "the majority share" if is_majority else "the share of that class"
        sentences.append(
            f"{subject} labels all {items} items {score.only_label!r}: its F1 ({score.f1:.4f}) is"
            f" {share}."
        )
        if is_majority:
            del metrics["f1"]
    for metric, sign in metrics.items():
        value, rival = score.metrics[metric], constant.metrics[metric]
        test, numbers = score.against_constant.get(metric), f"{value:.4f} against {rival:.4f}"
        low = high = sign * (value - rival)
        if test is not None:
            low, high = sorted((sign * test.low, sign * test.high))
            numbers += f"; difference {signed(test.low)} to {signed(test.high)}"
        if high >= 0:
            above = "not better" if sign * (value - rival) >= 0 else "not clearly better"
            sentences.append(
                f"{subject} is {'worse' if low > 0 else above} than a constant answer"
                f" ({SHARES[source]}) in {METRIC[metric].short} ({numbers})."
            )
    return sentences


def short_ends(ends: Sequence[float], digits: int = 3) -> str:
    """``−.154…−.107``."""
    texts = [signed(end, digits) for end in ends]
    return "…".join(text[0] + text[1:].removeprefix("0") for text in texts)


def difference(test: PairedTest | None) -> str | None:
    """The interval of a difference as ``−.154…−.107``."""
    return None if test is None else short_ends((test.low, test.high))
