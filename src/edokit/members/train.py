"""From annotations to a folder of members, their predictions and a manifest."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import (
    EDOError,
    InputError,
    counted,
    examples,
    local_path,
    option,
    warn,
)
from edokit.members.folder import (
    added_jobs,
    collect_predictions,
    make_manifest,
    open_folder,
    other_members,
    write_training,
)
from edokit.members.groups import Group, check_groups
from edokit.members.jobs import (
    MEMBERS,
    Outcome,
    TrainingJob,
    TrainingPlan,
    member_data,
    plan_jobs,
    predict_splits,
)
from edokit.members.recipe import (
    asks_server,
    find_recipe,
    learns,
    make_member,
    takes_device,
    trains_on_device,
)
from edokit.members.runner import run_jobs
from edokit.members.spending import session
from edokit.members.texts import Texts
from edokit.members.training_data import TrainingData, check_splits, fold_numbers
from edokit.runs import output_folder

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.predictions import Predictions

# Called with done, total and member, and with what a member reports of itself.
Step = Callable[[dict[str, Any]], None]

_IDENTICAL = 1e-6


@dataclass(frozen=True)
class TrainingOptions:
    """How members are trained.

    Parameters
    ----------
    random_state : int, default=0
        Seed of all members; each derives its own from it.
    cross_fit : int, default=None
        Folds to train on train and dev in; the predictions called fit are out-of-fold.
    pairs : bool, default=False
        Whether the first line of a text is the utterance and the rest its context.
    jobs : int, default=None
        Members that train at a time, in processes of their own. By default, on a GPU as many as
        fit into its memory, else one per core if there is enough work.
    device : str, default=None
        Where recipes that use torch compute, e.g. ``"cuda"``. None: a GPU if there is one.
    keep_models : bool, default=True
        Whether fitted models are kept beside their predictions.
    overwrite : bool, default=False
        Whether to replace members that were trained otherwise and files that EDO did not write.
    source : str, default=""
        Where the annotations come from, for the manifest.
    unlabelled : mapping of str to Texts, default=None
        Texts without labels to predict as well, by the name of their split, such as ``test``.
    budget : float, default=None
        What the requests of members that ask a server may cost together, in the unit of their
        prices. Members that it does not cover fail; all answers are kept, and not asked again.
    """

    random_state: int = 0
    cross_fit: int | None = None
    pairs: bool = False
    jobs: int | None = None
    device: str | None = None
    keep_models: bool = True
    overwrite: bool = False
    source: str = ""
    unlabelled: Mapping[str, Texts] | None = None
    budget: float | None = None


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of a training.

    Attributes
    ----------
    predictions : dict of str to Predictions
        Predictions of all members, by split; ``fit`` are the out-of-fold ones. Members that know
        annotators also predict every annotator of an item: ``dev-pairs`` and so on.
    manifest : dict
        What was trained, and its metrics; as in ``manifest.json``.
    failed : tuple of Outcome
        Jobs that failed, with the reason.
    """

    predictions: dict[str, Predictions]
    manifest: dict[str, Any]
    failed: tuple[Outcome, ...]


