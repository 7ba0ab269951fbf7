"""Scores over seeds, and differences that count only where they exceed the noise."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning
from edokit._types import Bools, Codes, Floats
from edokit.annotations.core import Annotations
from edokit.metrics import MAIN_METRICS, bs_items, ce_items, f1_items, md_items, paired_test

HEADS = {"f1": "F1", "ce": "CE", "md": "MD", "bs": "BS"}
SAMPLES = 2000


@dataclass(frozen=True)
class Labels:
    """The annotations of some items, with their soft and hard labels."""

    annotations: Annotations
    soft: Floats
    """Shares per class [N, C]."""
    hard: Codes
    """Class codes [N]."""

    @classmethod
    def from_annotations(cls, annotations: Annotations) -> Labels:
        with warnings.catch_warnings():
            # Ties have published labels in LeWiDi; elsewhere the first class is as good.
            warnings.simplefilter("ignore", EDOWarning)
            soft = np.asarray(annotations.soft_labels)
            return cls(annotations, soft, np.asarray(annotations.hard_labels()))


class Predicted(NamedTuple):
    """A method's predictions of some items."""

    probabilities: Floats
    """[N, C]."""
    hard: npt.NDArray[np.integer] | None = None
    """Class codes [N] where they are not the likeliest class, as in a vote."""


def item_scores(predicted: Predicted, labels: Labels) -> Floats:
    """F1, CE, MD and BS of each item [4, N]; their means are the metrics."""
    p = np.asarray(predicted.probabilities)
    if predicted.hard is None:
        is_correct = f1_items(p, labels.hard)
    else:
        is_correct = (predicted.hard == labels.hard).astype(np.float64)
    return np.stack(
        [
            is_correct,
            ce_items(p, labels.soft),
            md_items(p, labels.soft),
            bs_items(p, labels.soft),
        ]
    )


def sample_deviation(values: npt.ArrayLike) -> float:
    """Standard deviation of a sample; 0 for a single value."""
    values = np.asarray(values)
    if len(values) < 2:
        return 0.0
    return float(values.std(ddof=1))


@dataclass(frozen=True)
class Outcome:
    """One method under several seeds."""

    fit: Floats
    """F1, CE, MD, BS on the items that the weights were learned from [S, 4]."""
    items: Floats
    """F1, CE, MD, BS of each test item [S, 4, N]."""
    sizes: tuple[int, ...] = ()
    """Members kept, by seed."""

    @property
    def test(self) -> Floats:
        """F1, CE, MD, BS on test [S, 4]."""
        means: Floats = self.items.mean(axis=2)
        return means

    def mean(self, metric: str, part: str = "test") -> float:
        """Mean over seeds."""
        return float(getattr(self, part)[:, MAIN_METRICS.index(metric)].mean())

    def means(self) -> dict[str, float]:
        """The mean over seeds of each main metric."""
        return {metric: self.mean(metric) for metric in MAIN_METRICS}

    def spread(self, metric: str, part: str = "test") -> float:
        """Standard deviation between seeds; 0 for one seed."""
        return sample_deviation(getattr(self, part)[:, MAIN_METRICS.index(metric)])

    def interval(self, metric: str) -> tuple[float, float]:
        """95 % interval of the mean over seeds: a bootstrap over test items."""
        means = self.items[:, MAIN_METRICS.index(metric)].mean(axis=0)
        test = paired_test(means, np.zeros_like(means), samples=SAMPLES)
        return test.low, test.high

    def gap(self, metric: str) -> float:
        """Test less fit, mean over seeds."""
        return self.mean(metric) - self.mean(metric, "fit")

    def without(self, left_out: Bools) -> Outcome:
        """The outcome without some of the test items."""
        return Outcome(self.fit, self.items[:, :, ~left_out], self.sizes)


def outcome(
    predicted: Sequence[tuple[Predicted, Predicted]],
    fit_labels: Labels,
    test_labels: Labels,
    sizes: Sequence[int] = (),
) -> Outcome:
    """Score the predictions of fit and test items, a pair per seed."""
    return Outcome(
        np.stack([item_scores(fit, fit_labels).mean(axis=1) for fit, _ in predicted]),
        np.stack([item_scores(test, test_labels) for _, test in predicted]),
        tuple(sizes),
    )


@dataclass(frozen=True)
class Effect:
    """A difference between two methods on test, with both kinds of noise beside it."""

    value: float
    """Mean over seeds of a less b."""
    spread: float
    """Standard deviation between seeds: the largest of the difference's and both methods'."""
    low: float
    """Lower end of the 95 % interval over test items."""
    high: float
    """Upper end."""

    @property
    def claimed(self) -> bool:
        """Whether it is larger than the spread between seeds, and 0 is outside the interval.

        Where seeds do not differ at all, their spread is unknown, and nothing is claimed.
        """
        outside = self.low > 0 or self.high < 0
        return self.spread > 0 and abs(self.value) > self.spread and outside


def effect(a: Outcome, b: Outcome, metric: str) -> Effect:
    """a less b, the same seeds and items on both sides."""
    column = MAIN_METRICS.index(metric)
    differences = a.test[:, column] - b.test[:, column]
    test = paired_test(
        a.items[:, column].mean(axis=0), b.items[:, column].mean(axis=0), samples=SAMPLES
    )
    return Effect(
        float(differences.mean()),
        max(sample_deviation(differences), a.spread(metric), b.spread(metric)),
        test.low,
        test.high,
    )
