"""From annotations to a folder of members, their predictions and a manifest."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import (
    EDOError,
    EDOWarning,
    InputError,
    check_number,
    check_seed,
    counted,
    examples,
    local_path,
    one_of,
    option,
    warn,
)
from edokit._outputs import output_folder
from edokit.members.folder import (
    collect_predictions,
    make_manifest,
    open_folder,
    other_members,
    write_training,
)
from edokit.members.groups import Group, check_groups
from edokit.members.jobs import (
    END_TO_END,
    ENSEMBLE,
    HEAD_OPTIONS,
    HEADS,
    MEMBERS,
    JobContext,
    Outcome,
    TrainingJob,
    TrainingPlan,
    finished_card,
    member_data,
    plan_jobs,
    predict_splits,
)
from edokit.members.pretrained import choose_device, require_packages
from edokit.members.recipe import (
    Progress,
    check_options,
    find_recipe,
    known_options,
    make_member,
    takes_device,
)
from edokit.members.recipes import _endpoint as endpoints
from edokit.members.runner import run_jobs
from edokit.members.supervision import Draw, Supervision
from edokit.members.texts import Texts
from edokit.members.training_data import TrainingData, check_splits, fold_numbers
from edokit.members.tuning import tune_groups

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.ensemble import EDOEnsemble
    from edokit.predictions import Predictions

Step = Callable[[dict[str, Any]], None]
"""Called with done, total and member, and with what a member reports of itself."""

_IDENTICAL = 1e-6
_HEADS_RECIPE = "edokit.members.recipes._end_to_end:EndToEndMembers"
_HEADS_PRESETS = ("default", "paper-fixed")
_HEADS_TRAINING = {"random_state", "device", "pairs", "overwrite", "source"}
_HEADS_SUPERVISION = (Supervision.RANDOM_SELECT, Supervision.SOFT, Supervision.MAJORITY)


@dataclass(frozen=True)
class TrainingOptions:
    """How members are trained.

    Parameters
    ----------
    random_state : int, default=0
        Seed of all members; each derives its own from it.
    cross_fit : int, default=None
        Number of folds to train on train and dev in; ``predictions["fit"]`` are out-of-fold.
    pairs : bool, default=False
        Whether the first line of a text is the utterance and the rest its context.
    tune : int, default=None
        Trials with which the options of ``transformer`` groups are searched first.
    jobs : int, default=None
        Members that train at a time, in processes of their own. None: on a GPU as many as fit
        into its memory; else one per core if there is enough work.
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
    tune: int | None = None
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
    ensemble : EDOEnsemble or None
        The weights that were trained with the members, end to end.
    """

    predictions: dict[str, Predictions]
    manifest: dict[str, Any]
    failed: tuple[Outcome, ...]
    ensemble: EDOEnsemble | None = None


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
    if settings.budget is not None:
        _check_remote(groups, "budget")
    data = _training_data(annotations, groups, settings)
    with _training_folder(out, settings) as folder:
        if settings.tune is not None:
            groups = tune_groups(
                groups,
                data,
                settings.tune,
                random_state=settings.random_state,
                out=None if out is None else folder,
                device=settings.device,
                step=step,
            )
        plan = make_plan(data, groups, settings)
        with endpoints.session(budget=settings.budget) as requests:
            requests.place = Texts(data.items, data.texts).place_of
            keep_models = settings.keep_models and out is not None
            failed = train_plan(plan, folder, replace(settings, keep_models=keep_models), step)
        failed_members = list(dict.fromkeys(outcome.job.member for outcome in failed))
        if len(failed_members) == len({job.member for job in plan.jobs}):
            raise _all_failed(failed)
        predictions = collect_predictions(plan, folder, failed_members)
        _warn_of_other_members(plan, folder)
        _warn_of_identical_members(groups, predictions)
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
    groups = check_groups(groups)
    _check_remote(groups, "dry_run")
    data = _training_data(annotations, groups, settings)
    plan = make_plan(data, groups, settings)
    with endpoints.session(dry=True) as session:
        for job in plan.jobs:
            if find_recipe(job.recipe).remote:
                rows = plan.rows(job)
                fit_data = member_data(data.take(rows.train), job, data.take(rows.stop))
                member = make_member(job.recipe, len(data.classes), job.options)
                member.fit(fit_data, random_state=job.seed)
                session.member = job.path
                predict_splits(member, plan, job)
    return session.previews


def train_end_to_end(
    annotations: Annotations,
    *,
    out: str | Path,
    members: int = 10,
    options: Mapping[str, Any] | None = None,
    preset: str = "default",
    supervision: str = Supervision.RANDOM_SELECT.value,
    draw: str = Draw.EPOCH.value,
    step: Step = lambda event: None,
    **training: Any,
) -> Trained:
    """Fine-tune one encoder with a head per member, together with the weights that pool them.

    Heads and weights train on the split ``train``, each head on labels drawn for itself; the
    epoch with the best pool on ``dev`` is kept. ``out`` gets the model (``end-to-end``),
    ``predictions`` of all other splits, the ``ensemble`` and a manifest. A finished training is
    not repeated.

    Parameters
    ----------
    annotations : Annotations
        Annotations with texts and the splits train and dev.
    out : str or Path
        Folder for the result.
    members : int, default=10
        How many heads.
    options : mapping, default=None
        Options of the recipe ``transformer``, ``member_weight`` and ``joint_learning_rate``.
    preset : {"default", "paper-fixed"}, default="default"
        The objective of the weights.
    supervision : {"random-select", "soft", "majority"}, default="random-select"
        Targets of the heads.
    draw : {"epoch", "once"}, default="epoch"
        When random-select draws.
    step : callable, default=no-op
        As in `train_members`.
    **training
        ``random_state``, ``device``, ``pairs``, ``overwrite`` and ``source`` of `TrainingOptions`.

    Returns
    -------
    Trained
        As of `train_members`, with the ``ensemble``.

    Raises
    ------
    InputError
        If the data or an option is invalid, or ``out`` holds other members.
    """
    if unsupported := training.keys() - _HEADS_TRAINING:
        raise TypeError(f"train_end_to_end has no parameter {', '.join(sorted(unsupported))}")
    require_packages("training end to end")
    from edokit.ensemble import EDOEnsemble

    settings = TrainingOptions(**training)
    data = _training_data(annotations, (), settings)
    heads = Group("transformer", members, HEADS, supervision, draw, options or {})
    plan, group = plan_end_to_end(data, heads, preset=preset, random_state=settings.random_state)
    if choose_device(settings.device).type == "mps":
        raise InputError(
            "training end to end computes weights in double precision, which mps does not have",
            f"choose {option('device', 'cpu')} or {option('device', 'cuda')}",
        )
    with _training_folder(out, settings) as folder:
        failed = train_plan(plan, folder, settings, step)
        if failed:
            raise _all_failed(failed)
        predictions = collect_predictions(plan, folder)
        job = plan.jobs[0]
        card = finished_card(folder / job.folder)
        dev = data.splits[plan.rows(job).stop[0]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # evenly split items were reported before
            ensemble = EDOEnsemble.from_weights(
                card["weights"],
                predictions[dev],
                annotations.split(dev),
                size=card["size"],
                preset=preset,
                random_state=settings.random_state,
            )
        manifest = make_manifest(
            plan,
            [group],
            predictions,
            (),
            folder,
            random_state=settings.random_state,
            source=settings.source,
            ensemble=ensemble,
        )
        ensemble.save(folder / ENSEMBLE, overwrite=True)  # `out` has been checked
        write_training(folder, predictions, manifest)
        return Trained(predictions, manifest, (), ensemble)


def _training_data(
    annotations: Annotations, groups: Sequence[Group], settings: TrainingOptions
) -> TrainingData:
    """Texts, annotations and the attributes of annotators that groups use."""
    return TrainingData.from_annotations(
        annotations,
        pairs=settings.pairs,
        unlabelled=settings.unlabelled,
        attributes=dict.fromkeys(name for group in groups for name in group.attributes),
    )


def make_plan(
    data: TrainingData, groups: Sequence[Group], options: TrainingOptions | None = None
) -> TrainingPlan:
    """Plan the jobs of a training; data and options that a recipe refuses are refused here."""
    settings = options or TrainingOptions()
    learns = any(find_recipe(group.recipe).learns(group.options) for group in groups)
    check_splits(data, settings.cross_fit, learns)
    for group in groups:
        make_member(group.recipe, len(data.classes), group.options).check_data(data)
    folds = None
    if settings.cross_fit is not None:
        folds = fold_numbers(data, settings.cross_fit, settings.random_state)
    return plan_jobs(groups, data, random_state=settings.random_state, folds=folds)


def plan_end_to_end(
    data: TrainingData, heads: Group, *, preset: str = "default", random_state: int = 0
) -> tuple[TrainingPlan, Group]:
    """Plan one job that trains all heads; return also the group that the manifest describes."""
    one_of("preset", preset, _HEADS_PRESETS)
    one_of("supervision", heads.supervision, [mode.value for mode in _HEADS_SUPERVISION])
    one_of("draw", heads.draw, [mode.value for mode in Draw])
    check_seed(random_state)
    check_number("members", heads.members, 1, whole=True)
    recipe: Any = find_recipe(_HEADS_RECIPE)
    # There is a head per member, so none per annotator.
    defaults = {
        key: value
        for key, value in known_options(recipe).items()
        if key not in HEAD_OPTIONS and not key.startswith(("annotator", "anonymous"))
    }
    options = check_options("training end to end", defaults, heads.options)
    head_options = {"n_members": heads.members, "preset": preset}
    network = recipe(len(data.classes), **options, **head_options)
    network.check_data(data)
    group = replace(heads, options={key: getattr(network, key) for key in defaults})
    job = TrainingJob(
        member=END_TO_END,
        group=HEADS,
        recipe=_HEADS_RECIPE,
        options={**group.options, **head_options},
        supervision=heads.supervision,
        draw=str(heads.draw),
        seed=random_state,
        heads=heads.members,
    )
    return TrainingPlan(data, (job,)), group


def _check_remote(groups: Sequence[Group], name: str) -> None:
    if not any(find_recipe(group.recipe).remote for group in groups):
        raise InputError(
            f"{option(name)} is for members that ask a server, but there are none",
            "leave it out, or choose the recipe llm",
        )


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
    for jobs in _by_place(waiting):
        progress.show("preparing")
        recipe = find_recipe(jobs[0].recipe)
        context = _job_context(plan, jobs, settings, progress.failed)
        for outcome in run_jobs(
            context,
            [job for job in jobs if job.group in context.shared],
            out,
            # Servers are asked by this process alone, which counts the costs.
            n_jobs=1 if recipe.remote else settings.jobs,
            on_device=recipe.on_device,
            device=settings.device,
            progress=progress.of_job,
        ):
            progress.finish(outcome)
    return progress.failed


def _by_place(jobs: Sequence[TrainingJob]) -> Iterator[list[TrainingJob]]:
    """Jobs that run on processors, then those on devices, then those that ask servers."""
    places: dict[tuple[bool, bool], list[TrainingJob]] = {}
    for job in jobs:
        recipe = find_recipe(job.recipe)
        places.setdefault((recipe.remote, recipe.on_device), []).append(job)
    for place in sorted(places):
        yield places[place]


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
        """Report how many jobs are done; end to end there is one, which reports epochs."""
        if not self.plan.end_to_end:
            total = len(self.plan.jobs)
            self.step({"done": self.done, "total": total, "member": member, **event})

    def of_job(self, job: TrainingJob) -> Progress:
        """The function that a job in this process reports to."""

        def report(event: dict[str, Any]) -> None:
            member: dict[str, Any] = {"member": job.path}
            if job.heads:
                member = {"member": f"{job.heads} heads"}
                if "epoch" in event:
                    member |= {"done": event["epoch"], "total": event["epochs"]}
            self.step({**member, **event})

        return report

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


def _job_context(
    plan: TrainingPlan,
    jobs: Sequence[TrainingJob],
    settings: TrainingOptions,
    failed: list[Outcome],
) -> JobContext:
    """Prepare what the members of each group share; a group that can't prepare fails as a whole."""
    context = JobContext(plan, {}, settings.keep_models)
    for name in dict.fromkeys(job.group for job in jobs):
        group_jobs = [job for job in jobs if job.group == name]
        recipe = find_recipe(group_jobs[0].recipe)
        options = dict(group_jobs[0].options)
        if takes_device(recipe):
            options["device"] = settings.device
        started = time.perf_counter()
        try:
            context.shared[name] = recipe.prepare(plan.data.texts, options)
        except EDOError as error:
            failed += [Outcome(job, str(error)) for job in group_jobs]
        context.shared_seconds[name] = (time.perf_counter() - started) / len(group_jobs)
    return context


