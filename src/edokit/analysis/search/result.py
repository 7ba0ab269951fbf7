"""The verb `search`: from predictions and annotations to the Pareto front and an ensemble."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import EDOWarning, local_path
from edokit._io.documents import write_json
from edokit._io.tables import write_table
from edokit.analysis.search.space import Plan, SearchOptions
from edokit.analysis.search.storage import find_storage, open_storage
from edokit.analysis.search.study import Progress, foldable, run_study
from edokit.analysis.search.trials import ParetoFront, SearchTrial
from edokit.config import from_flat
from edokit.ensemble.estimator import EDOEnsemble
from edokit.fitdata.data import FitData
from edokit.fitdata.inputs import align_inputs, read_inputs
from edokit.objective.settings import SCALE_TERMS
from edokit.runs.folder import check_output, output_folder
from edokit.runs.inputs import InputReader, merge_options
from edokit.runs.record import RunRecord, begin_run, command_text
from edokit.scales import ScaleLike

if TYPE_CHECKING:
    import pyarrow as pa

JOURNAL, TRIALS, SUMMARY = "search/journal.log", "search/trials.parquet", "search/search.json"


def search(
    predictions: Any,
    annotations: Any,
    options: SearchOptions | None = None,
    *,
    split: str | Sequence[str] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    streaming: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    command: Sequence[str] = (),
    **settings: Any,
) -> SearchResult:
    """Search the settings of the objective with NSGA-II: F1 up, CE and Manhattan distance down.

    On an ordinal scale the ranked probability score and the Wasserstein-1 distance take the place
    of CE and Manhattan distance; the metrics of sets are means over their labels.

    A search that is started again with the same `out` or storage goes on where it stopped, and
    finds what it would have found without the interruption.

    Parameters
    ----------
    predictions : Predictions, array of shape (n_items, n_members, n_classes), Shards, str or Path
        What each member predicts for each item. A path is read as `read_predictions` does; `Shards`
        are read one by one.
    annotations : Annotations, array, str or Path
        The labels of these items, in any form that `EDOEnsemble.fit` takes. A path is read as
        `read_annotations` does.
    options : SearchOptions, optional
        What to try, how trials compete, and where they are stored.
    split : str or sequence of str, optional
        Only these splits of the annotations.
    out : str or Path, optional
        Folder for the trials (``search/``), the ensemble (``ensemble/``) and the run record
        (``run.json``).
    overwrite : bool, default=False
        Replace files in `out` that EDO did not write.
    streaming : mapping, optional
        Read the predictions shard by shard, with these arguments of `FitData.open`: ``jobs``,
        ``scratch``, ….
    progress : callable, optional
        Called with the finished trials and all trials.
    command : sequence of str, optional
        The command line to record in ``run.json``.
    **settings
        Single fields of `SearchOptions`, such as ``trials=20``; ``scale``, the answer scale of
        arrays and of data that declare none (``ordinal``, ``multi-label``, or with the classes as
        in ``ordinal:low=0,mid=1,high=3``); and further arguments of `read_annotations`, such as
        ``columns`` or ``classes``, for annotations that are files.

    Returns
    -------
    SearchResult
        All trials, the Pareto front, the chosen trial and its ensemble.

    Raises
    ------
    InputError
        If an option, the data or the storage is invalid, or `out` or the storage holds another
        search. Everything that can be checked is checked before the first trial.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit import search
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1], size=(60, 4))
    >>> votes = rng.integers(0, 2, size=(60, 5))
    >>> found = search(P, votes, trials=20)
    >>> len(found.trials), found.chosen.ce == min(trial.ce for trial in found.front)
    (20, True)
    >>> found.ensemble.predict_proba(P).shape
    (60, 2)
    """
    options, reading = merge_options(SearchOptions, options, settings)
    plan, folder = options.plan(), None if out is None else Path(out)
    scale = reading.pop("scale", None)
    if isinstance(annotations, str | Path):
        reading["scale"] = scale
    files = InputReader(**reading)
    inputs = _input_files((predictions, annotations), folder, plan)
    with ExitStack() as stack:
        if folder is not None and plan.worker:  # workers share the folder, and lock it to write
            check_output(folder, "search", *inputs, overwrite=overwrite)
        elif folder is not None:
            guard = output_folder(folder, "search", *inputs, overwrite=overwrite)
            stack.enter_context(guard)
        source = (predictions, annotations, split)
        data, fit = _fit_data(stack, files, source, options, scale, streaming)
        plan = _checked(options, data)
        # A search may take hours, and files may change meanwhile.
        recorded = {} if folder is None else files.inputs
        default = None if folder is None else folder / JOURNAL
        opened = stack.enter_context(open_storage(plan.storage or default))
        trials, done_before = run_study(opened, plan, data, progress=progress)
        result = SearchResult(
            tuple(trials), plan, tuple(data.members), fit, opened.shown, done_before
        )
        if isinstance(fit[0], FitData):
            # Shards are open now, and may not be when someone asks for it.
            _ = result.ensemble
        if folder is not None:
            guard = output_folder(folder, "search", *inputs, overwrite=overwrite, wait=plan.worker)
            stack.enter_context(guard)
            begin_run(folder)
            result.save(folder, overwrite=overwrite)
            words = command_text(command)
            RunRecord("search", recorded, seed=plan.random_state, command=words).save(folder)
    return result


def _input_files(sources: Sequence[Any], folder: Path | None, plan: Plan) -> list[Path]:
    """The files that are read, and a storage other than the folder's own: they must be kept."""
    files = [Path(source) for source in sources if isinstance(source, str | Path)]
    storage = find_storage(plan.storage)
    if isinstance(storage, Path) and folder is not None:
        is_own = storage.resolve() == (folder / JOURNAL).resolve()
        files += [] if is_own else [storage]
    return files


