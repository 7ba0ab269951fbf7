"""The ensemble evaluated on a set of items, beside uniform mean, best member and a constant."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from edokit._errors import EDOWarning
from edokit._types import Codes, Floats
from edokit.annotations import Annotations, Ties
from edokit.baselines.scores import (
    CONSTANT,
    Score,
    constant_of,
    score_answers,
    worth,
)
from edokit.baselines.slices import Slice, find_slices, score_slices, worst_slice
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.pooled import Pooled
from edokit.metrics import (
    Interval,
    Reliability,
    bootstrap,
    item_values,
    reliability_curve,
    search_metrics,
)
from edokit.metrics.resampling import Resampling
from edokit.predictions import Predictions
from edokit.predictions.core import ANONYMOUS
from edokit.scales import Scale, check_same_scale

ABOUT = {
    "edo": "this ensemble",
    "uniform": "uniform mean of all members",
    "best-single": "member with the lowest CE on the fit data",
    "constant": "same probabilities and label for every item",
}
# Bootstrap samples, and those for more than ``MANY`` items.
SAMPLES, FEWER = 1000, 200
MANY = 20_000
UNDEFINED = Interval(None, None, None)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Items with the ensemble's probabilities and, where there are some, annotations.

    Attributes
    ----------
    name : str
        Which items these are: ``test items``, or ``test pairs`` of an item and an annotator.
    held_out : bool or None
        Whether the ensemble was fitted without them; None if that is not known.
    pooled : Pooled
    predictions : Predictions
        Of the members, items and classes in the same order as in ``pooled``.
    annotations : Annotations or None
        In the same order of items.
    hard_labels : Codes or None
        [N]
    scores : list[Score]
        Metrics of the ensemble, the uniform mean, the best single member and the constant.
    source : str
        Whose shares the constant has, as in `Constant`.
    ece : float or None
    rho : Interval
        Spearman's ρ between the entropies of ensemble and annotations.
    reliability : Reliability or None
        Predicted probabilities against shares of annotations.
    level : float
        Confidence level of the intervals.
    slices : tuple[Slice, ...]
        The same methods by the values of item columns.
    """

    name: str
    held_out: bool | None
    pooled: Pooled
    predictions: Predictions
    annotations: Annotations | None = None
    hard_labels: Codes | None = None
    scores: list[Score] = field(default_factory=list)
    source: str = "fit"
    ece: float | None = None
    rho: Interval = UNDEFINED
    reliability: Reliability | None = None
    level: float = 0.95
    slices: tuple[Slice, ...] = ()

    @property
    def metrics(self) -> dict[str, float | None]:
        """Main metrics, ECE and entropy correlation (Spearman's ρ) of the ensemble."""
        values: dict[str, float | None] = dict(self.scores[0].metrics) if self.scores else {}
        return values | {"ece": self.ece, "entropy_correlation": self.rho.estimate}

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        return self.pooled.scale

    @property
    def distance_metric(self) -> str:
        """How far probabilities are from soft labels: MD, or W1 on an ordinal scale."""
        return search_metrics(self.scale)[-1]

    @property
    def constant(self) -> Score | None:
        """The constant answer."""
        return next((score for score in self.scores if score.name == CONSTANT), None)

    @property
    def headline(self) -> list[str]:
        """Whether the ensemble beats the constant and labels items differently; the worst slice."""
        if self.constant is None:
            return []
        n, ours = len(self.pooled.items), self.scores[0]
        return [
            *worth(ours, self.constant, n, subject="The ensemble", source=self.source),
            *worst_slice(self.slices, self.level),
        ]

    @cached_property
    def distance(self) -> Floats | None:
        """`distance_metric` of each item [N]: ‖p − q‖₁, or W1 in units of the scale."""
        if self.annotations is None:
            return None
        distance = item_values(self.scale)[self.distance_metric]
        return distance(self.pooled.probabilities, self.annotations.soft_labels, self.hard_labels)

    @cached_property
    def distances(self) -> Floats:
        """Mean distance between members [K, K] by `distance_metric`, as in ``predictions``."""
        P = self.scale.coordinates(self.predictions.probabilities)
        distances = np.zeros((P.shape[1], P.shape[1]))
        for k, j in combinations(range(P.shape[1]), 2):
            distance = np.abs(P[:, k] - P[:, j]).sum(axis=1).mean(dtype=np.float64)
            distances[k, j] = distances[j, k] = distance
        return distances

    @property
    def max_entropy(self) -> float:
        """ln C."""
        return float(np.log(max(len(self.scale.row_classes(self.pooled.classes)), 2)))