def _all_failed(failed: Sequence[Outcome]) -> EDOError:
    reasons = list(dict.fromkeys(outcome.reason for outcome in failed))
    further = f" (and {counted(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
    return InputError(f"no member was trained, all failed: {reasons[0]}{further}")


def _warn_of_other_members(plan: TrainingPlan, out: Path) -> None:
    """Warn of members of an earlier training that are not part of this one."""
    if names := other_members(plan, out):
        warn(
            f"{out / MEMBERS} also holds {counted(len(names), 'member')} of an earlier training"
            f" ({examples(names)}), which predictions and manifest leave out; to include them, ask"
            f" for them with {option('members')}, {option('recipe')} and {option('supervision')} as"
            " before: they are not trained again"
        )


def _warn_of_identical_members(
    groups: Sequence[Group], predictions: Mapping[str, Predictions]
) -> None:
    """Warn of groups whose members all predict the same, and say what to do about it."""
    identical = []
    for group in groups:
        tables = [
            np.asarray(table.probabilities)[:, [name == group.name for name in table.groups or ()]]
            for table in predictions.values()
            if table.annotators is None
        ]
        if all(p.shape[1] > 1 and (np.abs(p - p[:, :1]) <= _IDENTICAL).all() for p in tables):
            identical.append(group)
    if not identical:
        return
    listed = "; ".join(f"{group.name}, {group.members} members" for group in identical)
    warn(
        f"all members of a group predict the same: {listed}; train one member, or with"
        f" {option('supervision', 'random-select')}, and add groups that differ in recipe or"
        " options"
    )
