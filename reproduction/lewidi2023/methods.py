"""Every method on every pool: its predictions of the fit and the test items, seed by seed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from edokit._errors import EDOWarning
from edokit._types import Floats
from edokit.analysis.compare.method import make_method
from edokit.analysis.search.statistics import non_dominated
from edokit.annotations.core import Annotations
from edokit.ensemble.estimator import EDOEnsemble
from edokit.metrics import ce
from edokit.objective.pools import sharpen
from edokit.predictions.core import Predictions
from reproduction.lewidi2023.study import Missing, Pool, Study
from reproduction.outcomes import Outcome, Predicted, item_scores, outcome

SLOW = ("wel", "wel-ce")
FOLDS = 5
POWERS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
"""Of the odds; below 1 softens, above 1 sharpens."""
# EDO beyond the registry: choices that need groups, or a temperature after pooling.
OWN: Mapping[str, Mapping[str, Any]] = {
    "edo-groups": {"groups": True},
    "edo-groups-log": {"groups": True, "pool": "log"},
    "edo-log": {"pool": "log"},
    "edo-temperature": {"recalibrate": "temperature"},
}
NEEDS_GROUPS = ("edo-groups", "edo-groups-log")


def make(name: str, seed: int) -> Any:
    """A method by name, not fitted yet."""
    if name in OWN:
        return EDOEnsemble(random_state=seed, **OWN[name])
    return make_method(name, random_state=seed)


def fitted(members: Pool, name: str, seed: int) -> tuple[Predicted, Predicted, int]:
    """Predictions of the fit and the test items, and how many members are kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        method = make(name, seed).fit(members.fit, members.fit_labels.annotations)
        fit = _predicted(method, members.fit)
        test = _predicted(method, members.test)
    return fit, test, int(getattr(method, "size_", len(members.fit.members)))


def _predicted(method: Any, predictions: Predictions) -> Predicted:
    hard = np.array([predictions.classes.index(name) for name in method.predict(predictions)])
    return Predicted(method.predict_proba(predictions), hard)


Found = list[tuple[Predicted, Predicted, int]]


def method_predictions(study: Study, dataset: str, pool: str, name: str) -> Found | Missing:
    """A method on the members of each seed: predictions of fit and test items, and its size."""
    members = study.pool(dataset, pool)
    if isinstance(members, Missing):
        return members
    if name in NEEDS_GROUPS and len(set(members.sampled(0).fit.groups or ())) < 2:
        return Missing(f"the pool {dataset}/{pool} has one group")

    def find() -> Found:
        fits = [(members.sampled(seed), name, seed) for seed in range(study.seeds)]
        return study.each(fitted, fits) if name in SLOW else [fitted(*fit) for fit in fits]

    return study.once((name, dataset, pool), find)


def method_outcome(
    study: Study, dataset: str, pool: str, name: str, power: float = 1.0
) -> Outcome | Missing:
    """Its scores; ``power`` sharpens the odds of its predictions."""
    predictions = method_predictions(study, dataset, pool, name)
    members = study.pool(dataset, pool)
    if isinstance(predictions, Missing):
        return predictions
    assert isinstance(members, Pool)
    return outcome(
        [(_sharper(fit, power), _sharper(test, power)) for fit, test, _ in predictions],
        members.fit_labels,
        members.test_labels,
        [size for *_, size in predictions],
    )


def _sharper(predicted: Predicted, power: float) -> Predicted:
    return predicted._replace(probabilities=sharpen(predicted.probabilities, 1.0 / power))


def single_outcome(study: Study, dataset: str, pool: str) -> Outcome | Missing:
    """Single models of a pool: a seed is one of them."""
    members = study.pool(dataset, pool)
    if isinstance(members, Missing):
        return members
    names = list(members.fit.members)

    def find() -> Outcome:
        predictions = []
        for seed in range(min(study.seeds, len(names))):
            member = members.select([names[seed]])
            predictions.append((Predicted(member.fit.uniform), Predicted(member.test.uniform)))
        return outcome(predictions, members.fit_labels, members.test_labels, [1] * len(predictions))

    return study.once(("single", dataset, pool), find)


