"""The trials of a search, and those that nothing beats in every respect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edokit._types import Bools, Floats
from edokit.analysis.search.space import Configuration
from edokit.metrics import search_metrics

# F1 is the larger the better, the others the smaller.
_SIGNS = np.array([-1.0, 1.0, 1.0])


@dataclass(frozen=True, eq=False)
class SearchTrial:
    """One configuration, and what came of it."""

    number: int
    generation: int
    slot: int
    searched: Mapping[str, Any]
    """The values of the parameters that the space varies."""
    configuration: Configuration
    """All parameters."""
    judge: str
    """The estimate by which it competes: ``cross-fitted`` or ``optimistic``."""
    estimates: Mapping[str, Mapping[str, float] | None]
    """``optimistic`` and ``cross-fitted``: f1, ce, md and ce_se, the standard error of ce; of
    ordered classes also rps, rps_se and w1."""
    size: int
    weights: tuple[float, ...]
    """[K] fitted on all data."""
    metrics: tuple[str, ...] = search_metrics()
    """What the search optimises: F1, the headline metric and a distance."""

    @property
    def headline(self) -> str:
        """The metric by which the best trial comes first."""
        return self.metrics[1]

    @property
    def values(self) -> Mapping[str, float]:
        """All metrics by the estimate that it competes by."""
        return self.estimates[self.judge] or {}

    @property
    def f1(self) -> float:
        """Its micro-F1, by the estimate that it competes by."""
        return self.value("f1")

    @property
    def ce(self) -> float:
        """Its cross-entropy, likewise."""
        return self.value("ce")

    @property
    def md(self) -> float:
        """Its Manhattan distance, likewise."""
        return self.value("md")

    def value(self, name: str) -> float:
        """A metric by the estimate that it competes by."""
        return self.values[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "trial": self.number,
            "generation": self.generation,
            **self.values,
            "size": self.size,
            "settings": dict(self.searched),
            "estimates": {
                name: estimate and dict(estimate) for name, estimate in self.estimates.items()
            },
        }


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """The non-dominated trials, lowest headline metric (cross-entropy; on an ordinal scale RPS)
    first."""

    trials: tuple[SearchTrial, ...]

    @classmethod
    def of(cls, trials: Sequence[SearchTrial]) -> ParetoFront:
        """The front of these trials."""
        on_front = zip(trials, non_dominated(_points(trials)), strict=True)
        front = [trial for trial, is_kept in on_front if is_kept]
        return cls(tuple(sorted(front, key=_best_first)))

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[SearchTrial]:
        return iter(self.trials)

    @property
    def chosen(self) -> SearchTrial:
        """The trial with the lowest headline metric, the paper's rule."""
        return self.trials[0]


def _best_first(trial: SearchTrial) -> tuple[float, float, int, int]:
    # Places break ties, since a trial that was interrupted gets another number.
    return trial.value(trial.headline), -trial.f1, trial.generation, trial.slot


def non_dominated(points: Floats) -> Bools:
    """[T] whether no other point [T, M] is as small in every column and smaller in one."""
    on_front = np.ones(len(points), dtype=bool)
    for t, point in enumerate(points):
        as_good = (points <= point).all(axis=1)
        on_front[t] = not (as_good & (points < point).any(axis=1)).any()
    return on_front


def _points(trials: Sequence[SearchTrial]) -> Floats:
    """[T, 3] the three metrics, all the smaller the better."""
    values = np.array([[trial.value(name) for name in trial.metrics] for trial in trials])
    return np.asarray(values * _SIGNS)
