"""From annotations to a folder of members, their predictions and a manifest."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
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
    warn,
)
from edokit._io.atomic import remove_leftovers
from edokit._outputs import output_folder
from edokit._parallel import LOCAL
from edokit.members import engine as engines
from edokit.members.folder import (
    check_kind,
    collect_predictions,
    make_manifest,
    other_members,
    unfinished_jobs,
    write_training,
)
from edokit.members.groups import Group, check_groups
from edokit.members.jobs import (
    END_TO_END,
    ENSEMBLE,
    HEAD_OPTIONS,
    HEADS,
    MANIFEST,
    MEMBERS,
    JobContext,
    Outcome,
    Plan,
    TrainingJob,
    clear,
    finished_card,
    member_data,
    plan_jobs,
    predict_rows,
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
from edokit.members.supervision import Draw, Supervision
from edokit.members.texts import Texts
from edokit.members.training_data import (
    TrainingData,
    check_splits,
    fold_numbers,
)
from edokit.members.tuning import tune_groups

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.ensemble import EDOEnsemble
    from edokit.predictions import Predictions

Step = Callable[[dict[str, Any]], None]
"""Called with done, total and member, and with what a member reports of itself."""

_IDENTICAL = 1e-6
_SAME_TARGETS = (Supervision.SOFT.value, Supervision.MAJORITY.value)
_HEADS_RECIPE = "edokit.members.recipes._end_to_end:EndToEndMembers"
_HEADS_PRESETS = ("default", "paper-fixed")
_HEADS_SUPERVISION = (Supervision.RANDOM_SELECT, Supervision.SOFT, Supervision.MAJORITY)


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training gave.

    Attributes
    ----------
    predictions : dict of str to Predictions
        Predictions of all members, by split; ``fit`` are the out-of-fold ones. Members that know
        annotators also predict pairs of an item and an annotator: ``dev-pairs`` and so on.
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
    random_state: int = 0,
    cross_fit: int | None = None,
    pairs: bool = False,
    tune: int | None = None,
    jobs: int | None = None,
    device: str | None = None,
    engine: str = LOCAL,
    keep_models: bool = True,
    overwrite: bool = False,
    source: str = "",
    unlabelled: Mapping[str, Texts] | None = None,
    budget: float | None = None,
    step: Step = lambda event: None,
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
    random_state : int, default=0
        Seed of all members; each derives its own from it.
    cross_fit : int, default=None
        Train on train and dev in so many folds; ``predictions["fit"]`` are out-of-fold.
    pairs : bool, default=False
        Whether the first line of a text is the utterance and the rest its context.
    tune : int, default=None
        Trials with which the options of ``transformer`` groups are searched first.
    jobs : int, default=None
        Members at a time. None: on a GPU one, then more as long as memory allows it and all
        together get faster; else one per core if there is enough work for processes of their own.
    device : str, default=None
        Where recipes that use torch compute, e.g. ``"cuda"``. None: a GPU where there is one.
    engine : str, default="local"
        ``"local"``, or a Dask cluster: ``"dask://host:port"``.
    keep_models : bool, default=True
        Whether fitted models are kept beside their predictions.
    overwrite : bool, default=False
        Whether members in ``out`` that were trained otherwise, and files that EDO did not write,
        are replaced.
    source : str, default=""
        Where the annotations come from, for the manifest.
    unlabelled : mapping of str to Texts, default=None
        Texts without labels to predict as well, by the name of their split, such as ``test``.
    budget : float, default=None
        What the requests of members that ask a server may cost together, in the unit of their
        prices. Members that it does not cover fail; all answers are kept, and not asked again.
    step : callable, default=no-op
        Called with a dict for every event: done, total, member, epoch, ….

    Returns
    -------
    Trained
        Predictions by split, the manifest, and what failed.

    Raises
    ------
    InputError
        If the data or an option does not fit, ``out`` holds other members, or all members failed.

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
    >>> trained = train_members(Annotations.from_table(rows), groups, jobs=1)
    >>> trained.predictions["dev"].members
    ('linear-01',)
    """
    checked = check_groups(groups)
    data = _training_data(annotations, checked, pairs=pairs, unlabelled=unlabelled)
    with ExitStack() as stack:
        if out is not None:
            folder = local_path(out)
            stack.enter_context(output_folder(folder, "members", overwrite=overwrite))
        if tune is not None:
            kept = None if out is None else folder
            checked = tune_groups(checked, data, tune, random_state, kept, device, step)
        plan = make_plan(data, checked, random_state=random_state, cross_fit=cross_fit)
        if out is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            keep_models = False
        if budget is not None:
            _check_remote(checked, "budget")
        with endpoints.session(budget=budget) as asks:
            asks.place = Texts(data.items, data.texts).place_of
            failed = train_plan(
                plan,
                folder,
                jobs=jobs,
                device=device,
                engine=engine,
                keep_models=keep_models,
                overwrite=overwrite,
                step=step,
            )
        names = list(dict.fromkeys(one.job.member for one in failed))
        if len(names) == len({job.member for job in plan.jobs}):
            raise _all_failed(failed)
        predictions = collect_predictions(plan, folder, names)
        _warn_of_other_members(plan, folder)
        _warn_of_identical_members(checked, predictions)
        how: dict[str, Any] = {"random_state": random_state, "source": source}
        manifest = make_manifest(plan, checked, predictions, failed, folder, **how)
        if out is not None:
            write_training(folder, predictions, manifest)
    return Trained(predictions, manifest, tuple(failed))


