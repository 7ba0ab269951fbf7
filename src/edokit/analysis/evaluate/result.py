"""The result of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict

from edokit._io.markup import Table
from edokit.analysis.scores.result import Score, Slice
from edokit.ensemble.fitted import Constant
from edokit.metrics import Interval
from edokit.scales import NOMINAL, Scale

# The names of answers for each annotator, and of those for nobody in particular.
KNOWN = "known"
ANONYMOUS = "anonymous"


class AnnotatorErrors(TypedDict):
    """How far answers are from the labels of one annotator; an interval is None for few labels."""

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
        The same by the values of item columns.
    subject : str
        What the headline is about.
    scale : Scale
        The answer scale.
    pairs : tuple of Score
        For answers for annotators, the main metrics on their own labels: of ``known`` answers, of
        ``anonymous`` ones to the same pairs, where there are some, and of ``constant``; resampled
        by item.
    ties : int
        Items whose annotators are evenly split; their hard label follows from the order of classes.
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
    subject: str = "The predictions"
    scale: Scale = NOMINAL
    pairs: tuple[Score, ...] = ()
    ties: int = 0

    @property
    def ce_floor(self) -> float:
        """Lowest possible CE: the mean entropy of the soft labels."""
        return float(self.best_possible["ce"] or 0.0)

    @property
    def headline(self) -> list[str]:
        """What must not be missed: no better than a constant, one label for all."""
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
        intervals: dict[str, object] = {}
        if self.intervals:
            ends = {
                name: [interval.low, interval.high] for name, interval in self.intervals.items()
            }
            intervals["intervals"] = ends
        return {
            "items": self.items,
            **self.metrics,
            "ties": self.ties,
            "ce_floor": self.ce_floor,
            "level": self.level,
            **intervals,
            "scale": self.scale.kind,
            "best_possible": self.best_possible,
            "headline": self.headline,
            "constant": {
                "shares": self.constant.shares.tolist(),
                "source": self.constant.source,
                "metrics": self.constant_metrics,
            },
            "methods": [score.item_metrics() for score in self.scores],
            "slices": [part.to_dict() for part in self.slices],
            "annotators": self.annotators,
            "pairs": [score.item_metrics() for score in self.pairs],
        }
