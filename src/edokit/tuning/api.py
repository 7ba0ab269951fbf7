"""The verb `search`: from predictions and annotations to the Pareto front and an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from edokit._errors import InputError, check_number, check_seed, option
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
from edokit.runs import Input, InputReader, RunRecord, command_text, merge_options, with_options
from edokit.scales import NOMINAL, ScaleLike
from edokit.tuning.result import JOURNAL, SearchResult, search_folder
from edokit.tuning.run import Progress, foldable, run_study
from edokit.tuning.space import SearchSpace
from edokit.tuning.storage import open_storage
from edokit.tuning.study import Plan, folds_and_judge
from edokit.tuning.trials import ParetoFront, check_rule


@dataclass(frozen=True)
class SearchOptions:
    """What a search tries, how its trials compete, and where they are stored.

    Parameters
    ----------
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
    storage : str or Path, optional
        Where trials are stored and found again: a file, or ``postgresql://USER@HOST/DATABASE``. By
        default ``search/journal.log`` in the folder of the results; without one, in memory.
    study : str, default="edo"
        Name of the search in its storage.
    worker : bool, default=False
        Share the search on PostgreSQL with other processes.

    Raises
    ------
    InputError
        If an option is invalid.

    Examples
    --------
    >>> from edokit.tuning import SearchOptions
    >>> SearchOptions(trials=20, solver="exact").population
    10
    """

    trials: int = 50
    space: SearchSpace | Literal["thorough", "paper", "ordinal"] = "thorough"
    solver: Literal["gumbel", "exact"] = "gumbel"
    population: int = 10
    folds: int | None = None
    judge: Literal["cross-fitted", "optimistic"] | None = None
    choose: str | None = None
    preference: Mapping[str, float] | None = None
    groups: bool = False
    order: Literal["ce", "given"] = "ce"
    ties: Ties = "first"
    random_state: int = 0
    storage: str | Path | None = None
    study: str = "edo"
    worker: bool = False

    def __post_init__(self) -> None:
        check_rule(self.choose, self.preference)
        check_number("trials", self.trials, 1, whole=True, hint="the paper runs 50")
        check_seed(self.random_state)
        self.plan()

    def plan(self) -> Plan:
        """What must stay the same for the search to be continued."""
        space = SearchSpace.named(self.space) if isinstance(self.space, str) else self.space
        folds, judge = folds_and_judge(self.folds, self.judge, self.solver, space)
        return Plan(
            space=space,
            solver=self.solver,
            population=self.population,
            folds=folds,
            judge=judge,
            seed=self.random_state,
            groups=self.groups,
            order=self.order,
            name=self.study,
        )


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
        Replace files in `out` that EDO did not write. Another search is never replaced.
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
    scale = reading.pop("scale", None)
    if isinstance(annotations, str | Path):
        reading["scale"] = scale
    files = InputReader(**reading)
    folder = None
    if out is not None:
        sources = (predictions, annotations, test_predictions, test_annotations)
        inputs = [Path(source) for source in sources if isinstance(source, str | Path)]
        folder = _Folder(Path(out), options, inputs, overwrite)
    test_sources = _test_sources(test_predictions, test_annotations, annotations, test_split)
    with ExitStack() as stack:
        if folder is not None:
            folder.enter(stack)
        data, fit = _fit_data(
            stack, files, (predictions, annotations, split), options, scale, streaming
        )
        if isinstance(annotations, str | Path):
            warn_if_unanimous(data, annotations, split)
        data = data.grouped() if options.groups else data
        plan = _checked_plan(options, data)
        test = _test_data(files, test_sources, data, fit)
        # A search may take hours, and files may change meanwhile.
        recorded = {} if folder is None else files.inputs()
        default = None if folder is None else folder.path / JOURNAL
        opened = stack.enter_context(open_storage(options.storage or default))
        trials, done_before = run_study(
            opened, plan, data, options.trials, worker=options.worker, progress=progress
        )
        front = ParetoFront.of(trials)
        result = SearchResult(
            trials=tuple(trials),
            front=front,
            chosen=front.choose(options.choose, options.preference),
            plan=plan,
            members=tuple(data.members),
            rule=options.choose or front.usual_rule,
            preference=options.preference,
            fit=fit,
            ties=options.ties,
            storage=opened.shown,
            done_before=done_before,
        )
        if isinstance(fit[0], FitData):
            # Shards are open now, and may not be when someone asks for it.
            _ = result.ensemble
        if test is not None:
            result.test = result.evaluate(*test)
        if folder is not None:
            folder.save(stack, result, recorded, command)
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
    predictions, annotations, split = sources
    drawing: dict[str, Any] = {"ties": options.ties, "random_state": options.random_state}
    if streaming is not None or isinstance(predictions, Shards):
        arguments = files.streamed(predictions, annotations, split) | dict(streaming or {})
        arguments |= {**drawing, "scale": scale}
        predictions = stack.enter_context(FitData.open(predictions, **arguments))
    if isinstance(predictions, FitData):
        return predictions, (predictions,)
    fit = align_inputs(
        files.predictions("predictions", predictions),
        files.annotations("annotations", annotations, split),
        scale,
    )
    return FitData.from_predictions(*fit, **drawing), fit


def _checked_plan(options: SearchOptions, data: FitData) -> Plan:
    """The plan, if it fits the data; without held-out folds where these leave too little."""
    plan = options.plan()
    check_rule(options.choose, options.preference, search_metrics(data.scale))
    plan.space.check_scale(data.scale)
    if options.folds is None and options.judge is None and not foldable(data, plan):
        plan = replace(plan, folds=0, judge="optimistic")
    return plan


def _test_sources(
    predictions: Any, annotations: Any, fit_annotations: Any, split: Any
) -> tuple[Any, Any, Any] | None:
    """Predictions, annotations and split to evaluate on, if there are some."""
    if predictions is None and annotations is not None:
        names = option("test_annotations"), option("test_predictions")
        raise InputError(
            "there are {}, but no {} to evaluate on them".format(*names), f"give {names[1]}, too"
        )
    if predictions is None:
        return None
    return predictions, fit_annotations if annotations is None else annotations, split


def _test_data(
    files: InputReader,
    sources: tuple[Any, Any, Any] | None,
    data: FitData,
    fit: tuple[Any, ...],
) -> tuple[Predictions, Annotations] | None:
    if sources is None:
        return None
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


@dataclass(frozen=True)
class _Folder:
    """The folder that a search writes to."""

    path: Path
    options: SearchOptions
    inputs: Sequence[Path]
    overwrite: bool

    def _lock(self) -> AbstractContextManager[None]:
        plan, storage = self.options.plan(), self.options.storage
        options: Any = {"overwrite": self.overwrite, "wait": self.options.worker}
        return search_folder(self.path, plan, self.inputs, storage, **options)

    def enter(self, stack: ExitStack) -> None:
        """Lock the folder; workers share it, and lock it only while they check or write it."""
        if not self.options.worker:
            stack.enter_context(self._lock())
            return
        with self._lock():
            pass

    def save(
        self,
        stack: ExitStack,
        result: SearchResult,
        recorded: Mapping[str, Input],
        command: Sequence[str],
    ) -> None:
        """Write the result and the command that gives it."""
        if self.options.worker:
            stack.enter_context(self._lock())
        begin_run(self.path)
        result.save(self.path, overwrite=self.overwrite)
        # An earlier run may have finished more trials.
        trials = len(result.trials)
        changes = {} if trials == self.options.trials else {"--trials": trials}
        words = with_options(command, changes) if command else ()
        seed = self.options.random_state
        RunRecord("search", recorded, seed=seed, command=command_text(words)).save(self.path)