def evaluate_items(
    ensemble: EDOEnsemble,
    predictions: Predictions,
    annotations: Annotations | None,
    *,
    name: str,
    held_out: bool | None,
    random_state: int = 0,
    samples: int | None = None,
    level: float = 0.95,
    by: str | Sequence[str] | None = None,
) -> Evaluation:
    """Pool the predictions and compare them with the annotations, matched by item.

    ``samples`` bootstrap samples give intervals of this ``level``; by default 1,000, or 200 for
    more than 20,000 items. ``by`` names item columns to slice by.
    """
    if predictions.rows.people:  # each pair is an item of the page
        anonymous = any(member.endswith(ANONYMOUS) for member in ensemble.members_)
        predictions = predictions.pairs(anonymous=anonymous)
        annotations = None if annotations is None else annotations.pairs()
    clusters = predictions.rows.clusters
    name = name if clusters is None else name.replace("items", "pairs")
    predictions = predictions.order_classes(tuple(ensemble.classes_))
    pooled = ensemble.describe(predictions)
    if annotations is None:
        return Evaluation(name, held_out, pooled, predictions)
    annotations = _aligned(annotations, predictions)
    scale = pooled.scale
    check_same_scale(annotations.scale, "annotations", scale, "ensemble")
    p, q = pooled.probabilities, annotations.soft_labels
    policy: Ties = ensemble.settings_.get("ties", "first")
    with warnings.catch_warnings():
        # Fitting warned of ties already.
        warnings.simplefilter("ignore", EDOWarning)
        y = annotations.hard_labels(
            ties="first" if policy == "error" else policy,
            random_state=int(ensemble.settings_.get("random_state") or 0),
        )
    if samples is None:
        samples = SAMPLES if len(q) <= MANY else FEWER
    resampling = Resampling(samples, level, random_state, clusters)
    # As `edo compare` measures, so that a page agrees with the comparison it shows.
    constant = constant_of(ensemble, annotations, y)
    answers = _answers(ensemble, predictions, p)
    scores, losses = score_answers(answers, constant, annotations, y, resampling, about=ABOUT)
    slices = score_slices(find_slices(annotations, by), scores, losses, annotations, resampling)
    curve = reliability_curve(p, q, scale=scale)
    rho = bootstrap(p, q, y, metrics=("entropy_correlation",), scale=scale, **vars(resampling))
    return Evaluation(
        *(name, held_out, pooled, predictions, annotations, y, scores, constant.source),
        ece=curve.ece,
        rho=rho["entropy_correlation"],
        reliability=curve,
        level=level,
        slices=slices,
    )


def _aligned(annotations: Annotations, predictions: Predictions) -> Annotations:
    """The annotations of the predicted items, in their order and with their classes."""
    rows = annotations.rows.positions(predictions.rows)
    if (rows >= 0).all():  # There may be annotations of other items, too.
        annotations = annotations.take(rows)
    # Where items are missing, `align` names them.
    return annotations.align(predictions.rows).with_classes(predictions.classes)


def _answers(ensemble: EDOEnsemble, predictions: Predictions, p: Floats) -> dict[str, Floats]:
    """The probabilities of the ensemble, the uniform mean and the best single member."""
    # The uniform mean is that of the members which the ensemble could choose from.
    members = [member for member in ensemble.members_ if member in predictions.members]
    answers = {"edo": p, "uniform": predictions.select(members).uniform}
    best = ensemble.members_[int(ensemble.member_ce_.argmin())]
    if best in predictions.members and len(predictions.members) > 1:
        single = predictions.select([best]).probabilities[:, 0]
        answers["best-single"] = np.asarray(single, dtype=np.float64)
    return answers
