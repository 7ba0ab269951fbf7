"""`search`: many configurations, the Pareto front, and an ensemble chosen from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from edokit._errors import counted, option, warn
from edokit._progress import Progress
from edokit.analysis.search.options import SearchOptions, SearchPlan
from edokit.analysis.search.result import JOURNAL, SearchResult
from edokit.analysis.search.storage import find_storage, open_storage
from edokit.analysis.search.study import run_study
from edokit.fitdata.data import FitData
from edokit.fitdata.inputs import open_inputs
from edokit.fitdata.reading import (
    LabelsLike,
    PredictionsLike,
    ReadOptions,
    ShardOptions,
    as_shard_options,
    separate_settings,
)
from edokit.fitdata.sharded import ShardedData
from edokit.item_array import Order
from edokit.runs.folder import check_output, output_folder
from edokit.runs.record import RunRecord, begin_run, command_text


def search(
    predictions: PredictionsLike,
    annotations: LabelsLike,
    options: SearchOptions | None = None,
    *,
    split: str | Sequence[str] | None = None,
    order: Order | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    streaming: ShardOptions | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    command: Sequence[str] = (),
    **settings: Any,
) -> SearchResult:
    """Search the settings of the objective with NSGA-II: F1 up, CE and Manhattan distance down.

    On an ordinal scale the ranked probability score and the Wasserstein-1 distance take the place
    of CE and Manhattan distance; the metrics of multi-label data are means over the labels.

    A search that is started again with the same `out` or storage goes on where it stopped; every
    finished trial is kept and counts once.

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
    order : {"annotations"}, optional
        If only the predictions or only the annotations have item ids, they are refused, unless this
        declares that the rows of both are in the same order.
    out : str or Path, optional
        Folder for the trials (``search/``), the ensemble (``ensemble/``) and the run record
        (``run.json``).
    overwrite : bool, default=False
        Replace files in `out` that EDO did not write.
    streaming : ShardOptions or mapping, optional
        Read the predictions shard by shard, with these arguments of `FitData.open`: ``jobs``,
        ``scratch``, ….
    progress : callable, optional
        Called with the finished trials, all trials, and what is being done.
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
    >>> result = search(P, votes, trials=20)
    >>> len(result.trials)
    20
    >>> result.chosen.ce == min(trial.ce for trial in result.front)
    True
    >>> result.ensemble.predict_proba(P).shape
    (60, 2)
    """
    changes, arguments = separate_settings(settings, SearchOptions)
    options = replace(options or SearchOptions(), **changes)
    plan = options.plan()
    reading = ReadOptions.from_arguments(
        arguments,
        split=split,
        ties=options.ties,
        seed=options.random_state,
        shards=as_shard_options(streaming),
        order=order,
    )
    folder = None
    journal = None
    if out is not None:
        folder = Path(out)
        journal = folder / JOURNAL
    inputs = _input_files((predictions, annotations), journal, plan)
    with ExitStack() as stack:
        if folder is not None and plan.worker:  # workers share the folder, and lock it to write
            check_output(folder, "search", *inputs, overwrite=overwrite)
        elif folder is not None:
            guard = output_folder(folder, "search", *inputs, overwrite=overwrite)
            stack.enter_context(guard)
        data = stack.enter_context(open_inputs(predictions, annotations, reading))
        searched_data = data
        if options.groups:
            searched_data = data.grouped()
        plan = _plan_for_data(options, searched_data)
        opened = stack.enter_context(open_storage(plan.storage or journal))
        trials, done_before = run_study(opened, plan, searched_data, progress=progress)
        result = SearchResult(
            tuple(trials), plan, tuple(searched_data.members), data, opened.location, done_before
        )
        if isinstance(data, ShardedData):
            # The ensemble is fitted when it is first read, and the shards are closed by then. So it
            # is read here, while they are open.
            _ = result.ensemble
        if folder is not None:
            guard = output_folder(folder, "search", *inputs, overwrite=overwrite, wait=plan.worker)
            stack.enter_context(guard)
            begin_run(folder)
            result.save(folder, overwrite=overwrite)
            record = RunRecord(
                "search", data.inputs, seed=plan.random_state, command=command_text(command)
            )
            record.save(folder)
    return result


def _input_files(sources: Sequence[object], journal: Path | None, plan: SearchPlan) -> list[Path]:
    """The files that the search must not overwrite.

    They are those that it reads, and a storage other than the journal of the output folder.
    """
    files = [Path(source) for source in sources if isinstance(source, str | Path)]
    storage = find_storage(plan.storage)
    if journal is None or not isinstance(storage, Path):
        return files
    if storage.resolve() != journal.resolve():
        files.append(storage)
    return files


def _plan_for_data(options: SearchOptions, data: FitData) -> SearchPlan:
    """The plan of these options; trials compete in-sample where the data are too few for folds."""
    plan = options.plan()
    if options.folds is not None:
        return plan
    sums = data.summaries()
    is_used = sums.soft_counts > 0
    has_single_item = sums.class_counts[is_used] == 1
    reason = None
    if plan.space.class_weights is not False and has_single_item.any():
        reason = "a class has a single item"
    elif len(data) < 2 * plan.folds:
        reason = f"there are only {counted(len(data), 'item')}"
    if reason is None:
        return plan
    warn(
        f"trials are not estimated on held-out folds, since {reason}; set {option('folds')} to"
        " estimate them"
    )
    return replace(plan, folds=0, judge="optimistic")