def train_members(
    annotations: Annotations,
    groups: Sequence[Group],
    *,
    out: str | Path | None = None,
    options: TrainingOptions | None = None,
    step: Step = lambda event: None,
    **changes: Any,
) -> Trained:
    """Train the members of groups, and predict every split but ``train``.

    Members that ``out`` holds already are not trained again. A member that fails does not stop
    the others; it is in ``failed``, and tried again the next time.

    Parameters
    ----------
    annotations : Annotations
        Annotations with texts and splits: members train on ``train``, and stop early on ``dev``.
    groups : sequence of Group
        What to train; see `parse_groups` for ``"linear:5,encoder:5"``.
    out : str or Path, default=None
        Folder for members, predictions and manifest. None: nothing is kept but what is returned.
    options : TrainingOptions, default=None
        How to train. None: the defaults.
    step : callable, default=no-op
        Called with a dict for every event: done, total, member, epoch, ….
    **changes
        Fields of `TrainingOptions` that differ from ``options``, such as ``random_state`` and
        ``cross_fit``.

    Returns
    -------
    Trained
        Predictions by split, the manifest, and what failed.

    Raises
    ------
    InputError
        If the data or an option is invalid, ``out`` holds other members, or all members failed.

    Examples
    --------
    >>> from edokit import Annotations
    >>> from edokit.members import Group, train_members
    >>> rows = {
    ...     "item": ["a"] * 3 + ["b"] * 3 + ["c"] * 3,
    ...     "annotator": ["x", "y", "z"] * 3,
    ...     "label": ["no", "no", "yes", "yes", "yes", "no", "yes", "yes", "no"],
    ...     "text": ["a fine day"] * 3 + ["a rude bus"] * 3 + ["so rude"] * 3,
    ...     "split": ["train"] * 6 + ["dev"] * 3,
    ... }
    >>> groups = [Group("linear", members=1, supervision="soft")]
    >>> trained = train_members(Annotations.from_table(rows), groups, random_state=1)
    >>> trained.predictions["dev"].members
    ('linear-01',)
    """
    settings = replace(options or TrainingOptions(), **changes)
    groups = check_groups(groups)
    with _training_folder(out, settings) as folder:
        plan = _plan(annotations, groups, settings)
        added = added_jobs(plan, folder)
        plan = replace(plan, jobs=(*plan.jobs, *added))
        groups += [Group(job.recipe, 1, job.member, "", "", job.options) for job in added]
        keep_models = settings.keep_models and out is not None
        with _requests(plan, budget=settings.budget):
            failed = train_plan(plan, folder, replace(settings, keep_models=keep_models), step)
        failed_members = list(dict.fromkeys(outcome.job.member for outcome in failed))
        if len(failed_members) == len({job.member for job in plan.jobs}):
            raise _all_failed(failed)
        predictions = collect_predictions(plan, folder, failed_members)
        _warn_of_other_members(plan, folder)
        _warn_of_identical_members(predictions)
        manifest = make_manifest(
            plan,
            groups,
            predictions,
            failed,
            folder,
            random_state=settings.random_state,
            source=settings.source,
        )
        if out is not None:
            write_training(folder, predictions, manifest)
    return Trained(predictions, manifest, tuple(failed))


@contextmanager
def _training_folder(out: str | Path | None, settings: TrainingOptions) -> Iterator[Path]:
    """The folder that a training writes to: ``out``, locked for others, or a temporary one."""
    if out is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    folder = local_path(out)
    with output_folder(folder, "members", overwrite=settings.overwrite):
        yield folder


def preview_training(
    annotations: Annotations,
    groups: Sequence[Group],
    options: TrainingOptions | None = None,
    **changes: Any,
) -> list[dict[str, Any]]:
    """Preview the requests of `train_members` to servers; nothing is sent or written.

    Parameters
    ----------
    annotations, groups, options, **changes
        As in `train_members`.

    Returns
    -------
    list of dict
        For each member its name (``member``), ``model``, ``base_url``, one filled-in prompt
        (``messages``), the number of ``requests``, how many of them have been answered before
        (``cached``), and an estimate of the ``cost`` of the others (None without prices).
    """
    settings = replace(options or TrainingOptions(), **changes)
    plan = _plan(annotations, check_groups(groups), settings)
    with _requests(plan, dry=True) as requests:
        for job in plan.jobs:
            if asks_server(find_recipe(job.recipe)):
                member = make_member(job.recipe, len(plan.data.classes), job.options)
                member.fit(member_data(plan, job), random_state=job.seed)
                requests.member = job.path
                predict_splits(member, plan, job)
    previews: list[dict[str, Any]] = requests.previews
    return previews


def _plan(
    annotations: Annotations, groups: Sequence[Group], settings: TrainingOptions
) -> TrainingPlan:
    data = TrainingData.from_annotations(
        annotations, pairs=settings.pairs, unlabelled=settings.unlabelled
    )
    return make_plan(data, groups, settings)


def make_plan(
    data: TrainingData, groups: Sequence[Group], options: TrainingOptions | None = None
) -> TrainingPlan:
    """Plan the jobs of a training; data and options that a recipe refuses are refused here."""
    settings = options or TrainingOptions()
    some_learn = any(learns(find_recipe(group.recipe), group.options) for group in groups)
    check_splits(data, settings.cross_fit, some_learn)
    for group in groups:
        make_member(group.recipe, len(data.classes), group.options)  # refuses invalid options
        if data.scale.is_multi_label and not find_recipe(group.recipe).multi_label:
            raise InputError(
                f"{group.recipe} predicts one class of a text, but these annotators gave sets of"
                " labels",
                f"choose another recipe, such as {option('recipe', 'linear')}",
            )
    folds = None
    if settings.cross_fit is not None:
        folds = fold_numbers(data, settings.cross_fit, settings.random_state)
    return plan_jobs(groups, data, random_state=settings.random_state, folds=folds)


