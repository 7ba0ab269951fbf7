"""The result of a search: its trials, the Pareto front, and the trial chosen from it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import EDOWarning, local_path
from edokit._io.documents import write_json
from edokit._io.tables import write_table
from edokit._types import Floats
from edokit.analysis.search.options import SearchPlan
from edokit.analysis.search.space import trial_settings
from edokit.analysis.search.statistics import non_dominated
from edokit.config import FitConfig, to_parameters
from edokit.ensemble.estimator import EDOEnsemble
from edokit.fitdata.data import FitData
from edokit.metrics import search_metrics
from edokit.objective.settings import SCALE_TERMS
from edokit.runs.folder import output_folder

if TYPE_CHECKING:
    import pyarrow as pa

JOURNAL = "search/journal.log"
TRIALS = "search/trials.parquet"
SUMMARY = "search/search.json"
# A higher F1 is better, as is a lower value of the other two.
_SIGNS = np.array([-1.0, 1.0, 1.0])


@dataclass(frozen=True, eq=False)
class SearchTrial:
    """One configuration, and what came of it."""

    number: int
    generation: int
    slot: int
    searched: Mapping[str, Any]
    """The values of the parameters that the space varies."""
    configuration: FitConfig
    """All parameters."""
    judge: str
    """The estimate by which it competes: ``cross-fitted`` or ``optimistic``."""
    estimates: Mapping[str, Mapping[str, float] | None]
    """Metrics by estimate, ``optimistic`` and ``cross-fitted`` (None without folds).

    They are f1, ce, md, and ce_se, the standard error of ce; on an ordinal scale also rps, rps_se
    and w1."""
    size: int
    weights: tuple[float, ...]
    """The members' weights [K], fitted on all data."""
    metrics: tuple[str, ...] = search_metrics()
    """What the search optimises: F1, the headline metric and a distance."""

    @property
    def headline_metric(self) -> str:
        """The metric that ranks trials: CE, or RPS on an ordinal scale."""
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
    def from_trials(cls, trials: Sequence[SearchTrial]) -> ParetoFront:
        """The front of these trials."""
        is_on_front = non_dominated(_points(trials))
        front = [trial for trial, is_kept in zip(trials, is_on_front, strict=True) if is_kept]
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
    """Sort key: the headline metric, then F1, then the place.

    Places break ties rather than numbers: a trial that is done again gets another number.
    """
    return trial.value(trial.headline_metric), -trial.f1, trial.generation, trial.slot


