"""The verb `search`: from predictions and annotations to the Pareto front and an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from edokit._errors import InputError, check_number, check_seed
from edokit._outputs import begin_run
from edokit.annotations import Annotations, Ties
from edokit.ensemble.inputs import (
    align_inputs,
    align_test_inputs,
    check_disjoint,
    select_members,
    warn_if_unanimous,
)
from edokit.fitdata import FitData
from edokit.metrics import search_metrics
from edokit.predictions import Predictions, Shards
from edokit.runs import Input, InputReader, RunRecord, command_text, with_options
from edokit.scales import NOMINAL, ScaleLike
from edokit.tuning.result import JOURNAL, SearchResult, earlier_test, search_folder
from edokit.tuning.run import Progress, foldable, run_study
from edokit.tuning.space import SearchSpace
from edokit.tuning.storage import open_storage
from edokit.tuning.study import Plan, folds_and_judge
from edokit.tuning.trials import ParetoFront, check_rule


def search(
    predictions: Any,
    annotations: Any,
    *,
    split: str | Sequence[str] | None = None,
    trials: int = 50,
    space: SearchSpace | Literal["thorough", "paper", "ordinal"] = "thorough",
    solver: Literal["gumbel", "exact"] = "gumbel",
    population: int = 10,
    folds: int | None = None,
    judge: Literal["cross-fitted", "optimistic"] | None = None,
    choose: str | None = None,
    preference: Mapping[str, float] | None = None,
    groups: bool = False,
    order: Literal["ce", "given"] = "ce",
    ties: Ties = "first",
    random_state: int = 0,
    test_predictions: Any = None,
    test_annotations: Any = None,
    test_split: str | Sequence[str] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    storage: str | Path | None = None,
    study: str = "edo",
    worker: bool = False,
    streaming: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    command: Sequence[str] = (),
    scale: ScaleLike | None = None,
    **read_options: Any,
) -> SearchResult:
    """Search the settings of the objective with NSGA-II: F1 up, CE and Manhattan distance down.

    On an ordinal scale the ranked probability score and the Wasserstein-1 distance take the place
    of CE and Manhattan distance; the metrics of sets are means over their labels.

    A search that is started again with the same `out` or `storage` goes on where it stopped, and
    finds what it would have found without the interruption.

    Parameters
    ----------
    predictions : Predictions, array of shape (n_items, n_members, n_classes), Shards, str or Path
        What each member predicts for each item. A path is read as `read_predictions` does; `Shards`
        are read one by one.
    annotations : Annotations, array, str or Path
        The labels of these items, in any form that `EDOEnsemble.fit` takes. A path is read as
        `read_annotations` does.
    split : str or sequence of str, optional
        Only these splits of the annotations.
    trials : int, default=50
        Trials in all, those of an earlier run included.
    space : SearchSpace or {"thorough", "paper", "ordinal"}, default="thorough"
        What to vary. ``thorough``: the objective, with as many steps as weights need to settle.
        ``paper``: also the step size, in ten epochs, which move the weights hardly at all.
        ``ordinal``: as ``thorough``, and the terms of ordered classes.
    solver : {"gumbel", "exact"}, default="gumbel"
        How the weights of a trial are found.
    population : int, default=10
        Trials per generation. All trials of a generation are fitted in one batch.
    folds : int, optional
        Parts of the data that are held out in turn to estimate a trial; 0 for none, 5 by default.
    judge : {"cross-fitted", "optimistic"}, optional
        The estimate by which trials compete: on held-out folds, or in-sample. By default on
        held-out folds; in-sample without `folds`, and for gumbel in the paper's space.
    choose : {"lowest-ce", "lowest-md", "lowest-rps", "lowest-w1", "f1-within-one-se", "knee", \
"closest"}, optional
        How a trial is chosen from the front, see `ParetoFront.choose`. By default ``lowest-ce``,
        on an ordinal scale ``lowest-rps``.
    preference : mapping of str to float, optional
        The point that ``choose="closest"`` is to be close to, for example ``{"f1": 0.9}``.
    groups : bool, default=False
        Average the members of each group first.
    order : {"ce", "given"}, default="ce"
        How members are ranked: by their own CE, or as they are given.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.
    random_state : int, default=0
        Seed of the search, the solver, the folds and random ties.
    test_predictions, test_annotations : optional
        Other items, in the same forms, to evaluate the chosen ensemble on. Without
        `test_annotations`, their labels are among `annotations`.
    test_split : str or sequence of str, optional
        Only these splits of the test annotations.
    out : str or Path, optional
        Folder for the trials (``search/``), the ensemble (``ensemble/``) and the run record
        (``run.json``).
    overwrite : bool, default=False
        Replace files in `out` that EDO did not write. Another search is never replaced.
    storage : str or Path, optional
        Where trials are stored and found again: a file, or ``postgresql://USER@HOST/DATABASE``. By
        default ``search/journal.log`` in `out`; without `out`, in memory.
    study : str, default="edo"
        Name of the search in its storage.
    worker : bool, default=False
        Share the search on PostgreSQL with other processes.
    streaming : mapping, optional
        Read the predictions shard by shard, with these arguments of `FitData.open`: ``memory``,
        ``jobs``, ….
    progress : callable, optional
        Called with the finished trials, all trials, and the best of each metric on the front.
    command : sequence of str, optional
        The command line to record in ``run.json``.
    scale : Scale or str, optional
        The answer scale of arrays, and of data that declare none: ``ordinal``, ``multi-label``, or
        with the classes as in ``ordinal:low=0,mid=1,high=3``.
    **read_options
        Further arguments of `read_annotations`, such as ``columns`` or ``classes``, for annotations
        that are files.

    Returns
    -------
    SearchResult
        All trials, the Pareto front, the chosen trial and its ensemble.

    Raises
    ------
    InputError
        If a parameter, the data or the storage do not do, or `out` or `storage` hold another
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
    check_rule(choose, preference)
    check_number("trials", trials, 1, whole=True, hint="the paper runs 50")
    check_seed(random_state)
    space = SearchSpace.named(space) if isinstance(space, str) else space
    parts, estimate = folds_and_judge(folds, judge, solver, space)
    plan = Plan(
        space=space,
        solver=solver,
        population=population,
        folds=parts,
        judge=estimate,
        seed=random_state,
        groups=groups,
        order=order,
        name=study,
    )
    if test_annotations is not None and test_predictions is None:
        raise InputError(
            "there are test_annotations, but no test_predictions to evaluate on them",
            "give test_predictions, too",
            parameters=("test_annotations", "test_predictions"),
        )
    folder = None if out is None else Path(out)
    if folder is not None:
        given = (predictions, annotations, test_predictions, test_annotations)
        inputs = [Path(source) for source in given if isinstance(source, str | Path)]
        # Workers may share a folder: each has it for itself only while it checks or writes it.
        guard = partial(
            search_folder, folder, plan, inputs, storage, overwrite=overwrite, wait=worker
        )
        storage = folder / JOURNAL if storage is None else storage
    if isinstance(annotations, str | Path):
        read_options["scale"] = scale
    files = InputReader(**read_options)
    with ExitStack() as stack:
        if folder is not None and worker:
            with guard():
                pass
        elif folder is not None:
            stack.enter_context(guard())
        if streaming is not None or isinstance(predictions, Shards):
            how = files.streamed(predictions, annotations, split) | dict(streaming or {})
            how |= {"ties": ties, "random_state": random_state, "scale": scale}
            predictions = stack.enter_context(FitData.open(predictions, **how))
        fit: tuple[Any, ...]
        if isinstance(predictions, FitData):
            data, fit = predictions, (predictions,)
        else:
            fit = align_inputs(
                files.predictions("predictions", predictions),
                files.annotations("annotations", annotations, split),
                scale,
            )
            data = FitData.from_predictions(*fit, ties=ties, random_state=random_state)
        if isinstance(annotations, str | Path):
            warn_if_unanimous(data, annotations, split)
        data = data.grouped() if groups else data
        check_rule(choose, preference, search_metrics(data.scale))
        plan.space.check_scale(data.scale)
        if folds is None and judge is None and not foldable(data, plan):
            plan = replace(plan, folds=0, judge="optimistic")
        test: tuple[Predictions, Annotations] | None = None
        if test_predictions is not None:
            labels = annotations if test_annotations is None else test_annotations
            held = (
                files.predictions("test_predictions", test_predictions),
                files.annotations("test_annotations", labels, test_split),
            )
            own = None if data.scale == NOMINAL else data.scale
            test = align_test_inputs(*held, test_split, own)
            if isinstance(fit[0], Predictions):
                named = select_members(test[0], fit[0].members, "test predictions")
                check_disjoint(fit[0], named)
        # A search may take hours, and files may change meanwhile.
        recorded = {} if folder is None else files.inputs()
        opened = stack.enter_context(open_storage(storage))
        done, before = run_study(opened, plan, data, trials, worker=worker, progress=progress)
        front = ParetoFront.of(done)
        chosen, rule = front.choose(choose, preference), choose or front.usual_rule
        result = SearchResult(
            tuple(done), front, chosen, plan, tuple(data.members), rule, preference, fit, ties
        )
        result.storage, result.done_before = opened.shown, before
        if isinstance(predictions, FitData):
            # Shards are open now, and may not be when someone asks for it.
            _ = result.ensemble
        if folder is not None and worker:
            stack.enter_context(guard())
        earlier: dict[str, Input] = {}
        if test is not None:
            result.test = result.evaluate(*test)
        elif folder is not None:
            result.test, earlier = earlier_test(folder, result)
            result.tested_before = result.test is not None
        if folder is not None:
            # Trials and tests of earlier runs count: the recorded command gives this very result.
            changes: dict[str, object] = {}
            if len(result.trials) != trials:
                changes["--trials"] = len(result.trials)
            for role, source in earlier.items():
                changes[f"--{role.replace('_', '-')}"] = source.path
                if of := source.options.get("split") or source.options.get("splits"):
                    changes["--test-split"] = ",".join(map(str, of)) if isinstance(of, list) else of
            begin_run(folder)
            result.save(folder, overwrite=overwrite)
            command = with_options(command, changes) if command else ()
            RunRecord(
                "search", {**recorded, **earlier}, seed=random_state, command=command_text(command)
            ).save(folder)
    return result