def _requests(plan: TrainingPlan, **limits: Any) -> AbstractContextManager[Any]:
    """What the requests of members that ask a server share; there may be no such members."""
    if any(asks_server(find_recipe(job.recipe)) for job in plan.jobs):
        return session(place=Texts(plan.data.items, plan.data.texts).place_of, **limits)
    if any(limit is not None for limit in limits.values()):
        raise InputError(
            f"{option('dry_run' if limits.get('dry') else 'budget')} is for members that ask a"
            " server, but there are none",
            "leave it out, or choose the recipe llm",
        )
    return nullcontext()


def train_plan(
    plan: TrainingPlan,
    out: Path,
    options: TrainingOptions | None = None,
    step: Step = lambda event: None,
) -> list[Outcome]:
    """Run the jobs of a plan that ``out`` does not hold yet; return those that failed."""
    settings = options or TrainingOptions()
    if settings.device is not None and not any(
        takes_device(find_recipe(job.recipe)) for job in plan.jobs
    ):
        raise InputError(
            f"{option('device', settings.device)}: no recipe here computes with torch",
            "leave it out",
        )
    waiting = open_folder(plan, out, overwrite=settings.overwrite)
    progress = _TrainingProgress(plan, step, len(plan.jobs) - len(waiting))
    for (asks, on_device), jobs in groupby(sorted(waiting, key=_place), key=_place):
        progress.show("preparing")
        for outcome in run_jobs(
            plan,
            list(jobs),
            out,
            # Servers are asked by this process alone, which counts the costs.
            n_jobs=1 if asks else settings.jobs,
            on_device=on_device,
            device=settings.device,
            keep_models=settings.keep_models,
            progress=lambda job: lambda event: step({"member": job.path, **event}),
        ):
            progress.finish(outcome)
    return progress.failed


def _place(job: TrainingJob) -> tuple[bool, bool]:
    """Whether a job asks a server, and whether it runs on a device; processors come first."""
    recipe = find_recipe(job.recipe)
    return asks_server(recipe), trains_on_device(recipe)


@dataclass
class _TrainingProgress:
    """Counts finished jobs, collects failures and reports both."""

    plan: TrainingPlan
    step: Step
    done: int
    failed: list[Outcome] = field(default_factory=list)
    _notes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.done:
            self.show("from before", kept=self.done)

    def show(self, member: str, **event: Any) -> None:
        """Report how many jobs are done."""
        self.step({"done": self.done, "total": len(self.plan.jobs), "member": member, **event})

    def finish(self, outcome: Outcome) -> None:
        """Count an outcome; each of its warnings is shown once."""
        if outcome.reason:
            self.failed.append(outcome)
        else:
            self.done += 1
        self.show(outcome.job.path)
        for note in outcome.notes:
            if note not in self._notes:
                warn(f"{outcome.job.path}: {note}")
            self._notes.add(note)


def _all_failed(failed: Sequence[Outcome]) -> EDOError:
    reasons = list(dict.fromkeys(outcome.reason for outcome in failed))
    further = f" (and {counted(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
    return InputError(f"no member was trained, all failed: {reasons[0]}{further}")


def _warn_of_other_members(plan: TrainingPlan, out: Path) -> None:
    """Warn of members of an earlier training that are not part of this one."""
    if names := list(other_members(plan, out)):
        warn(
            f"{out / MEMBERS} also holds {counted(len(names), 'member')} of an earlier training"
            f" ({examples(names)}), which predictions and manifest leave out; to include them, ask"
            f" for them with {option('members')}, {option('recipe')} and {option('supervision')} as"
            " before: they are not trained again"
        )


def _warn_of_identical_members(predictions: Mapping[str, Predictions]) -> None:
    """Warn of groups whose members all predict the same, and say what to do about it."""
    tables = [table for table in predictions.values() if table.annotators is None]
    groups = np.array(tables[0].groups or ())
    identical = []
    for name in dict.fromkeys(groups):
        parts = [np.asarray(table.probabilities)[:, groups == name] for table in tables]
        if len(parts[0][0]) > 1 and all((np.ptp(p, axis=1) <= _IDENTICAL).all() for p in parts):
            identical.append(f"{name}, {counted(len(parts[0][0]), 'member')}")
    if identical:
        warn(
            f"all members of a group predict the same: {'; '.join(identical)}; train one member, or"
            f" with {option('supervision', 'random-select')}, and add groups that differ in recipe"
            " or options"
        )