def _points(trials: Sequence[SearchTrial]) -> Floats:
    """The three metrics of each trial [T, 3], with such signs that lower is better."""
    values = np.array([[trial.value(name) for name in trial.metrics] for trial in trials])
    return np.asarray(values * _SIGNS)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """All trials of a search, the Pareto front, and the trial that was chosen from it.

    Parameters
    ----------
    trials : tuple of SearchTrial
        By generation.
    plan : SearchPlan
        The options of the search with every default resolved.
    members : tuple of str
        Names of the members, in the order of the trials' weights.
    data : FitData
        Predictions and labels of the members, for the ensemble.
    storage : str, default="memory"
        Where the trials are stored, without credentials.
    done_before : int, default=0
        How many of the trials an earlier run had finished.

    Attributes
    ----------
    front : ParetoFront
        The trials that no other beats in F1, CE and MD (ordinal scales: F1, RPS and W1).
    chosen : SearchTrial
        The trial on the front with the lowest CE (ordinal scales: RPS).
    ensemble : EDOEnsemble
        The chosen configuration, fitted on all of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit import search
    >>> P = np.random.default_rng(0).dirichlet([1, 1], size=(40, 3))
    >>> result = search(P, np.arange(40) % 2, trials=10, solver="exact", folds=2)
    >>> sorted(result.to_dict())[:4]
    ['chosen', 'folds', 'front', 'judge']
    """

    trials: tuple[SearchTrial, ...]
    plan: SearchPlan
    members: tuple[str, ...]
    data: FitData = field(repr=False)
    storage: str = "memory"
    done_before: int = 0

    @cached_property
    def front(self) -> ParetoFront:
        """The trials that no other beats."""
        return ParetoFront.from_trials(self.trials)

    @property
    def chosen(self) -> SearchTrial:
        """The trial on the front with the lowest headline metric."""
        return self.front.chosen

    @property
    def rule(self) -> str:
        """How the trial was chosen from the front."""
        return f"lowest-{self.chosen.headline_metric}"

    @cached_property
    def ensemble(self) -> EDOEnsemble:
        """The chosen configuration, fitted on all of the data."""
        return self.refit(self.chosen)

    def refit(self, trial: SearchTrial) -> EDOEnsemble:
        """A trial's configuration, fitted on all of the data."""
        ensemble = EDOEnsemble(**to_parameters(trial.configuration, "paper-fixed"))
        with warnings.catch_warnings():
            # Warnings about the data were given before; those about settings concern no one, since
            # the search has chosen them.
            warnings.simplefilter("ignore", EDOWarning)
            return ensemble.fit(self.data)

    def to_table(self) -> pa.Table:
        """A row per trial: settings, estimates, size, weights, whether on the front and chosen."""
        import pyarrow as pa

        on_front = {trial.number for trial in self.front}
        rows = []
        for trial in self.trials:
            settings = trial_settings(trial.configuration)
            row: dict[str, object] = {
                "number": trial.number,
                "generation": trial.generation,
                "slot": trial.slot,
            }
            # Settings leave out terms of ordered classes that are 0.
            for name in SCALE_TERMS:
                if name in trial.searched:
                    row[name] = 0.0
            for name, value in settings.items():
                # As a setting, "ce" is the kind of cross-entropy; the metric has the name below.
                column = "ce_variant" if name == "ce" else name
                row[column] = value
            row.update(trial.values)
            optimistic = trial.estimates.get("optimistic") or {}
            for name in trial.values:
                row[f"optimistic_{name}"] = optimistic.get(name)
            cross_fitted = trial.estimates.get("cross-fitted") or {}
            for name in trial.values:
                row[f"cross_fitted_{name}"] = cross_fitted.get(name)
            weights = dict(zip(self.members, trial.weights, strict=True))
            row["size"] = trial.size
            row["weights"] = json.dumps(weights, ensure_ascii=False)
            row["on_front"] = trial.number in on_front
            row["chosen"] = trial.number == self.chosen.number
            rows.append(row)
        return pa.Table.from_pylist(rows)

    def to_dict(self) -> dict[str, Any]:
        """The search in plain values, ready for JSON: the number of trials, front and choice."""
        return {
            "study": self.plan.study,
            "trials": len(self.trials),
            "metrics": list(self.chosen.metrics),
            "front": [trial.to_dict() for trial in self.front],
            "chosen": {
                **self.chosen.to_dict(),
                "rule": self.rule,
                "settings": trial_settings(self.chosen.configuration),
                "weights": dict(zip(self.members, self.chosen.weights, strict=True)),
            },
            "judge": self.plan.judge,
            "folds": self.plan.folds,
            "solver": self.plan.solver,
            "population": self.plan.population,
            "seed": self.plan.random_state,
        }

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write ``search/search.json``, ``search/trials.parquet`` and ``ensemble/``.

        Files of these names that EDO did not write are replaced with ``overwrite`` alone.
        """
        folder = local_path(folder)
        with output_folder(folder, "search", overwrite=overwrite):
            self.save_trials(folder)
            self.ensemble.save(folder / "ensemble", overwrite=overwrite)

    def save_trials(self, folder: str | Path) -> None:
        """Write ``search/search.json`` and ``search/trials.parquet``."""
        write_json({**self.to_dict(), "space": self.plan.space.to_dict()}, Path(folder) / SUMMARY)
        write_table(self.to_table(), Path(folder) / TRIALS)
