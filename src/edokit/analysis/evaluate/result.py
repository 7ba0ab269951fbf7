"""The result of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict

from edokit._io.markup import Table
from edokit.analysis.scores.result import Score, Slice
from edokit.ensemble.fitted import Constant
from edokit.metrics import Interval
from edokit.scales import NOMINAL, Scale

KNOWN = "known"
"""Name of the answers for each annotator."""
ANONYMOUS = "anonymous"
"""Name of the answers for nobody in particular."""


class AnnotatorErrors(TypedDict):
    """How far answers are from the labels of one annotator.

    ``n`` is the number of labels. Intervals are None where these are few.
    """

    annotator: str
    n: int
    ce: float
    error: float
    anonymous_ce: NotRequired[float]
    anonymous_error: NotRequired[float]
    ce_interval: NotRequired[list[float] | None]
    error_interval: NotRequired[list[float] | None]


@dataclass(frozen=True)
class Evaluation:
    """Metrics of one set of probabilities, as `edokit.evaluate` returns them.

    Attributes
    ----------
    items : int
        Number of items.
    metrics : dict of str to float or None
        Metrics by name; None where undefined.
    best_possible : dict of str to float or None
        The best value that any answer can have on these annotations: for the CE the mean entropy
        of the soft labels, see `edokit.metrics.best_possible`.
    constant_metrics : dict of str to float or None
        The metrics of the constant answer.
    level : float
        Level of the intervals.
    intervals : dict of str to Interval
        Interval of each metric; empty where there are none.
    annotators : list of AnnotatorErrors
        Number of labels ``n``, ``ce`` and ``error`` of the predictions for each ``annotator``, with
        intervals over the annotator's labels (``ce_interval``, ``error_interval``), and both errors
        of anonymous answers, if there are.
    scores : tuple of Score
        The main metrics of the probabilities (``edo`` where an ensemble made them), of ``uniform``
        where members' predictions were given, and of ``constant``, with paired tests between them.
    constant : Constant
        The constant answer.
    slices : tuple of Slice
        The scores of the items with each value of a column.
    subject : str
        The subject of the sentences of the headline, in the singular.
    scale : Scale
        The answer scale.
    pairs : tuple of Score
        For answers for annotators, the main metrics on their own labels: of ``known`` answers, of
        ``anonymous`` ones to the same pairs, where there are some, and of ``constant``; resampled
        by item.
    ties : int
        Items whose annotators are evenly split; the option ``ties`` says what their hard label is.
    """

    items: int
    metrics: dict[str, float | None]
    best_possible: dict[str, float | None]
    constant_metrics: dict[str, float | None]
    level: float
    intervals: dict[str, Interval]
    annotators: list[AnnotatorErrors]
    scores: tuple[Score, ...]
    constant: Constant
    slices: tuple[Slice, ...] = ()
    subject: str = "The model"
    scale: Scale = NOMINAL
    pairs: tuple[Score, ...] = ()
    ties: int = 0

    @property
    def ce_floor(self) -> float:
        """Lowest possible CE: the mean entropy of the soft labels."""
        return float(self.best_possible["ce"] or 0.0)

    @property
    def headline(self) -> list[str]:
        """Warnings: no better than a constant answer, or the same label for all items."""
        from edokit.analysis.evaluate.text import headline

        return headline(self)

    def __repr__(self) -> str:
        metrics = self.scores[0].metrics.items()
        listed = ", ".join(f"{name}={value:.4f}" for name, value in metrics)
        return f"Evaluation({self.items} items, {listed})"

    def to_table(self) -> Table:
        """Return every metric with its interval, best possible value and that of a constant."""
        from edokit.analysis.evaluate.text import metric_table

        return metric_table(self, self.subject)

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values, as ``edo evaluate --json`` prints it.

        Returns
        -------
        dict
            The metrics by name, ``items``, ``ce_floor``, ``level``, ``intervals`` as
            ``[low, high]``, ``best_possible``, ``headline``, ``constant``, ``methods``, ``slices``,
            ``annotators`` and ``pairs``.
        """
        content: dict[str, object] = {
            "items": self.items,
            **self.metrics,
            "ties": self.ties,
            "ce_floor": self.ce_floor,
            "level": self.level,
        }
        if self.intervals:
            content["intervals"] = {
                name: [interval.low, interval.high] for name, interval in self.intervals.items()
            }
        content["scale"] = self.scale.kind
        content["best_possible"] = self.best_possible
        content["headline"] = self.headline
        content["constant"] = {
            "shares": self.constant.shares.tolist(),
            "source": self.constant.source,
            "metrics": self.constant_metrics,
        }
        content["methods"] = [score.metrics_to_dict() for score in self.scores]
        content["slices"] = [part.to_dict() for part in self.slices]
        content["annotators"] = self.annotators
        content["pairs"] = [score.metrics_to_dict() for score in self.pairs]
        return content
