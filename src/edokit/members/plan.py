"""The plan of a training: a job for each member, and for each fold of a member."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from edokit._errors import InputError, check_seed, option
from edokit._io.digests import digest_json
from edokit._types import Codes, Ints
from edokit.members.groups import Group
from edokit.members.layout import MEMBERS
from edokit.members.recipe_options import learns_items
from edokit.members.registry import find_recipe, make_member
from edokit.members.supervision import PER_ANNOTATOR, most_active
from edokit.members.texts import Texts
from edokit.members.training_data import (
    TRAIN,
    JobRows,
    TrainingData,
    check_splits,
    fold_numbers,
    rows_for_job,
)


@dataclass(frozen=True)
class TrainingJob:
    """One fit: of a member, or of one fold of it.

    With per-annotator supervision its targets are the labels of ``annotator``.
    """

    member: str
    group: str
    recipe: str
    options: Mapping[str, Any]
    supervision: str
    draw: str
    seed: int
    annotator: str | None = None
    fold: int | None = None

    @property
    def path(self) -> str:
        """Member, or member/fold: name in messages, key of its card, folder below ``members/``."""
        return self.member if self.fold is None else f"{self.member}/fold-{self.fold}"

    @property
    def folder(self) -> str:
        """Its folder, relative to the folder of the training."""
        return f"{MEMBERS}/{self.path}"


@dataclass(frozen=True)
class TrainingOptions:
    """How members are trained.

    Parameters
    ----------
    random_state : int, default=0
        Seed of all members; each derives its own from it.
    cross_fit : int, default=None
        Number of folds of train and dev to train in; the predictions called fit are out-of-fold.
    jobs : int, default=None
        Members that train at a time, in processes of their own. By default, on a GPU as many as
        fit into its memory, else one per core if there is enough work.
    device : str, default=None
        Where recipes that use torch compute, e.g. ``"cuda"``. None: a GPU if there is one.
    keep_models : bool, default=True
        Whether fitted models are kept beside their predictions.
    overwrite : bool, default=False
        Whether to replace members trained with other settings, and files that EDO did not write.
    source : str, default=""
        Where the annotations come from, for the manifest.
    unlabelled : mapping of str to Texts, default=None
        Texts without labels to predict as well, by the name of their split, such as ``test``.
    budget : float, default=None
        What the requests of this run to servers may cost together, in the unit of their prices.
        Members that it does not cover fail; all answers are kept, and not asked again.
    allow_http : bool, default=False
        Whether members may send texts, and your key, to other machines over http, unencrypted.
    ignore_annotator_limit : bool, default=False
        Whether there may be more per-annotator members than the least annotated item has annotators
        (the paper's K ≤ min A_i).
    """

    random_state: int = 0
    cross_fit: int | None = None
    jobs: int | None = None
    device: str | None = None
    keep_models: bool = True
    overwrite: bool = False
    source: str = ""
    unlabelled: Mapping[str, Texts] | None = None
    budget: float | None = None
    allow_http: bool = False
    ignore_annotator_limit: bool = False


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """All jobs of a training, with their data and options.

    ``folds`` has the fold of each item [N], -1 for items outside of all folds.
    """

    data: TrainingData
    groups: tuple[Group, ...]
    jobs: tuple[TrainingJob, ...]
    folds: Codes | None = None
    options: TrainingOptions = TrainingOptions()

    def rows(self, job: TrainingJob) -> JobRows:
        """The items that a job trains on, stops on and predicts."""
        return rows_for_job(self.data, self.folds, job.fold)

    def annotator_rows(self, positions: Ints) -> list[tuple[int, str]]:
        """Each of these items with each annotator who labelled it or is to be predicted."""
        return [
            (int(position), name) for position in positions for name in self.data.people[position]
        ]

    def fingerprint(self, job: TrainingJob) -> str:
        """A digest of everything that the result of a job depends on."""
        operational = find_recipe(job.recipe).capabilities.operational
        options = {key: value for key, value in job.options.items() if key not in operational}
        folds = None if self.folds is None else self.folds.tolist()
        return digest_json([{**asdict(job), "options": options}, self.data.digest, folds])[:32]


def make_plan(
    data: TrainingData, groups: Sequence[Group], options: TrainingOptions | None = None
) -> TrainingPlan:
    """Plan a job for each member of each group, and for each fold if there are folds.

    A member's seed depends on ``random_state``, its group's name and its number alone, so that
    groups can grow without changing their members. Data and options that a recipe refuses are
    refused here.
    """
    if options is None:
        options = TrainingOptions()
    check_seed(options.random_state)
    some_learn = any(learns_items(find_recipe(group.recipe), group.options) for group in groups)
    check_splits(data, options.cross_fit, some_learn)
    folds = None
    train_rows = data.where(TRAIN)
    if options.cross_fit is not None:
        folds = fold_numbers(data, options.cross_fit, options.random_state)
        train_rows = np.flatnonzero(folds >= 0)
    jobs: list[TrainingJob] = []
    for group in groups:
        _check_recipe(group, data)
        annotators: list[str] | list[None] = [None] * group.members
        if group.supervision == PER_ANNOTATOR:
            annotators = most_active(
                data.annotations.take(train_rows),
                group.members,
                ignore_limit=options.ignore_annotator_limit,
            )
        names = member_names(group.name, group.members, annotators)
        for number, name in enumerate(names):
            for fold in _group_folds(group, options.cross_fit):
                job = TrainingJob(
                    member=name,
                    group=group.name,
                    recipe=group.recipe,
                    options=dict(group.options),
                    supervision=group.supervision,
                    draw=str(group.draw),
                    seed=member_seed(options.random_state, group.name, number, fold),
                    annotator=annotators[number],
                    fold=fold,
                )
                jobs.append(job)
    return TrainingPlan(data, tuple(groups), tuple(jobs), folds, options)


def _check_recipe(group: Group, data: TrainingData) -> None:
    """Raise an error for options that the recipe refuses, and for data that it can't learn."""
    make_member(group.recipe, len(data.classes), group.options)
    if data.scale.is_multi_label and not find_recipe(group.recipe).capabilities.multi_label:
        raise InputError(
            f"{group.recipe} predicts one class of a text, but these annotators gave sets of"
            " labels",
            f"choose another recipe, such as {option('recipe', 'linear')}",
            code="unsupported-scale",
        )


def _group_folds(group: Group, n_folds: int | None) -> list[int | None]:
    """The folds that each member of a group is trained in; a single None if it is trained once.

    A member that learns nothing from the items is the same in all folds.
    """
    if n_folds is None or not learns_items(find_recipe(group.recipe), group.options):
        return [None]
    return list(range(n_folds))


def member_names(group: str, members: int, annotators: Sequence[str | None] = ()) -> list[str]:
    """Names of a group's members; a per-annotator member carries the annotator's name.

    Folders have the names of members, so only letters, digits and a few signs of a name stay.
    """
    names = [f"{group}-{number + 1:02d}" for number in range(members)]
    for number, annotator in enumerate(annotators):
        suffix = re.sub(r"[^A-Za-z0-9._]+", "-", annotator or "")[:40].strip("-.")
        if suffix:
            names[number] += f"-{suffix}"
    return names


def member_seed(seed: int, group: str, number: int, fold: int | None = None) -> int:
    """The seed of a member, or of one of its folds."""
    parts = [seed, zlib.crc32(group.encode()), number]
    if fold is not None:
        parts.append(fold)
    # 31 bits: some libraries refuse larger seeds.
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)
