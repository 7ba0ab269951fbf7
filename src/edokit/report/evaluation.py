"""What the ensemble says of a set of items, and how near that is to what people said."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning
from edokit._types import Floats
from edokit.annotations import Annotations
from edokit.baselines.scores import METRICS, Score, item_scores
from edokit.baselines.scores import judged as score_methods
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.fitted import Pooled
from edokit.metrics import (
    PairedTest,
    Reliability,
    bootstrap,
    compute_metrics,
    entropy_correlation,
    md_items,
    reliability_curve,
)
from edokit.predictions import Predictions

ABOUT = {
    "edo": "this ensemble",
    "uniform": "the plain mean of all members",
    "best-single": "the member that is best alone on the fit data",
}
MORE = ("entropy_correlation", "ece")
"""What is told of the ensemble alone."""
SAMPLES, FEWER = 1000, 200
"""Resamples behind the intervals, and for more than ``MANY`` items."""
MANY = 20_000


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Items with the pool's answers and, where they are known, the people's."""

    what: str
    """Which items these are, in words: ``test items``."""
    held_out: bool | None
    """Whether the ensemble was learned without them; None if that is not known."""
    pooled: Pooled
    """The pool's answers."""
    predictions: Predictions
    """The members' answers, in the same order of items and classes."""
    people: Annotations | None
    """Who said what, in the same order of items."""
    hard: npt.NDArray[Any] | None
    """Hard label of each item [N]."""
    methods: list[dict[str, Any]]
    """EDO, the plain mean and the best single member: metrics and intervals."""
    gains: dict[str, PairedTest]
    """EDO less the plain mean, for each of F1, CE, MD and BS."""
    reliability: Reliability | None
    """Predicted probabilities against shares of annotators."""
    correlation: float | None
    """Spearman's ρ of predicted and human entropy."""
    level: float = 0.95
    """Of the intervals."""

    @property
    def metrics(self) -> dict[str, Any]:
        """EDO's own row."""
        return self.methods[0] if self.methods else {}

    @property
    def predicted_entropy(self) -> Floats:
        """[N] in nats."""
        return self.pooled.entropy

    @property
    def human_entropy(self) -> Floats | None:
        """[N] in nats."""
        return None if self.people is None else self.people.entropy

    @property
    def distance(self) -> Floats | None:
        """‖p − q‖₁ of each item [N]."""
        if self.people is None:
            return None
        return md_items(self.pooled.probabilities, self.people.soft_labels)

    @cached_property
    def distances(self) -> Floats:
        """Mean L1 distance between members [K, K], in the order of ``predictions``."""
        P = self.predictions.probabilities
        members = P.shape[1]
        apart = np.zeros((members, members))
        for k in range(members):
            for other in range(k):
                gap = np.abs(P[:, k] - P[:, other]).sum(axis=1).mean(dtype=np.float64)
                apart[k, other] = apart[other, k] = gap
        return apart

    @property
    def fullest(self) -> float:
        """The largest entropy there can be: ln C."""
        return float(np.log(max(len(self.pooled.classes), 2)))


def evaluate_items(
    ensemble: EDOEnsemble,
    predictions: Predictions,
    people: Annotations | None,
    *,
    what: str,
    held_out: bool | None,
    seed: int = 0,
    samples: int | None = None,
    level: float = 0.95,
) -> Evaluation:
    """Pool the predictions and compare with the people, matched by item.

    ``samples``: resamples behind the intervals of this ``level``; unless told, 1,000, or 200 for
    many items.
    """
    predictions = predictions.order_classes(tuple(ensemble.classes_))
    pooled = ensemble.describe(predictions)
    if people is None:
        return Evaluation(what, held_out, pooled, predictions, None, None, [], {}, None, None)
    people = matched(people, predictions)
    q, y = people.soft_labels, hard_labels(people, ensemble)
    p = pooled.probabilities
    answers = {"edo": p, "uniform": _uniform(ensemble, predictions)}
    best = ensemble.members_[int(ensemble.member_ce_.argmin())]
    if best in predictions.members and len(predictions.members) > 1:
        alone = predictions.select([best]).probabilities[:, 0]
        answers["best-single"] = np.asarray(alone, dtype=np.float64)
    if samples is None:
        samples = SAMPLES if len(q) <= MANY else FEWER
    # The comparison of methods measures in the same way, so that a page agrees with it.
    losses = {name: item_scores(answer, answer.argmax(1), q, y) for name, answer in answers.items()}
    scores = score_methods(
        [Score(name, ABOUT[name]) for name in answers],
        losses,
        "uniform",
        samples=samples,
        level=level,
        seed=seed,
    )
    methods = [_row(score) for score in scores]
    methods[0] |= compute_metrics(p, q, y, metrics=MORE)
    more = bootstrap(p, q, y, metrics=MORE, samples=samples, level=level, random_state=seed)
    methods[0]["intervals"] |= {name: [one.low, one.high] for name, one in more.items()}
    return Evaluation(
        what=what,
        held_out=held_out,
        pooled=pooled,
        predictions=predictions,
        people=people,
        hard=y,
        methods=methods,
        gains=dict(scores[0].against),
        reliability=reliability_curve(p, q),
        correlation=entropy_correlation(p, q),
        level=level,
    )


def matched(people: Annotations, predictions: Predictions) -> Annotations:
    """The annotations of the predicted items, in their order; a file may hold other items, too."""
    position = {name: i for i, name in enumerate(people.items)}
    found = [position[name] for name in predictions.items if name in position]
    if len(found) == len(predictions.items):
        people = people.take(np.array(found, dtype=np.int64))
    # Otherwise this says which items are missing.
    people = people.align(predictions.items)
    return people.with_classes(predictions.classes)


def hard_labels(people: Annotations, ensemble: EDOEnsemble) -> npt.NDArray[Any]:
    """Hard labels as the ensemble settles ties, without telling of them again."""
    policy = str(ensemble.settings_.get("ties", "first"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        return people.hard_labels(
            ties="first" if policy == "error" else policy,
            random_state=int(ensemble.settings_.get("random_state") or 0),
        )


def _uniform(ensemble: EDOEnsemble, predictions: Predictions) -> Floats:
    """The plain mean of the members that the ensemble could choose from."""
    known = [name for name in ensemble.members_ if name in predictions.members]
    return predictions.select(known).uniform


def _row(score: Score) -> dict[str, Any]:
    told = score.to_dict()
    return {key: told[key] for key in ("name", "about", *METRICS, "intervals")}
