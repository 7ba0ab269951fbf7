"""What a search found, and the folder it is kept in."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import EDOWarning, local_path
from edokit._io import write_json
from edokit._io.tables import write_table
from edokit._outputs import output_folder
from edokit.ensemble import EDOEnsemble, from_flat
from edokit.ensemble.inputs import align_inputs
from edokit.metrics import compute_metrics
from edokit.objective.settings import SCALE_TERMS
from edokit.scales import NOMINAL
from edokit.tuning.options import Plan
from edokit.tuning.space import WHOLE_NUMBERS
from edokit.tuning.storage import find_storage
from edokit.tuning.trials import Correlation, ParetoFront, SearchTrial, correlations

if TYPE_CHECKING:
    import pyarrow as pa

JOURNAL, TRIALS, SUMMARY = "search/journal.log", "search/trials.parquet", "search/search.json"


@dataclass(eq=False)
class SearchResult:
    """All trials of a search, the Pareto front, and the trial that was chosen from it.

    Parameters
    ----------
    trials : tuple of SearchTrial
        By generation.
    front : ParetoFront
        The trials that no other beats in F1, CE and MD (ordinal scales: F1, RPS and W1).
    chosen : SearchTrial
        The trial that ``plan.choose`` chose from the front.
    plan : SearchOptions
        What was searched, and how, with everything filled in.
    members : tuple of str
        Names of the members, in the order of the trials' weights.
    fit : sequence
        Predictions and annotations, for the ensemble.
    test : dict or None
        Metrics of the chosen ensemble on the test data, if there were some.
    storage : str, default="memory"
        Where the trials are stored, without credentials.
    done_before : int, default=0
        How many of the trials were there before.

    Attributes
    ----------
    ensemble : EDOEnsemble
        The chosen configuration, fitted on all of the data.
    correlations : list of Correlation
        Spearman's ρ of every numeric parameter and every metric, for each sign of the diversity.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit import search
    >>> P = np.random.default_rng(0).dirichlet([1, 1], size=(40, 3))
    >>> found = search(P, np.arange(40) % 2, trials=10, solver="exact", folds=2)
    >>> sorted(found.to_dict())[:4]
    ['chosen', 'folds', 'front', 'judge']
    """

    trials: tuple[SearchTrial, ...]
    front: ParetoFront
    chosen: SearchTrial
    plan: Plan
    members: tuple[str, ...]
    fit: Sequence[Any] = field(repr=False)
    test: dict[str, float | None] | None = None
    storage: str = "memory"
    done_before: int = 0

    @property
    def rule(self) -> str:
        """How the trial was chosen from the front."""
        return self.plan.choose or self.front.usual_rule

    @cached_property
    def ensemble(self) -> EDOEnsemble:
        """The chosen configuration, fitted on all of the data."""
        return self.refit(self.chosen)

    def refit(self, trial: SearchTrial) -> EDOEnsemble:
        """A trial's configuration, fitted on all of the data."""
        parameters: dict[str, Any] = {
            "solver": self.plan.solver,
            "groups": self.plan.groups,
            "order": self.plan.order,
            "ties": self.plan.ties,
            "random_state": self.plan.random_state,
            **trial.configuration.parameters(self.plan.solver),
        }
        ensemble = EDOEnsemble(**from_flat({"preset": "paper", **parameters}))
        with warnings.catch_warnings():
            # What concerns the data was reported before, and the settings are the search's choice.
            warnings.simplefilter("ignore", EDOWarning)
            return ensemble.fit(*self.fit)

    @cached_property
    def correlations(self) -> list[Correlation]:
        """Spearman's ρ of every numeric parameter and every metric, sign by sign."""
        return correlations(self.trials, self.plan.space)

    def table(self) -> pa.Table:
        """A row per trial: settings, estimates, size, weights, whether on the front and chosen."""
        import pyarrow as pa

        on_front = {trial.number for trial in self.front}
        rows = []
        for trial in self.trials:
            settings = trial.configuration.parameters(self.plan.solver)
            row: dict[str, Any] = {
                "number": trial.number,
                "generation": trial.generation,
                "slot": trial.slot,
                **{name: 0.0 for name in SCALE_TERMS if name in trial.searched},
                # The kind of cross-entropy is not to be taken for its value.
                **{"ce_variant" if name == "ce" else name: v for name, v in settings.items()},
            }
            kinds = {"": trial.judge, "optimistic_": "optimistic", "cross_fitted_": "cross-fitted"}
            for prefix, kind in kinds.items():
                estimate = trial.estimates.get(kind) or {}
                row.update({prefix + name: estimate.get(name) for name in trial.names})
            weights = dict(zip(self.members, trial.weights, strict=False))
            row["size"] = trial.size
            row["weights"] = json.dumps(weights, ensure_ascii=False)
            row["on_front"] = trial.number in on_front
            row["chosen"] = trial.number == self.chosen.number
            rows.append(row)
        texts = ("weights", "diversity", "ce_variant", "pool", "regularize")
        types = {
            **dict.fromkeys(("number", "generation", "slot", "size", *WHOLE_NUMBERS), pa.int64()),
            **dict.fromkeys(("on_front", "chosen", "class_weights"), pa.bool_()),
            **dict.fromkeys(texts, pa.string()),
        }
        schema = pa.schema([(name, types.get(name, pa.float64())) for name in rows[0]])
        return pa.Table.from_pylist(rows, schema)

    def to_dict(self) -> dict[str, Any]:
        """The search in plain values, ready for JSON: trials, front, choice and test metrics."""
        return {
            "study": self.plan.study,
            "trials": len(self.trials),
            "metrics": list(self.chosen.metrics),
            "front": [trial.to_dict() for trial in self.front],
            "chosen": {
                **self.chosen.to_dict(),
                "rule": self.rule,
                "settings": self.chosen.configuration.parameters(self.plan.solver),
                "weights": dict(zip(self.members, self.chosen.weights, strict=True)),
            },
            "judge": self.plan.judge,
            "folds": self.plan.folds,
            "solver": self.plan.solver,
            "population": self.plan.population,
            "seed": self.plan.random_state,
            "test": self.test,
        }

    def evaluate(self, predictions: Any, annotations: Any) -> dict[str, float | None]:
        """All metrics of the chosen ensemble on other data, in the forms that `search` takes."""
        scale = self.ensemble.scale_
        members, labelled = align_inputs(
            predictions, annotations, None if scale == NOMINAL else scale
        )
        y = labelled.hard_labels(ties=self.plan.ties, random_state=self.plan.random_state)
        p = self.ensemble.predict_proba(members)
        return compute_metrics(p, labelled.soft_labels, y, scale=scale)

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
        rows = [{**asdict(row), "significant": row.significant} for row in self.correlations]
        content = {**self.to_dict(), "space": self.plan.space.to_dict(), "correlations": rows}
        write_json(content, Path(folder) / SUMMARY)
        write_table(self.table(), Path(folder) / TRIALS)


@contextmanager
def search_folder(
    folder: Path | None, plan: Plan, inputs: Sequence[Path], *, overwrite: bool = False
) -> Iterator[None]:
    """Lock the folder to search in, if there is one; refused if it holds something else."""
    if folder is None:
        yield
        return
    if plan.storage is not None:
        place = find_storage(plan.storage)
        if isinstance(place, Path) and place.resolve() != (folder / JOURNAL).resolve():
            inputs = [*inputs, place]
    with output_folder(folder, "search", *inputs, overwrite=overwrite, wait=plan.worker):
        yield