def _fit_data(
    stack: ExitStack,
    files: InputReader,
    source: tuple[Any, Any, Any],
    options: SearchOptions,
    scale: ScaleLike | None,
    streaming: Mapping[str, Any] | None,
) -> tuple[FitData, Sequence[Any]]:
    """The data to learn from, and what the chosen ensemble is fitted on."""
    drawing: dict[str, Any] = {"ties": options.ties, "random_state": options.random_state}
    predictions, labels = read_inputs(stack, files, source, streaming, {**drawing, "scale": scale})
    fit: Sequence[Any] = (predictions,)
    data = predictions
    if not isinstance(predictions, FitData):
        fit = align_inputs(predictions, labels, scale)
        data = FitData.from_predictions(*fit, **drawing)
    return data.grouped() if options.groups else data, fit


def _checked(options: SearchOptions, data: FitData) -> Plan:
    """The plan, if it fits the data; without held-out folds where these leave too little."""
    plan = options.plan()
    if options.folds is None and not foldable(data, plan):
        plan = replace(plan, folds=0, judge="optimistic")
    return plan


@dataclass(eq=False)
class SearchResult:
    """All trials of a search, the Pareto front, and the trial that was chosen from it.

    Parameters
    ----------
    trials : tuple of SearchTrial
        By generation.
    plan : SearchOptions
        What was searched, and how, with everything filled in.
    members : tuple of str
        Names of the members, in the order of the trials' weights.
    fit : sequence
        Predictions and annotations, for the ensemble.
    storage : str, default="memory"
        Where the trials are stored, without credentials.
    done_before : int, default=0
        How many of the trials were there before.

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
    >>> found = search(P, np.arange(40) % 2, trials=10, solver="exact", folds=2)
    >>> sorted(found.to_dict())[:4]
    ['chosen', 'folds', 'front', 'judge']
    """

    trials: tuple[SearchTrial, ...]
    plan: Plan
    members: tuple[str, ...]
    fit: Sequence[Any] = field(repr=False)
    storage: str = "memory"
    done_before: int = 0

    @cached_property
    def front(self) -> ParetoFront:
        """The trials that no other beats."""
        return ParetoFront.of(self.trials)

    @property
    def chosen(self) -> SearchTrial:
        """The trial on the front with the lowest headline metric."""
        return self.front.chosen

    @property
    def rule(self) -> str:
        """How the trial was chosen from the front."""
        return f"lowest-{self.chosen.headline}"

    @cached_property
    def ensemble(self) -> EDOEnsemble:
        """The chosen configuration, fitted on all of the data."""
        return self.refit(self.chosen)

    def refit(self, trial: SearchTrial) -> EDOEnsemble:
        """A trial's configuration, fitted on all of the data."""
        parameters: dict[str, Any] = {
            "solver": self.plan.solver,
            "groups": self.plan.groups,
            "ties": self.plan.ties,
            "random_state": self.plan.random_state,
            **trial.configuration.parameters(self.plan.solver),
        }
        ensemble = EDOEnsemble(**from_flat({"preset": "paper", **parameters}))
        with warnings.catch_warnings():
            # What concerns the data was reported before, and the settings are the search's choice.
            warnings.simplefilter("ignore", EDOWarning)
            return ensemble.fit(*self.fit)

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
                row.update({prefix + name: estimate.get(name) for name in trial.values})
            weights = dict(zip(self.members, trial.weights, strict=False))
            row["size"] = trial.size
            row["weights"] = json.dumps(weights, ensure_ascii=False)
            row["on_front"] = trial.number in on_front
            row["chosen"] = trial.number == self.chosen.number
            rows.append(row)
        return pa.Table.from_pylist(rows)

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
        write_table(self.table(), Path(folder) / TRIALS)
