"""One call from predictions and answers to the front and the chosen ensemble."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import EDOWarning
from edokit.annotations import Annotations
from edokit.ensemble.inputs import as_predictions, named_groups, together
from edokit.objective import average_groups, group_names
from edokit.objective.sharded import LabelledShards
from edokit.predictions import Predictions, Shards
from edokit.search.data import ArrayData, FitData
from edokit.search.front import check_rule
from edokit.search.plan import Plan, check_trials, folds_and_judge
from edokit.search.result import SearchResult, result_of
from edokit.search.run import Progress, run
from edokit.search.sharded import ShardData
from edokit.search.space import SearchSpace
from edokit.search.storage import Opened, open_storage
from edokit.search.study import open_study
from edokit.search.workers import run_worker


def search(
    predictions: Any,
    annotations: Any,
    *,
    trials: int = 50,
    space: SearchSpace | None = None,
    solver: str = "gumbel",
    population: int = 10,
    folds: int | None = None,
    judge: str | None = None,
    choose: str = "lowest-ce",
    preference: Mapping[str, float] | None = None,
    seed: int = 0,
    groups: bool = False,
    order: str = "ce",
    ties: str = "first",
    storage: str | Path | Opened | None = None,
    study: str = "edo",
    worker: bool = False,
    progress: Progress | None = None,
) -> SearchResult:
    """Search the ``space`` with NSGA-II: F1 up, cross-entropy and Manhattan distance down.

    ``predictions`` and ``annotations`` are those of `EDOEnsemble.fit`, shards included. Each trial
    has two estimates: on the data it was fitted on (``optimistic``), and on ``folds`` held-out
    parts of them (``cross-fitted``; 0 for none). ``judge`` says by which of them trials compete:
    unless told, by the held-out one if ``folds`` are given, else by what proved better for the
    solver. ``choose`` names how a trial is picked from the front (`ParetoFront.choose`).
    ``storage`` keeps the trials: a file or a PostgreSQL URL; a search with the same storage and
    ``study`` name goes on where it stopped. Without it they are kept in memory. A ``worker`` shares
    the search on PostgreSQL with others.
    """
    plan = planned(
        trials=trials,
        space=space,
        solver=solver,
        population=population,
        folds=folds,
        judge=judge,
        choose=choose,
        preference=preference,
        seed=seed,
        groups=groups,
        order=order,
        study=study,
    )
    with ExitStack() as stack:
        if isinstance(predictions, Shards):
            labelled = LabelledShards.open(predictions, annotations, ties=ties, seed=seed)
            predictions = stack.enter_context(labelled)
        data: FitData
        fit: tuple[Any, ...]
        if isinstance(predictions, LabelledShards):
            data, fit = ShardData.of(predictions, groups=groups), (predictions,)
        else:
            fit = together(as_predictions(predictions), annotations)
            data = fit_data(*fit, groups=groups, ties=ties, seed=seed)
            if folds is None and judge is None and not _foldable(data, plan):
                plan = replace(plan, folds=0, judge="optimistic")
        if isinstance(storage, Opened):
            opened = storage
        else:
            opened = stack.enter_context(open_storage(storage))
        if worker:
            run_worker(opened, plan, data, trials, progress)
        begun = opened.alone(lambda: open_study(opened.storage, plan, data))
        run(begun, plan, data, trials, claims=opened.claims(), progress=progress)
        found = result_of(
            begun,
            plan,
            data.members,
            fit,
            choose=choose,
            preference=preference,
            ties=ties,
        )
        if isinstance(predictions, LabelledShards):
            # Shards are open now, and may not be when someone asks for it.
            _ = found.ensemble
        return found


def planned(
    *,
    trials: int = 50,
    space: SearchSpace | None = None,
    solver: str = "gumbel",
    population: int = 10,
    folds: int | None = None,
    judge: str | None = None,
    choose: str = "lowest-ce",
    preference: Mapping[str, float] | None = None,
    seed: int = 0,
    groups: bool = False,
    order: str = "ce",
    study: str = "edo",
) -> Plan:
    """The plan of a search; what makes no sense is refused before any data are read."""
    check_rule(choose, preference)
    check_trials(trials)
    parts, estimate = folds_and_judge(folds, judge, solver)
    return Plan(
        space=space or SearchSpace(),
        solver=solver,
        population=population,
        folds=parts,
        judge=estimate,
        seed=seed,
        groups=groups,
        order=order,
        name=study,
    )


def fit_data(
    predictions: Predictions, people: Annotations, *, groups: bool, ties: str, seed: int
) -> ArrayData:
    """What a search learns from, of predictions and annotations of the same items in memory."""
    P, members = np.asarray(predictions.probabilities, dtype=np.float64), predictions.members
    if groups:
        names = named_groups(predictions.members, predictions.groups)
        P, members = average_groups(P, names), tuple(group_names(names))
    y = people.hard_labels(ties=ties, seed=seed)
    return ArrayData(P, people.soft_labels, y, members, predictions.classes)


def _foldable(data: ArrayData, plan: Plan) -> bool:
    """Whether the usual folds leave something to learn from; a note if not."""
    counts = np.bincount(data.y, minlength=len(data.classes))[data.q.sum(axis=0) > 0]
    rare = plan.space.class_weights is not False and (counts == 1).any()
    if data.items >= 2 * plan.folds and not rare:
        return True
    reason = "a class has a single item" if rare else f"there are {data.items} items"
    warnings.warn(
        f"trials have no estimate on held-out folds, since {reason}; folds says otherwise",
        EDOWarning,
        stacklevel=3,
    )
    return False
