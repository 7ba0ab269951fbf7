"""From annotations to a folder of members, their predictions and a manifest."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import EDOError, EDOWarning, InputError, counted, examples
from edokit.members import engine as engines
from edokit.members.end_to_end import END_TO_END
from edokit.members.folder import MANIFEST as NAME
from edokit.members.folder import (
    MEMBERS,
    check_kind,
    clear,
    collect,
    make_manifest,
    not_asked_for,
    unfinished,
)
from edokit.members.folder import PREDICTIONS_FOLDER as PREDICTIONS
from edokit.members.groups import Group, check_pool
from edokit.members.jobs import JobContext, Outcome, Plan, TrainingJob, plan_jobs
from edokit.members.recipe import Progress, Text, find_recipe, make_member, takes_device
from edokit.members.storing import remove_unfinished
from edokit.members.supervision import Supervision
from edokit.members.training_data import TrainingData, check_splits, fold_numbers, rows_for_job
from edokit.members.tuning import tune_pool

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.predictions import Predictions

Step = Callable[[dict[str, Any]], None]
"""Called with done, total and member, and with what a member reports of itself."""


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training gave."""

    predictions: dict[str, Predictions]
    """Predictions of all members, by split; ``fit`` are the out-of-fold ones."""
    manifest: dict[str, Any]
    """What was trained, and how good it is."""
    failed: tuple[Outcome, ...]
    """What failed, with the reason."""


def train_members(
    annotations: Annotations,
    groups: Sequence[Group],
    *,
    out: str | Path | None = None,
    seed: int = 0,
    cross_fit: int | None = None,
    pairs: bool = False,
    tune: int | None = None,
    jobs: int | None = None,
    device: str | None = None,
    engine: str = engines.LOCAL,
    keep_models: bool = True,
    overwrite: bool = False,
    source: str = "",
    step: Step = lambda event: None,
) -> Trained:
    """Train what ``out`` does not hold yet, and write predictions and manifest.

    Members that fail do not stop the others; they are in ``failed``, and tried again the next
    time. Without ``out`` nothing is kept but what is returned. ``tune`` is the number of trials
    with which the options of fine-tuned groups are searched first.
    """
    pool = check_pool(groups)
    course = TrainingData.of(annotations, pairs=pairs)
    if tune is not None:
        kept = None if out is None else Path(out)
        pool = tune_pool(pool, course, tune, seed=seed, out=kept, device=device, step=step)
    plan = make_plan(course, pool, seed=seed, cross_fit=cross_fit)
    with ExitStack() as stack:
        if out is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            keep_models = False
        else:
            folder = Path(out)
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
        broken = list(dict.fromkeys(one.unit.member for one in failed))
        if len(broken) == len({unit.member for unit in plan.units}):
            raise _all_failed(failed)
        predictions = collect(plan, folder, broken)
        _tell_of_others(plan, folder)
        warn_of_identical_members(pool, predictions)
        manifest = make_manifest(plan, pool, predictions, failed, folder, seed=seed, source=source)
        if out is not None:
            write_trained(folder, predictions, manifest)
    return Trained(predictions, manifest, tuple(failed))


def _tell_of_others(plan: Plan, out: Path) -> None:
    """Members of an earlier training are kept, but are not part of this one."""
    others = not_asked_for(plan, out)
    if others:
        one = len(others) == 1
        warnings.warn(
            f"{out / MEMBERS} also holds {counted(len(others), 'member')} that"
            f" {'is' if one else 'are'} not asked for now ({examples(others)}): predictions and"
            f" manifest leave {'it' if one else 'them'} out; ask for {'it' if one else 'them'}, too"
            " (--members, --recipe, --supervision as before), and nothing is trained anew",
            EDOWarning,
            stacklevel=3,
        )


def make_plan(
    course: TrainingData, groups: Sequence[Group], *, seed: int = 0, cross_fit: int | None = None
) -> Plan:
    """What there is to train."""
    check_splits(course, cross_fit)
    for group in groups:
        # Options that a recipe refuses are refused now, not once per member.
        make_member(group.recipe, len(course.classes), group.options)
    folds = None if cross_fit is None else fold_numbers(course, cross_fit, seed)
    return plan_jobs(groups, course, seed=seed, folds=folds)


