"""The shares of all classes among some texts, the mean point, and what the labels are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edokit._types import Bools, Floats, Ints
from edokit.analysis.estimate.result import Basis, Expected, Share, Shares
from edokit.analysis.estimate.statistics import (
    FEWEST_LABELS,
    ShareEstimate,
    estimate_share,
    shares_of_one,
    transported_share,
)
from edokit.scales import Scale


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Labels and answers of n items, which are among the texts or of the fit."""

    shares: Floats
    """Soft labels [n, C]."""
    answers: Floats
    """Answers [n, C]."""
    clusters: Ints | None
    """Items with the same number [n] belong together."""
    positions: Ints | None
    """Their positions among all texts [n]; None for items of the fit."""

    def take(self, is_chosen: Bools) -> LabelledTexts:
        """Some of the items."""
        clusters = None
        if self.clusters is not None:
            clusters = self.clusters[is_chosen]
        positions = None
        if self.positions is not None:
            positions = self.positions[is_chosen]
        return LabelledTexts(self.shares[is_chosen], self.answers[is_chosen], clusters, positions)

    def estimate(
        self, values: Floats, targets: Floats, basis: Basis, level: float
    ) -> ShareEstimate:
        """The mean value of some texts, where each class has a value between 0 and 1 [C].

        ``targets`` are the answers to these texts [N, C]. For the share of one class, it has the
        value 1 and the others 0.
        """
        labels = self.shares @ values
        answers = self.answers @ values
        if basis == "labels":
            target = float((targets @ values).mean())
            return estimate_share(labels, answers, target, self.clusters, level)
        return transported_share(labels, answers, targets @ values, self.clusters, level)


@dataclass(frozen=True, eq=False)
class ShareEstimator:
    """Estimates shares among some of the texts from the answers to all [N, C]."""

    answers: Floats
    scale: Scale
    classes: tuple[str, ...]
    labelled: LabelledTexts | None
    basis: Basis
    level: float

    def shares(self, mask: Bools, column: str | None = None, value: str | None = None) -> Shares:
        """The shares among the texts [N] of this mask."""
        answers = self.answers[mask]
        labelled = self.labelled
        if labelled is None:
            return self._answers_alone(answers, column, value)
        count = 0
        basis = self.basis
        if labelled.positions is not None:
            is_inside = mask[labelled.positions]
            count = int(is_inside.sum())
            if count >= FEWEST_LABELS:
                labelled = labelled.take(is_inside)
            else:
                basis = "fit"  # as if all labelled texts were those of a fit
        estimates: list[ShareEstimate] = []
        for values in np.eye(len(self.classes)):
            estimates.append(labelled.estimate(values, answers, basis, self.level))
        shares = np.array([estimate.share for estimate in estimates])
        if not self.scale.is_multi_label:
            shares = shares_of_one(estimates)
        rows: dict[str, Share] = {}
        for name, share, estimate in zip(self.classes, shares, estimates, strict=True):
            rows[name] = {"share": float(share), "low": estimate.low, "high": estimate.high}
        expected: Expected | None = None
        if self.scale.positions is not None:
            places = np.array(self.scale.positions)
            lowest = float(places.min())
            span = float(places.max()) - lowest
            relative = labelled.estimate((places - lowest) / span, answers, basis, self.level)
            point = relative.scaled(lowest, span)
            expected = {"expected": point.share, "low": point.low, "high": point.high}
            # On an ordinal scale, the mean point alone says what the labels are worth.
            estimates = [relative]
        labels_worth = None
        if basis == "labels":
            # Variances, and the squares of widths, are inversely proportional to numbers of labels.
            label_width = sum(estimate.label_width**2 for estimate in estimates)
            labels_worth = label_width / sum(estimate.width**2 for estimate in estimates)
        return Shares(len(answers), count, rows, expected, labels_worth, basis, column, value)

    def _answers_alone(self, answers: Floats, column: str | None, value: str | None) -> Shares:
        """The mean answers, whose error is unknown."""
        rows: dict[str, Share] = {}
        for name, share in zip(self.classes, answers.mean(axis=0).tolist(), strict=True):
            rows[name] = {"share": share, "low": None, "high": None}
        expected: Expected | None = None
        if self.scale.positions is not None:
            point = float(self.scale.expected(answers).mean())
            expected = {"expected": point, "low": None, "high": None}
        return Shares(len(answers), 0, rows, expected, None, "answers", column, value)