def train_end_to_end(
    annotations: Annotations,
    *,
    out: str | Path,
    members: int = 10,
    options: Mapping[str, Any] | None = None,
    preset: str = "default",
    supervision: str = Supervision.RANDOM_SELECT.value,
    draw: str = Draw.EPOCH.value,
    random_state: int = 0,
    device: str | None = None,
    pairs: bool = False,
    overwrite: bool = False,
    source: str = "",
    step: Step = lambda event: None,
) -> Trained:
    """Fine-tune one encoder with a head per member, together with the weights that pool them.

    Heads and weights train on the split ``train``, each head on labels drawn for itself; the
    epoch with the best pool on ``dev`` is kept. ``out`` gets the model (``end-to-end``),
    ``predictions`` of all other splits, the ``ensemble`` and a manifest; what it holds already is
    not trained again.

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
    random_state, device, pairs, overwrite, source, step
        As in `train_members`.

    Returns
    -------
    Trained
        As of `train_members`, with the ``ensemble``.

    Raises
    ------
    InputError
        If the data or an option does not fit, or ``out`` holds other members.
    """
    require_packages("training end to end")
    from edokit.ensemble import EDOEnsemble

    data = TrainingData.from_annotations(annotations, pairs=pairs)
    plan, group = plan_end_to_end(
        data,
        members=members,
        options=options or {},
        preset=preset,
        supervision=supervision,
        draw=draw,
        random_state=random_state,
    )
    if choose_device(device).type == "mps":
        raise InputError(
            "training end to end computes weights in double precision, which mps does not have",
            "choose device='cpu' or device='cuda'",
            parameters=("device",),
        )
    out = local_path(out)
    with output_folder(out, "members", overwrite=overwrite):
        failed = train_plan(plan, out, device=device, overwrite=overwrite, step=step)
        if failed:
            raise _all_failed(failed)
        predictions = collect_predictions(plan, out)
        job = plan.jobs[0]
        card = finished_card(out / job.folder)
        dev = data.splits[plan.rows(job).stop[0]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # evenly split items were reported before
            labels = (predictions[dev], annotations.split(dev))
            given: dict[str, Any] = {"size": card["size"], "preset": preset}
            ensemble = EDOEnsemble.from_weights(
                card["weights"], *labels, **given, random_state=random_state
            )
        how: dict[str, Any] = {"random_state": random_state, "source": source, "ensemble": ensemble}
        manifest = make_manifest(plan, [group], predictions, (), out, **how)
        ensemble.save(out / ENSEMBLE, overwrite=overwrite)
        write_training(out, predictions, manifest)
        return Trained(predictions, manifest, (), ensemble)


def _training_data(annotations: Annotations, groups: Sequence[Group], **how: Any) -> TrainingData:
    """Texts, annotations and the attributes of annotators that groups ask for."""
    attributes = dict.fromkeys(name for group in groups for name in group.attributes)
    return TrainingData.from_annotations(annotations, attributes=attributes, **how)


def make_plan(
    data: TrainingData,
    groups: Sequence[Group],
    *,
    random_state: int = 0,
    cross_fit: int | None = None,
) -> Plan:
    """What there is to train."""
    learns = any(find_recipe(group.recipe).learns(group.options) for group in groups)
    check_splits(data, cross_fit, learns)
    for group in groups:
        # Options that a recipe refuses are refused now, not once per member.
        make_member(group.recipe, len(data.classes), group.options).check_data(data)
    folds = None if cross_fit is None else fold_numbers(data, cross_fit, random_state)
    return plan_jobs(groups, data, random_state=random_state, folds=folds)


def preview_training(
    annotations: Annotations,
    groups: Sequence[Group],
    *,
    random_state: int = 0,
    cross_fit: int | None = None,
    pairs: bool = False,
    unlabelled: Mapping[str, Texts] | None = None,
) -> list[dict[str, Any]]:
    """What `train_members` would ask servers: a dict per member; nothing is sent or written.

    Each has the ``member``, its ``model``, ``base_url``, one filled-in prompt (``messages``), how
    many ``requests`` there are, how many of them have been answered before (``cached``), and an
    estimate of the ``cost`` of the others (None without prices).
    """
    checked = check_groups(groups)
    _check_remote(checked, "dry_run")
    data = _training_data(annotations, checked, pairs=pairs, unlabelled=unlabelled)
    plan = make_plan(data, checked, random_state=random_state, cross_fit=cross_fit)
    with endpoints.session(dry=True) as session:
        for job in plan.jobs:
            if find_recipe(job.recipe).remote:
                rows = plan.rows(job)
                own = member_data(data.take(rows.train), job, data.take(rows.stop))
                member = make_member(job.recipe, len(data.classes), job.options)
                member.fit(own, random_state=job.seed)
                session.member = job.path
                predict_rows(member, plan, job)
    return session.previews


def _check_remote(groups: Sequence[Group], parameter: str) -> None:
    if not any(find_recipe(group.recipe).remote for group in groups):
        raise InputError(
            f"{parameter} is for members that ask a server, but there are none here",
            "leave it out, or choose the recipe llm",
            parameters=(parameter,),
        )


def prepare_training(
    annotations: Annotations,
    groups: Sequence[Group],
    *,
    out: Path,
    random_state: int = 0,
    cross_fit: int | None = None,
    pairs: bool = False,
    unlabelled: Mapping[str, Texts] | None = None,
    overwrite: bool = False,
) -> int:
    """Write what ``python -m edokit.members`` trains on another machine; returns how many jobs."""
    checked = check_groups(groups)
    data = _training_data(annotations, checked, pairs=pairs, unlabelled=unlabelled)
    plan = make_plan(data, checked, random_state=random_state, cross_fit=cross_fit)
    with output_folder(out, "members", overwrite=overwrite):
        plan.save(out)
    return len(plan.jobs)


def train_plan(
    plan: Plan,
    out: Path,
    *,
    jobs: int | None = None,
    device: str | None = None,
    engine: str = LOCAL,
    keep_models: bool = True,
    overwrite: bool = False,
    step: Step = lambda event: None,
) -> list[Outcome]:
    """Run the jobs that ``out`` does not hold yet; returns those that failed."""
    recipes = [find_recipe(name) for name in dict.fromkeys(job.recipe for job in plan.jobs)]
    if device is not None and not any(map(takes_device, recipes)):
        raise InputError(
            f"device is {device!r}, but no recipe here computes with torch",
            "leave device out",
            parameters=("device",),
        )
    check_kind(plan, out, overwrite=overwrite)
    if not plan.end_to_end and (out / END_TO_END).is_dir():
        clear(out, END_TO_END)
    if out.is_dir():
        remove_leftovers(out)
    waiting = unfinished_jobs(plan, out, overwrite=overwrite)
    if waiting and not plan.end_to_end and (out / MANIFEST).is_file():
        # What it describes is about to change, and it is written last.
        (out / MANIFEST).unlink()
    done, total = len(plan.jobs) - len(waiting), len(plan.jobs)
    if done and not plan.end_to_end:
        step({"done": done, "total": total, "member": "from before", "kept": done})
    failed: list[Outcome] = []
    noted: set[str] = set()
    for on_device, remote in ((False, False), (True, False), (False, True)):
        kinds = {recipe for recipe in recipes if recipe.on_device == on_device}
        kinds &= {recipe for recipe in recipes if recipe.remote == remote}
        now = [job for job in waiting if find_recipe(job.recipe) in kinds]
        if not now:
            continue
        if not plan.end_to_end:
            step({"done": done, "total": total, "member": "preparing"})
        spent: dict[str, float] = {}
        shared, unprepared = _prepare(plan, now, device, spent)
        failed += unprepared
        local = engine == LOCAL
        devices = engines.devices_for(on_device and local, device)
        by_pace = jobs is None and on_device and local and engines.on_gpus(devices)
        now = [job for job in now if job.group in shared]
        context = JobContext(plan, shared, keep_models, spent=spent)
        for outcome in engines.run_jobs(
            replace(context, starts=_starts(context, now)),
            now,
            out,
            # A server is asked by this process alone, which counts what that costs.
            engine=LOCAL if remote else engine,
            jobs=1 if remote else engines.how_many_jobs(jobs, on_device, devices, by_pace),
            by_work=jobs is None and not on_device and not remote,
            by_pace=by_pace,
            devices=devices,
            progress=lambda job: _report(step, job),
        ):
            if outcome.reason:
                failed.append(outcome)
            else:
                done += 1
            if not plan.end_to_end:
                step({"done": done, "total": total, "member": outcome.job.path})
            for note in outcome.notes:
                if note not in noted:
                    warn(f"{outcome.job.path}: {note}")
                noted.add(note)
    return failed


def plan_end_to_end(
    data: TrainingData,
    *,
    members: int,
    options: Mapping[str, Any],
    preset: str,
    supervision: str,
    draw: str,
    random_state: int,
) -> tuple[Plan, Group]:
    """One job that trains all heads, and how the manifest describes them."""
    one_of("preset", preset, _HEADS_PRESETS)
    one_of("supervision", supervision, [mode.value for mode in _HEADS_SUPERVISION])
    one_of("draw", draw, [mode.value for mode in Draw])
    check_seed(random_state)
    check_number("members", members, 1, whole=True)
    recipe: Any = find_recipe(_HEADS_RECIPE)
    # There is a head per member already.
    known = {
        key: value
        for key, value in known_options(recipe).items()
        if key not in HEAD_OPTIONS and not key.startswith(("annotator", "anonymous"))
    }
    given = check_options("training end to end", known, options)
    heads = {"n_members": members, "preset": preset}
    network = recipe(len(data.classes), **given, **heads)
    chosen = {key: getattr(network, key) for key in known}
    network.check_data(data)
    how = ({**chosen, **heads}, supervision, draw, random_state)
    job = TrainingJob(END_TO_END, HEADS, _HEADS_RECIPE, *how, heads=members)
    return Plan(data, (job,)), Group("transformer", members, HEADS, supervision, draw, chosen)


def _prepare(
    plan: Plan, jobs: Sequence[TrainingJob], device: str | None, spent: dict[str, float]
) -> tuple[dict[str, Any], list[Outcome]]:
    """What the members of each group share; a group that can't prepare fails as a whole."""
    shared: dict[str, Any] = {}
    failed: list[Outcome] = []
    done: dict[tuple[Any, ...], Any] = {}
    for name in dict.fromkeys(job.group for job in jobs):
        own = [job for job in jobs if job.group == name]
        recipe = find_recipe(own[0].recipe)
        options = dict(own[0].options) | ({"device": device} if takes_device(recipe) else {})
        from_what = recipe.prepares_from
        same = None if from_what is None else (recipe, *map(options.get, from_what))
        try:
            with _timed(spent, own):
                prepared = done[same] if same in done else recipe.prepare(plan.data.texts, options)
        except EDOError as error:
            failed += [Outcome(job, str(error)) for job in own]
            continue
        shared[name] = prepared
        if same is not None:
            done[same] = prepared
    return shared, failed


@contextmanager
def _timed(spent: dict[str, float], jobs: Sequence[TrainingJob]) -> Iterator[None]:
    """Add the share of each of a group's jobs in the seconds of what is done for all of them."""
    started, group = time.perf_counter(), jobs[0].group
    yield
    spent[group] = spent.get(group, 0.0) + (time.perf_counter() - started) / len(jobs)


def _starts(context: JobContext, jobs: Sequence[TrainingJob]) -> dict[str, Any]:
    """Where members start that find it together; those that can't start as they would alone."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(job.group for job in jobs):
        paths: list[str] = []

        def fits(own: Sequence[TrainingJob], paths: list[str] = paths) -> Iterator[Any]:
            for job in own:
                try:
                    data = context.member_data(job)
                except EDOError:
                    continue  # which is its own error, once it is trained
                paths.append(job.path)
                yield make_member(job.recipe, len(context.plan.data.classes), job.options), data

        own = [job for job in jobs if job.group == name]
        with warnings.catch_warnings(), suppress(Exception), _timed(context.spent, own):
            warnings.simplefilter("ignore")  # each is reported by the member itself
            if len(own) > 1:
                starts = find_recipe(own[0].recipe).starts(fits(own))
                found |= dict(zip(paths, starts, strict=True)) if len(starts) else {}
    return found


def _report(step: Step, job: TrainingJob) -> Progress:
    def report(event: dict[str, Any]) -> None:
        epochs = (
            {"done": event["epoch"], "total": event["epochs"]}
            if job.heads and "epoch" in event
            else {}
        )
        member = f"{job.heads} heads" if job.heads else job.path
        step({**epochs, "member": member, **event})

    return report


def _all_failed(failed: Sequence[Outcome]) -> EDOError:
    reasons = list(dict.fromkeys(one.reason for one in failed))
    more = f" (and {counted(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
    return InputError(f"no member was trained, all failed: {reasons[0]}{more}")


def _warn_of_other_members(plan: Plan, out: Path) -> None:
    """Members of an earlier training are kept, but are not part of this one."""
    others = other_members(plan, out)
    if others:
        it, are = ("it", "is") if len(others) == 1 else ("them", "are")
        warn(
            f"{out / MEMBERS} also holds {counted(len(others), 'member')} that {are} not asked for"
            f" now ({examples(others)}): predictions and manifest leave {it} out; ask for {it}, too"
            " (--members, --recipe, --supervision as before), and nothing is trained anew"
        )


def _warn_of_identical_members(
    groups: Sequence[Group], predictions: Mapping[str, Predictions]
) -> None:
    """Warn of groups whose members all predict the same, and say what to do about it."""
    same = []
    for group in groups:
        own = [
            np.asarray(table.probabilities)[:, [name == group.name for name in table.groups or ()]]
            for table in predictions.values()
            if table.annotators is None
        ]
        if all(p.shape[1] > 1 and (np.abs(p - p[:, :1]) <= _IDENTICAL).all() for p in own):
            same.append(group)
    if not same:
        return
    named = "; ".join(f"{group.name}, {group.members} members" for group in same)
    targets = any(group.supervision in _SAME_TARGETS for group in same)
    why = " (they have the same targets and no other source of randomness)" if targets else ""
    hint = "train them with --supervision random-select, or " if targets else ""
    warn(
        f"all members of a group predict the same{why}: {named}; {hint}ask for one, and add"
        " groups that differ in recipe or options"
    )
