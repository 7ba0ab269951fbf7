"""The verb `search`: from predictions and annotations to the Pareto front and an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from edokit._errors import InputError, option
from edokit._outputs import begin_run
from edokit.annotations import Annotations
from edokit.ensemble.inputs import (
    align_inputs,
    align_test_inputs,
    check_disjoint,
    read_inputs,
    select_members,
    warn_if_unanimous,
)
from edokit.fitdata import FitData
from edokit.metrics import search_metrics
from edokit.predictions import Predictions
from edokit.runs import InputReader, RunRecord, command_text, merge_options, with_options
from edokit.scales import NOMINAL, ScaleLike
from edokit.tuning.options import Plan, SearchOptions
from edokit.tuning.result import JOURNAL, SearchResult, search_folder
from edokit.tuning.run import Progress, foldable, run_study
from edokit.tuning.storage import open_storage
from edokit.tuning.trials import ParetoFront, check_rule


def search(
    predictions: Any,
    annotations: Any,
    options: SearchOptions | None = None,
    *,
    split: str | Sequence[str] | None = None,
    test_predictions: Any = None,
    test_annotations: Any = None,
    test_split: str | Sequence[str] | None = None,
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
    test_predictions, test_annotations : optional
        Other items, in the same forms, to evaluate the chosen ensemble on. Without
        `test_annotations`, their labels are among `annotations`.
    test_split : str or sequence of str, optional
        Only these splits of the test annotations.
    out : str or Path, optional
        Folder for the trials (``search/``), the ensemble (``ensemble/``) and the run record
        (``run.json``).
    overwrite : bool, default=False
        Replace files in `out` that EDO did not write.
    streaming : mapping, optional
        Read the predictions shard by shard, with these arguments of `FitData.open`: ``memory``,
        ``jobs``, ….
    progress : callable, optional
        Called with the finished trials, all trials, and the best of each metric on the front.
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
    plan = options.plan()
    scale = reading.pop("scale", None)
    if isinstance(annotations, str | Path):
        reading["scale"] = scale
    files = InputReader(**reading)
    files_or_data = (predictions, annotations, test_predictions, test_annotations)
    inputs = [Path(source) for source in files_or_data if isinstance(source, str | Path)]
    folder = None if out is None else Path(out)
    lock = partial(search_folder, folder, plan, inputs, overwrite=overwrite)
    if test_predictions is None and test_annotations is not None:
        names = option("test_annotations"), option("test_predictions")
        raise InputError(
            "there are {}, but no {} to evaluate on them".format(*names), f"give {names[1]}, too"
        )
    with ExitStack() as stack:
        if plan.worker:  # workers share the folder: they lock it while they check or write it
            with lock():
                pass
        else:
            stack.enter_context(lock())
        source = (predictions, annotations, split)
        data, fit = _fit_data(stack, files, source, options, scale, streaming)
        if isinstance(annotations, str | Path):
            warn_if_unanimous(data, annotations, split)
        data = data.grouped() if plan.groups else data
        plan = _checked(options, data)
        test = None
        if test_predictions is not None:
            labels = annotations if test_annotations is None else test_annotations
            test = _test_data(files, (test_predictions, labels, test_split), data, fit)
        # A search may take hours, and files may change meanwhile.
        recorded = {} if folder is None else files.inputs()
        default = None if folder is None else folder / JOURNAL
        opened = stack.enter_context(open_storage(plan.storage or default))
        trials, done_before = run_study(opened, plan, data, progress=progress)
        front = ParetoFront.of(trials)
        result = SearchResult(
            trials=tuple(trials),
            front=front,
            chosen=front.choose(plan.choose),
            plan=plan,
            members=tuple(data.members),
            fit=fit,
            storage=opened.shown,
            done_before=done_before,
        )
        if isinstance(fit[0], FitData):
            # Shards are open now, and may not be when someone asks for it.
            _ = result.ensemble
        if test is not None:
            result.test = result.evaluate(*test)
        if folder is not None:
            if plan.worker:
                stack.enter_context(lock())
            begin_run(folder)
            result.save(folder, overwrite=overwrite)
            # An earlier run may have finished more trials.
            changes = {} if len(trials) == plan.trials else {"--trials": len(trials)}
            words = command_text(with_options(command, changes) if command else ())
            RunRecord("search", recorded, seed=plan.random_state, command=words).save(folder)
    return result


def _fit_data(
    stack: ExitStack,
    files: InputReader,
    sources: tuple[Any, Any, Any],
    options: SearchOptions,
    scale: ScaleLike | None,
    streaming: Mapping[str, Any] | None,
) -> tuple[FitData, tuple[Any, ...]]:
    """The data to learn from, and what the chosen ensemble is fitted on."""
    drawing: dict[str, Any] = {"ties": options.ties, "random_state": options.random_state}
    predictions, labels = read_inputs(stack, files, sources, streaming, {**drawing, "scale": scale})
    if isinstance(predictions, FitData):
        return predictions, (predictions,)
    fit = align_inputs(predictions, labels, scale)
    return FitData.from_predictions(*fit, **drawing), fit


def _checked(options: SearchOptions, data: FitData) -> Plan:
    """The plan, if it fits the data; without held-out folds where these leave too little."""
    plan = options.plan()
    check_rule(plan.choose, search_metrics(data.scale))
    plan.space.check_scale(data.scale)
    if options.folds is None and options.judge is None and not foldable(data, plan):
        plan = replace(plan, folds=0, judge="optimistic")
    return plan


def _test_data(
    files: InputReader, sources: tuple[Any, Any, Any], data: FitData, fit: tuple[Any, ...]
) -> tuple[Predictions, Annotations]:
    """What to evaluate the choice on: other items than it was learned from."""
    predictions, annotations, split = sources
    test = align_test_inputs(
        files.predictions("test_predictions", predictions),
        files.annotations("test_annotations", annotations, split),
        split,
        None if data.scale == NOMINAL else data.scale,
    )
    if isinstance(fit[0], Predictions):
        check_disjoint(fit[0], select_members(test[0], fit[0].members, "test predictions"))
    return test
