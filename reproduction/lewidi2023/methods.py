"""Every method on every pool: its predictions of the fit and the test items, seed by seed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edokit._errors import EDOWarning
from edokit._types import Floats
from edokit.analysis.compare.method import Method, make_method
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
NEEDS_GROUPS = ("edo-groups", "edo-groups-log")
MethodPredictions = tuple[Predicted, Predicted, int]
"""Predictions of the fit and the test items, and the number of members kept."""


def make(name: str, seed: int) -> Method:
    """A method of the registry or a variant of EDO by name, not fitted yet."""
    if name == "edo-groups":
        return EDOEnsemble(groups=True, random_state=seed)
    if name == "edo-groups-log":
        return EDOEnsemble(groups=True, pool="log", random_state=seed)
    if name == "edo-log":
        return EDOEnsemble(pool="log", random_state=seed)
    if name == "edo-temperature":
        return EDOEnsemble(recalibrate="temperature", random_state=seed)
    return make_method(name, random_state=seed)


def has_groups(members: Pool) -> bool:
    """Whether the members of a seed are in two groups or more."""
    groups = members.sampled(0).fit.groups or ()
    return len(set(groups)) > 1


def fitted(members: Pool, name: str, seed: int) -> MethodPredictions:
    """Predictions of the fit and the test items, and the number of members kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        method = make(name, seed).fit(members.fit, members.fit_labels.annotations)
        fit = _predicted(method, members.fit)
        test = _predicted(method, members.test)
    return fit, test, int(getattr(method, "size_", len(members.fit.members)))


def _predicted(method: Method, predictions: Predictions) -> Predicted:
    hard = np.array([predictions.classes.index(name) for name in method.predict(predictions)])
    return Predicted(method.predict_proba(predictions), hard)


def method_predictions(
    study: Study, dataset: str, pool: str, name: str
) -> list[MethodPredictions] | Missing:
    """A method on the members of each seed: predictions of fit and test items, and its size."""
    members = study.pool(dataset, pool)
    if isinstance(members, Missing):
        return members
    if name in NEEDS_GROUPS and not has_groups(members):
        return Missing(f"the pool {dataset}/{pool} has one group")

    def find() -> list[MethodPredictions]:
        fits = [(members.sampled(seed), name, seed) for seed in range(study.seeds)]
        if name in SLOW:
            return study.each(fitted, fits)
        return [fitted(*fit) for fit in fits]

    return study.once((name, dataset, pool), find)


def method_outcome(
    study: Study, dataset: str, pool: str, name: str, power: float = 1.0
) -> Outcome | Missing:
    """The scores of a method; ``power`` sharpens the odds of its predictions."""
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
    """The number of items: those of dev, and of train where members were cross-fitted."""
    ce: float
    dev_ce: float
    """CE on the items of dev alone."""
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
        """For each power, whether no other is as good in F1, CE and MD and better in one."""
        losses = self.sharpened[:, :3] * [-1, 1, 1]
        return [bool(is_on_front) for is_on_front in non_dominated(losses)]


def held_out_ce(
    study: Study, dataset: str, pools: Sequence[str], names: Sequence[str]
) -> dict[tuple[str, str], HeldOut]:
    """The held-out scores of every method on every pool, by pool and method."""

    def find() -> dict[tuple[str, str], HeldOut]:
        fits = []
        for pool in pools:
            members = study.pool(dataset, pool)
            if isinstance(members, Missing):
                continue
            for name in names:
                if name in NEEDS_GROUPS and not has_groups(members):
                    continue
                fits += [(members.sampled(seed), name, seed) for seed in range(study.seeds)]
        all_scores = study.each(_held_out, fits)
        scores_by_method: dict[tuple[str, str], list[HeldOut]] = {}
        for (members, name, _), scores in zip(fits, all_scores, strict=True):
            scores_by_method.setdefault((members.name, name), []).append(scores)
        return {key: _mean_scores(by_seed) for key, by_seed in scores_by_method.items()}

    return study.once(("choosing on dev", dataset, *pools, *names), find)


def _mean_scores(by_seed: Sequence[HeldOut]) -> HeldOut:
    """The mean over seeds."""
    return HeldOut(
        by_seed[0].items,
        float(np.mean([scores.ce for scores in by_seed])),
        float(np.mean([scores.dev_ce for scores in by_seed])),
        np.mean([scores.sharpened for scores in by_seed], axis=0),
    )


def _held_out(members: Pool, name: str, seed: int) -> HeldOut:
    """Scores of a method on fifths of the items that it was not fitted on."""
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
