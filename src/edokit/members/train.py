"""From annotations to a folder of members, their predictions and a manifest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import InputError, counted, examples, local_path, option, warn
from edokit._progress import Progress, no_progress
from edokit.members.collect import collect_predictions
from edokit.members.familiarity import measure_familiarity
from edokit.members.groups import Group, attributes_of, check_groups
from edokit.members.jobs import Outcome
from edokit.members.layout import MEMBERS
from edokit.members.manifest import ManifestContent, make_manifest, write_training
from edokit.members.plan import TrainingJob, TrainingOptions, TrainingPlan, make_plan
from edokit.members.registry import find_recipe
from edokit.members.resume import Cards, member_cards, open_folder
from edokit.members.runner import run_jobs
from edokit.members.spending import session
from edokit.members.training_data import TrainingData

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations
    from edokit.predictions.core import Predictions

# Members whose probabilities differ by no more than this predict the same.
_TOLERANCE = 1e-6


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
    resumed : int
        Number of jobs that had been finished before.
    """

    predictions: dict[str, Predictions]
    manifest: ManifestContent
    failed: tuple[Outcome, ...]
    resumed: int = 0


def train_members(
    annotations: Annotations,
    groups: Sequence[Group],
    *,
    out: str | Path | None = None,
    options: TrainingOptions | None = None,
    progress: Progress = no_progress,
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
    progress : callable, default=no_progress
        Called with the number of fits done, of all fits, and what is being done: a member, and
        where it is in its training.
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
    checked_groups = check_groups(groups)
    with _training_folder(out, settings.overwrite) as folder:
        data = TrainingData.from_annotations(
            annotations,
            unlabelled=settings.unlabelled,
            attributes=attributes_of(checked_groups),
        )
        train_settings = replace(settings, keep_models=settings.keep_models and out is not None)
        plan = make_plan(data, checked_groups, train_settings)
        with session(
            budget=settings.budget, allow_http=settings.allow_http, place=plan.data.place_of
        ):
            outcomes = train_plan(plan, folder, progress)
        failed = [outcome for outcome in outcomes if outcome.reason]
        failed_members = list(dict.fromkeys(outcome.job.member for outcome in failed))
        if len(failed_members) == len({job.member for job in plan.jobs}):
            raise InputError(
                f"no member was trained, all failed: {failed[0].text}", code="failed-member"
            )
        cards = member_cards(folder)
        predictions = collect_predictions(plan, folder, cards, failed_members)
        _warn_of_other_members(plan, folder, cards)
        _warn_of_identical_members(predictions)
        manifest = make_manifest(plan, predictions, failed, cards)
        if out is not None:
            familiarity = measure_familiarity(plan.data)
            if familiarity is not None:
                familiarity.save(folder)
            write_training(folder, predictions, manifest)
    resumed = len(plan.jobs) - len(outcomes)
    return Trained(predictions, manifest, tuple(failed), resumed)


@contextmanager
def _training_folder(out: str | Path | None, overwrite: bool) -> Iterator[Path]:
    """The folder that a training writes to: ``out``, locked for others, or a temporary one."""
    from edokit.runs.folder import output_folder

    if out is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    folder = local_path(out)
    with output_folder(folder, "members", overwrite=overwrite):
        yield folder


def train_plan(plan: TrainingPlan, out: Path, progress: Progress = no_progress) -> list[Outcome]:
    """Run the jobs of a plan that ``out`` does not hold yet, and return how each of them ended.

    A warning that several of them give is shown once.
    """
    waiting = open_folder(plan, out)
    total = len(plan.jobs)
    done = total - len(waiting)
    outcomes: list[Outcome] = []
    shown_notes: set[str] = set()

    def report_member(steps_done: int, steps: int, task: str) -> None:
        progress(done, total, task)

    if done:
        progress(done, total, "from before")
    for _, jobs in groupby(sorted(waiting, key=_resources), key=_resources):
        progress(done, total, "preparing")
        for outcome in run_jobs(plan, list(jobs), out, report_member):
            outcomes.append(outcome)
            if not outcome.reason:
                done += 1
            progress(done, total, outcome.job.path)
            for note in outcome.notes:
                if note not in shown_notes:
                    warn(f"{outcome.job.path}: {note}")
            shown_notes.update(outcome.notes)
    return outcomes


def _resources(job: TrainingJob) -> tuple[bool, bool]:
    """Whether a job asks a server, and whether it trains on a device; CPU jobs come first."""
    capabilities = find_recipe(job.recipe).capabilities
    return capabilities.endpoint, capabilities.trains_on_device


def _warn_of_other_members(plan: TrainingPlan, out: Path, cards: Cards) -> None:
    """Warn of members of an earlier training that are not part of this one."""
    members = dict.fromkeys(path.partition("/")[0] for path in cards)
    planned = {job.member for job in plan.jobs}
    names = [name for name in members if name not in planned]
    if names:
        warn(
            f"{out / MEMBERS} also holds {counted(len(names), 'member')} of an earlier training"
            f" ({examples(names)}), which predictions and manifest leave out; to include them, ask"
            f" for them with {option('members')}, {option('recipe')} and {option('supervision')} as"
            " before: they are not trained again"
        )


def _warn_of_identical_members(predictions: Mapping[str, Predictions]) -> None:
    """Warn of groups whose members all predict the same, and say what to do about it."""
    table = next(table for table in predictions.values() if table.annotators is None)
    groups = np.array(table.groups or ())
    for name in dict.fromkeys(groups):
        probabilities = np.asarray(table.probabilities)[:, groups == name]
        if probabilities.shape[1] > 1 and (np.ptp(probabilities, axis=1) <= _TOLERANCE).all():
            warn(
                f"all members of a group predict the same: {name}; train one member, or with"
                f" {option('supervision', 'random-select')}, and add groups that differ in recipe"
                " or options"
            )
