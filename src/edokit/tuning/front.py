"""The trials that nothing beats in every respect, and ways to choose one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edokit._errors import InputError, one_of
from edokit._types import Floats
from edokit.metrics import SEARCH_METRICS
from edokit.tuning.trials import SearchTrial

# F1 is the larger the better, the others the smaller.
_SIGNS = np.array([-1.0, 1.0, 1.0])


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """The non-dominated trials, lowest cross-entropy first."""

    trials: tuple[SearchTrial, ...]

    @classmethod
    def of(cls, trials: Sequence[SearchTrial]) -> ParetoFront:
        """The front of these trials; failed ones are passed over."""
        able = [trial for trial in trials if trial.estimates]
        if not able:
            reasons = [trial.failure for trial in trials if trial.failure]
            first = f", the first with {reasons[0]!r}" if reasons else ""
            raise InputError(
                f"there is no Pareto front, since all {len(trials)} trials failed{first}",
                "check the predictions, and narrow the space where the trials failed",
            )
        kept = non_dominated(_points(able))
        front = [trial for trial, keep in zip(able, kept, strict=True) if keep]
        return cls(tuple(sorted(front, key=lambda trial: (trial.ce, -trial.f1, trial.number))))

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[SearchTrial]:
        return iter(self.trials)

    def choose(
        self, rule: str = "lowest-ce", preference: Mapping[str, float] | None = None
    ) -> SearchTrial:
        """Choose one trial of the front.

        Parameters
        ----------
        rule : {"lowest-ce", "f1-within-one-se", "knee", "closest"}, default="lowest-ce"
            ``lowest-ce`` is the paper's. ``f1-within-one-se``: the highest F1 among those whose CE
            is within one standard error of the lowest. ``knee``: the lowest sum of the three
            metrics, each scaled to run from 0 (best on the front) to 1. ``closest``: nearest to the
            preference, on the same scales.
        preference : mapping of str to float, optional
            The point to be close to, for example ``{"f1": 0.9, "md": 0.2}``.

        Returns
        -------
        SearchTrial

        Raises
        ------
        InputError
            If there is no such rule, or a preference is missing or not needed.
        """
        check_rule(rule, preference)
        if preference is not None:
            return self._closest(preference)
        return RULES[rule](self)

    @property
    def best(self) -> dict[str, float]:
        """The best F1, CE and MD on the front, each for itself."""
        points = _points(self.trials)
        best = points.min(axis=0) * _SIGNS
        return dict(zip(SEARCH_METRICS, map(float, best), strict=True))

    def _closest(self, preference: Mapping[str, float]) -> SearchTrial:
        columns = [SEARCH_METRICS.index(name) for name in preference]
        points = _points(self.trials)
        wanted = np.array(list(preference.values())) * _SIGNS[columns]
        apart = (points[:, columns] - wanted) / _spans(points)[columns]
        return self.trials[int(np.argmin(np.square(apart).sum(axis=1)))]


def check_rule(rule: str, preference: Mapping[str, float] | None) -> None:
    """Refuse a rule that does not exist, and a preference that it has no use for."""
    one_of("choose", rule, (*RULES, "closest"))
    if rule != "closest":
        if preference is not None:
            raise InputError(
                f"choose={rule!r} takes no preference",
                "give choose='closest', or leave the preference out",
                parameters=("choose", "preference"),
            )
        return
    if not preference:
        raise InputError(
            "choose='closest' needs a preference",
            'give one, for example preference={"f1": 0.9, "ce": 0.3}',
            parameters=("choose", "preference"),
        )
    for name, value in preference.items():
        one_of("a preference", name, SEARCH_METRICS)
        if not np.isfinite(value):
            raise InputError(
                f"the preference for {name} is {value!r}, which is no number", "give a number"
            )


def non_dominated(points: Floats) -> NDArray[np.bool_]:
    """[T] whether no other point [T, M] is as small in every column and smaller in one."""
    kept = np.ones(len(points), dtype=bool)
    for t, point in enumerate(points):
        as_good = (points <= point).all(axis=1)
        kept[t] = not (as_good & (points < point).any(axis=1)).any()
    return kept


def _points(trials: Sequence[SearchTrial]) -> Floats:
    """[T, 3] the three metrics, all the smaller the better."""
    values = np.array([[getattr(trial, name) for name in SEARCH_METRICS] for trial in trials])
    points: Floats = values * _SIGNS
    return points


def _spans(points: Floats) -> Floats:
    """How far each metric runs on the front; 1 where it does not."""
    span = np.ptp(points, axis=0)
    return np.where(span > 0, span, 1.0)


def _lowest_ce(front: ParetoFront) -> SearchTrial:
    return front.trials[0]


def _f1_within_one_se(front: ParetoFront) -> SearchTrial:
    limit = front.trials[0].ce + front.trials[0].ce_se
    near = [trial for trial in front if trial.ce <= limit]
    return max(near, key=lambda trial: (trial.f1, -trial.ce))


def _knee(front: ParetoFront) -> SearchTrial:
    points = _points(front.trials)
    scaled = (points - points.min(axis=0)) / _spans(points)
    return front.trials[int(np.argmin(scaled.sum(axis=1)))]


RULES: Mapping[str, Callable[[ParetoFront], SearchTrial]] = {
    "lowest-ce": _lowest_ce,
    "f1-within-one-se": _f1_within_one_se,
    "knee": _knee,
}
"""The rules by name; ``closest`` is another, which needs a preference."""