def train_plan(
    plan: Plan,
    out: Path,
    *,
    jobs: int | None = None,
    device: str | None = None,
    engine: str = engines.LOCAL,
    keep_models: bool = True,
    overwrite: bool = False,
    step: Step = lambda event: None,
) -> list[Outcome]:
    """Train the units that ``out`` does not hold yet; returns those that failed."""
    recipes = [find_recipe(name) for name in dict.fromkeys(unit.recipe for unit in plan.units)]
    if device is not None and not any(map(takes_device, recipes)):
        raise InputError(
            f"a device is for recipes that compute with torch, but got {device!r} for a pool"
            " without one",
            "leave the device out",
        )
    check_kind(out, END_TO_END, overwrite=overwrite)
    if (out / END_TO_END).is_dir():
        clear(out, END_TO_END)
    if out.is_dir():
        remove_unfinished(out)
    waiting = unfinished(plan, out, overwrite=overwrite)
    if waiting and (out / NAME).is_file():
        # What it describes is about to change, and it is written last.
        (out / NAME).unlink()
    done, total = len(plan.units) - len(waiting), len(plan.units)
    if done:
        step({"done": done, "total": total, "member": "from before", "kept": done})
    failed: list[Outcome] = []
    noted: set[str] = set()
    for on_device in (False, True):
        now = [unit for unit in waiting if find_recipe(unit.recipe).on_device == on_device]
        if not now:
            continue
        shared, broken = _prepare(plan, now, device)
        failed += broken
        ready = [unit for unit in now if unit.group in shared]
        devices = engines.devices_for(on_device and engine == engines.LOCAL, device)
        for outcome in engines.run_jobs(
            JobContext(plan, shared, keep_models),
            ready,
            out / MEMBERS,
            engine=engine,
            jobs=engines.how_many_jobs(jobs, on_device, devices),
            devices=devices,
            progress=lambda unit: _told(step, unit),
        ):
            if outcome.reason:
                failed.append(outcome)
            else:
                done += 1
            step({"done": done, "total": total, "member": outcome.unit.path})
            for note in outcome.notes:
                if note not in noted:
                    warnings.warn(f"{outcome.unit.path}: {note}", EDOWarning, stacklevel=3)
                noted.add(note)
    return failed


def _prepare(
    plan: Plan, units: Sequence[TrainingJob], device: str | None
) -> tuple[dict[str, Any], list[Outcome]]:
    """What the members of each group share; a group whose work fails takes its units with it."""
    texts: tuple[Text, ...] = ()
    if plan.folds is None:
        rows = rows_for_job(plan.course, None, None)
        needed = {*rows.learn, *rows.stop, *(i for some in rows.answer.values() for i in some)}
        texts = tuple(plan.course.texts[i] for i in sorted(needed))
    else:
        texts = plan.course.texts
    shared: dict[str, Any] = {}
    failed: list[Outcome] = []
    for name in dict.fromkeys(unit.group for unit in units):
        own = [unit for unit in units if unit.group == name]
        recipe = find_recipe(own[0].recipe)
        options = dict(own[0].options) | ({"device": device} if takes_device(recipe) else {})
        try:
            shared[name] = recipe.prepare(texts, options)
        except EDOError as error:
            failed += [Outcome(unit, str(error)) for unit in own]
    return shared, failed


def _told(step: Step, unit: TrainingJob) -> Progress:
    return lambda event: step({"member": unit.path, **event})


def _all_failed(failed: Sequence[Outcome]) -> EDOError:
    reasons = list(dict.fromkeys(one.reason for one in failed))
    more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
    return InputError(f"at least one member must be trained, but all failed: {reasons[0]}{more}")


def write_trained(
    folder: Path, predictions: dict[str, Predictions], manifest: dict[str, Any]
) -> None:
    """Write predictions, and the manifest last."""
    from edokit._io import write_json
    from edokit.predictions import write_predictions

    if (folder / NAME).is_file() and _kept(folder / NAME) != json.dumps(manifest):
        # It does not describe what is written now.
        (folder / NAME).unlink()
    for name, table in predictions.items():
        write_predictions(table, folder / PREDICTIONS / f"{name}.npz")
    write_json(manifest, folder / NAME)


def _kept(path: Path) -> str:
    """A manifest as one text, to be compared."""
    try:
        return json.dumps(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return ""


def prepare_training(
    annotations: Annotations,
    groups: Sequence[Group],
    *,
    out: Path,
    seed: int = 0,
    cross_fit: int | None = None,
    pairs: bool = False,
) -> int:
    """Write what ``python -m edokit.members`` trains on another machine; returns how many fits."""
    course = TrainingData.of(annotations, pairs=pairs)
    plan = make_plan(course, check_pool(groups), seed=seed, cross_fit=cross_fit)
    out.mkdir(parents=True, exist_ok=True)
    plan.save(out)
    return len(plan.units)


_SAME = 1e-6
_SHARED = (Supervision.SOFT.value, Supervision.MAJORITY.value)
"""Whose targets are the same for every member."""


def warn_of_identical_members(
    pool: Sequence[Group], predictions: Mapping[str, Predictions]
) -> None:
    """Say which groups hold several members with the same answers, and what to do about it."""
    alike = [group for group in pool if all(_are_identical(group, p) for p in predictions.values())]
    if not alike:
        return
    named = "; ".join(f"{group.name}, {group.members} members" for group in alike)
    shared = [group.supervision for group in alike if group.supervision in _SHARED]
    why = " (they learn the same targets, and nothing in them is left to chance)" if shared else ""
    hint = "train them with --supervision random-select, or " if shared else ""
    warnings.warn(
        f"all members of a group give the same answers{why}: {named}; {hint}ask for one, and add"
        " groups that differ in recipe or options",
        EDOWarning,
        stacklevel=3,
    )


def _are_identical(group: Group, answers: Predictions) -> bool:
    own = [k for k, name in enumerate(answers.groups or ()) if name == group.name]
    if len(own) < 2:
        return False
    said = np.asarray(answers.probabilities)[:, own]
    return bool((np.abs(said - said[:, :1]) <= _SAME).all())
