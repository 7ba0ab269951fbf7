"""The ensemble evaluated on a set of items, beside uniform mean, best member and a constant."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from edokit._errors import EDOWarning
from edokit._types import Codes, Floats
from edokit.analysis.evaluate.answers import EvaluatedAnswers
from edokit.analysis.evaluate.options import EvaluateOptions
from edokit.analysis.evaluate.result import Evaluation
from edokit.analysis.evaluate.statistics import evaluate_answers
from edokit.analysis.scores.result import Score
from edokit.analysis.scores.statistics import find_constant
from edokit.annotations.core import Annotations, Ties
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.pooled import Pooled
from edokit.metrics import item_values, search_metrics
from edokit.predictions.core import ANONYMOUS, Predictions
from edokit.scales import Scale, check_same_scale

# Bootstrap samples, and their smaller number for tables with many items.
SAMPLES = 1000
SAMPLES_OF_MANY_ITEMS = 200
MANY_ITEMS = 20_000


@dataclass(frozen=True, eq=False)
class EvaluatedItems:
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
    result : edokit.analysis.evaluate.result.Evaluation or None
        What `edokit.evaluate` says of them.
    """

    name: str
    held_out: bool | None
    pooled: Pooled
    predictions: Predictions
    annotations: Annotations | None = None
    hard_labels: Codes | None = None
    result: Evaluation | None = None

    @property
    def are_pairs(self) -> bool:
        """Whether they are pairs of an item and an annotator."""
        return self.predictions.rows.are_pairs

    @property
    def metrics(self) -> dict[str, float | None]:
        """Every metric of the ensemble."""
        if self.result is None:
            return {}
        return self.result.metrics

    @property
    def scores(self) -> tuple[Score, ...]:
        """Of the ensemble, the uniform mean, the best single member and the constant."""
        if self.result is None:
            return ()
        return self.result.scores

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        return self.pooled.scale

    @property
    def distance_metric(self) -> str:
        """How far probabilities are from soft labels: MD, or W1 on an ordinal scale."""
        return search_metrics(self.scale)[-1]

    @cached_property
    def distance(self) -> Floats | None:
        """`distance_metric` of each item [N]: ‖p − q‖₁, or W1 in units of the scale."""
        if self.annotations is None or self.hard_labels is None:
            return None
        distance = item_values(self.scale)[self.distance_metric]
        return distance(self.pooled.probabilities, self.annotations.soft_labels, self.hard_labels)


def evaluate_items(
    ensemble: EDOEnsemble,
    predictions: Predictions,
    annotations: Annotations | None,
    *,
    name: str,
    held_out: bool | None,
    **options: Any,
) -> EvaluatedItems:
    """Pool the predictions and compare them with the annotations, matched by item.

    ``options`` are those of `EvaluateOptions`; there are 1,000 bootstrap samples, or 200 for more
    than 20,000 items.
    """
    if predictions.rows.people:  # each pair is an item of the page
        anonymous = any(member.endswith(ANONYMOUS) for member in ensemble.members_)
        predictions = predictions.pairs(anonymous=anonymous)
        if annotations is not None:
            annotations = annotations.pairs()
    if predictions.rows.clusters is not None:
        name = name.replace("items", "pairs")
    predictions = predictions.order_classes(tuple(ensemble.classes_))
    pooled = ensemble.describe(predictions)
    if annotations is None:
        return EvaluatedItems(name, held_out, pooled, predictions)
    annotations = _aligned(annotations, predictions)
    check_same_scale(annotations.scale, "annotations", pooled.scale, "ensemble")
    ties: Ties = ensemble.settings_.get("ties", "first")
    if ties == "error":
        ties = "first"
    with warnings.catch_warnings():
        # Fitting warned of ties already.
        warnings.simplefilter("ignore", EDOWarning)
        y = annotations.hard_labels(
            ties=ties,
            random_state=int(ensemble.settings_.get("random_state") or 0),
        )
    # As `edo compare` measures, so that a page agrees with the comparison it shows.
    samples = SAMPLES
    if len(y) > MANY_ITEMS:
        samples = SAMPLES_OF_MANY_ITEMS
    options = {"samples": samples, **options}
    result = evaluate_answers(
        _answers(ensemble, predictions, pooled.probabilities, annotations),
        y,
        find_constant(ensemble, annotations, y),
        {},
        EvaluateOptions(**options),
        "The ensemble",
    )
    return EvaluatedItems(name, held_out, pooled, predictions, annotations, y, result)


def _aligned(annotations: Annotations, predictions: Predictions) -> Annotations:
    """The annotations of the predicted items, in their order and with their classes."""
    rows = annotations.rows.positions(predictions.rows)
    if (rows >= 0).all():  # There may be annotations of other items, too.
        annotations = annotations.take(rows)
    # Where items are missing, `align` names them.
    return annotations.align(predictions.rows).with_classes(predictions.classes)


def _answers(
    ensemble: EDOEnsemble, predictions: Predictions, p: Floats, annotations: Annotations
) -> EvaluatedAnswers:
    """The probabilities of the ensemble, the uniform mean and the best single member."""
    # The uniform mean is that of the members which the ensemble could choose from.
    members = [member for member in ensemble.members_ if member in predictions.members]
    answers = {"edo": p, "uniform": predictions.select(members).uniform}
    best = ensemble.members_[int(ensemble.member_ce_.argmin())]
    if best in predictions.members and len(predictions.members) > 1:
        answers["best-single"] = predictions.select([best]).uniform
    return EvaluatedAnswers(annotations, answers)