def constant_outcome(study: Study, dataset: str) -> Outcome | Missing:
    """The shares of the training set as the answer for every test item."""
    answer = study.constant(dataset)
    test = study.labels(dataset, "test")
    if isinstance(answer, Missing):
        return answer
    assert not isinstance(test, Missing)
    scores = item_scores(Predicted(answer), test)
    return Outcome(scores.mean(axis=1)[None], scores[None])


class HeldOut(NamedTuple):
    """CE of a method on held-out items (a fifth at a time), mean over seeds: what to choose by."""

    items: int
    """On how many items: dev's, with train's where members were cross-fitted."""
    ce: float
    dev_ce: float
    """On those of dev alone."""
    sharpened: Floats = np.empty((0, 4))
    """F1, CE, MD and the standard error of CE [powers, 4] with the odds to each of `POWERS`."""

    @property
    def power(self) -> float:
        """The power to sharpen by: the lowest MD among those whose CE is within one standard error
        of the lowest."""
        _, ce_by_power, md, error = self.sharpened.T
        best = int(ce_by_power.argmin())
        near = np.flatnonzero(ce_by_power <= ce_by_power[best] + error[best])
        return POWERS[near[md[near].argmin()]]

    @property
    def front(self) -> list[bool]:
        """Whether no other power is as good in F1, CE and MD and better in one."""
        return [
            bool(is_on_front) for is_on_front in non_dominated(self.sharpened[:, :3] * [-1, 1, 1])
        ]


def held_out_ce(
    study: Study, dataset: str, pools: Sequence[str], names: Sequence[str]
) -> dict[tuple[str, str], HeldOut]:
    """Every method on every pool."""

    def find() -> dict[tuple[str, str], HeldOut]:
        fits = []
        for pool in pools:
            members = study.pool(dataset, pool)
            for name in names if isinstance(members, Pool) else ():
                assert isinstance(members, Pool)
                if name in NEEDS_GROUPS and len(set(members.sampled(0).fit.groups or ())) < 2:
                    continue
                fits += [(members.sampled(seed), name, seed) for seed in range(study.seeds)]
        fold_scores = study.each(_held_out, fits)
        scores: dict[tuple[str, str], list[HeldOut]] = {}
        for (members, name, _), score in zip(fits, fold_scores, strict=True):
            scores.setdefault((members.name, name), []).append(score)
        return {
            key: HeldOut(
                of_method[0].items,
                float(np.mean([fold_score.ce for fold_score in of_method])),
                float(np.mean([fold_score.dev_ce for fold_score in of_method])),
                np.mean([fold_score.sharpened for fold_score in of_method], axis=0),
            )
            for key, of_method in scores.items()
        }

    return study.once(("choosing on dev", dataset, *pools, *names), find)


def _held_out(members: Pool, name: str, seed: int) -> HeldOut:
    n = len(members.fit.items)
    fold = np.random.default_rng([seed, n]).permutation(n) % FOLDS
    predicted = np.zeros((n, len(members.fit.classes)))
    annotations: Annotations = members.fit_labels.annotations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        for held_out_fold in range(FOLDS):
            inside = np.flatnonzero(fold != held_out_fold)
            outside = np.flatnonzero(fold == held_out_fold)
            method = make(name, seed).fit(members.fit.take(inside), annotations.take(inside))
            predicted[outside] = method.predict_proba(members.fit.take(outside))
    soft = members.fit_labels.soft
    dev = members.dev
    powers = []
    for power in POWERS:
        is_correct, losses, distances, _ = item_scores(
            _sharper(Predicted(predicted), power), members.fit_labels
        )
        error = losses.std(ddof=1) / np.sqrt(n)
        powers.append([is_correct.mean(), losses.mean(), distances.mean(), error])
    return HeldOut(n, ce(predicted, soft), ce(predicted[dev], soft[dev]), np.array(powers))
