"""The plan of a training: a job for each member, and for each fold of a member."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from edokit._errors import (
    InputError,
    check_number,
    check_seed,
    counted,
    examples,
    one_of,
    option,
    warn,
)
from edokit._io.digests import digest_json
from edokit._types import Codes, Ints
from edokit.members.groups import Group
from edokit.members.layout import MEMBERS
from edokit.members.recipe_options import learns_items
from edokit.members.registry import find_recipe, make_member
from edokit.members.supervision import PER_ANNOTATOR, PER_GROUP, most_active
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

    With per-annotator supervision its targets are the labels of ``annotator``, with per-group
    supervision those of all annotators who have this ``level`` of the ``attribute``.
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
    attribute: str | None = None
    level: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Its fields; an attribute and its level only where it has them."""
        fields = asdict(self)
        if self.attribute is None:
            del fields["attribute"], fields["level"]
        return fields

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
    min_annotators : int, default=5
        With per-group supervision: fewer annotators of the training items than this are too few for
        a level to have a member.
    small_levels : {"error", "skip"}, default="error"
        What to do with such levels: refuse them, or train no member for them and say so.
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
    min_annotators: int = 5
    small_levels: str = "error"


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

    def annotator_pairs(self, positions: Ints) -> list[tuple[int, str]]:
        """The pairs of each of these items and an annotator whose label is to be predicted."""
        pairs = []
        for position in positions:
            for name in self.data.item_annotators[position]:
                pairs.append((int(position), name))
        return pairs

    def fingerprint(self, job: TrainingJob) -> str:
        """A digest of everything that the result of a job depends on."""
        operational = find_recipe(job.recipe).capabilities.operational
        options = {key: value for key, value in job.options.items() if key not in operational}
        folds = None if self.folds is None else self.folds.tolist()
        fields = {**job.to_dict(), "options": options}
        if job.level is not None:
            fields["annotators"] = self.annotators_of(job)
        return digest_json([fields, self.data.digest, folds])[:32]

    def annotators_of(self, job: TrainingJob) -> list[str] | None:
        """The annotators whose labels alone are the targets of a job; None: all annotators."""
        if job.annotator is not None:
            return [job.annotator]
        if job.attribute is None or job.level is None:
            return None
        attribute = self.data.attributes[job.attribute]
        has_level = attribute.has([job.level])
        return [str(name) for name in self.data.annotations.annotators[has_level]]


def make_plan(
    data: TrainingData, groups: Sequence[Group], options: TrainingOptions | None = None
) -> TrainingPlan:
    """Plan a job for each member of each group, and for each fold if there are folds.

    The seed of a job depends on ``random_state``, the group's name, the member's number and the
    fold alone, so that groups can grow without changing their members. Data and options that a
    recipe refuses are refused here.
    """
    if options is None:
        options = TrainingOptions()
    check_seed(options.random_state)
    check_number("min_annotators", options.min_annotators, 1, whole=True)
    one_of("small_levels", options.small_levels, ("error", "skip"))
    some_learn = any(learns_items(find_recipe(group.recipe), group.options) for group in groups)
    check_splits(data, options.cross_fit, some_learn)
    folds = None
    train_rows = data.where(TRAIN)
    if options.cross_fit is not None:
        folds = fold_numbers(data, options.cross_fit, options.random_state)
        train_rows = np.flatnonzero(folds >= 0)
    jobs: list[TrainingJob] = []
    planned: list[Group] = []
    for group in groups:
        _check_recipe(group, data)
        if group.supervision == PER_GROUP:
            group = _with_levels(group, data, train_rows, options)
        planned.append(group)
        # The annotator, or the level of an attribute, whose labels each member learns.
        annotators: Sequence[str | None] = [None] * group.n_members
        levels: Sequence[str | None] = [None] * group.n_members
        if group.supervision == PER_GROUP:
            levels = group.levels
        elif group.supervision == PER_ANNOTATOR:
            annotators = most_active(
                data.annotations.take(train_rows),
                group.n_members,
                ignore_limit=options.ignore_annotator_limit,
            )
        for number in range(group.n_members):
            learned_name = annotators[number] or levels[number] or ""
            for fold in _group_folds(group, options.cross_fit):
                job = TrainingJob(
                    member=member_name(group.name, number, learned_name),
                    group=group.name,
                    recipe=group.recipe,
                    options=dict(group.options),
                    supervision=group.supervision,
                    draw=str(group.draw),
                    seed=member_seed(options.random_state, group.name, number, fold),
                    annotator=annotators[number],
                    fold=fold,
                    attribute=group.attribute,
                    level=levels[number],
                )
                jobs.append(job)
    return TrainingPlan(data, tuple(planned), tuple(jobs), folds, options)


def _with_levels(
    group: Group, data: TrainingData, train_rows: Ints, options: TrainingOptions
) -> Group:
    """A group with per-group supervision, whose levels are known, with one member for each.

    A level with few annotators of the training items is refused or left out. Those that are left
    out, and annotators whose level is unknown, are counted in a warning.
    """
    assert group.attribute is not None
    attribute = data.attributes[group.attribute]
    training = data.annotations.take(train_rows)
    annotations_of = dict(
        zip(map(str, training.annotators), training.annotations_per_annotator, strict=True)
    )
    # Of all annotators, those who labelled an item to train on are active.
    n_annotations = np.array(
        [annotations_of.get(str(name), 0) for name in data.annotations.annotators]
    )
    is_active = n_annotations > 0
    chosen_levels = list(group.levels or attribute.levels)
    n_annotators: dict[str, int] = {}
    for level in chosen_levels:
        has_level = attribute.codes == attribute.code(level)
        n_annotators[level] = int((is_active & has_level).sum())
    small = {
        level: count for level, count in n_annotators.items() if count < options.min_annotators
    }
    if small:
        counts = ", ".join(f"{level}: {count}" for level, count in small.items())
        verb = "has" if len(small) == 1 else "have"
        message = (
            f"{len(small)} of the {len(n_annotators)} levels of {attribute.name} {verb} fewer than"
            f" {counted(options.min_annotators, 'annotator')} of the items to train on ({counts})"
        )
        if options.small_levels == "error":
            raise InputError(
                message,
                f"leave them out with {option('small_levels', 'skip')}, name the levels to train"
                f" with {option('levels')}, or allow smaller ones with {option('min_annotators')}",
                code="small-levels",
            )
        warn(f"{message}: no member is trained for them")
        chosen_levels = [level for level in chosen_levels if level not in small]
    if len(chosen_levels) < 2:
        raise InputError(
            f"per-group supervision needs two levels of {attribute.name} or more, and has"
            f" {examples(chosen_levels) or 'none'}",
            f"name an attribute with more levels, or choose {option('supervision', 'soft')}",
            code="too-few-levels",
        )
    is_unknown = is_active & (attribute.codes < 0)
    if is_unknown.any():
        labels = int(n_annotations[is_unknown].sum())
        warn(
            f"{attribute.name} is unknown for {counted(int(is_unknown.sum()), 'annotator')} of the"
            f" items to train on: no member of group {group.name!r} learns from their"
            f" {counted(labels, 'label')}"
        )
    if group.members not in (None, len(chosen_levels)):
        raise InputError(
            f"{option('members', group.members)}: per-group supervision trains a member for each"
            f" of the {len(chosen_levels)} levels of {attribute.name}",
            f"leave it out, or name levels with {option('levels')}",
            code="conflicting-options",
        )
    return replace(group, levels=tuple(chosen_levels), members=len(chosen_levels))


def _check_recipe(group: Group, data: TrainingData) -> None:
    """Raise an error for options that the recipe refuses, and for data that it can't learn."""
    make_member(group.recipe, len(data.classes), group.options)
    if not find_recipe(group.recipe).capabilities.can_learn(data.scale):
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


def member_name(group: str, number: int, learned_name: str = "") -> str:
    """The name of a group's member, counted from 0, with that of its annotator or level, if any.

    Folders are named after members, so only letters, digits and a few signs of a name stay.
    """
    name = f"{group}-{number + 1:02d}"
    suffix = re.sub(r"[^A-Za-z0-9._]+", "-", learned_name)[:40].strip("-.")
    if suffix:
        return f"{name}-{suffix}"
    return name


def member_seed(seed: int, group: str, number: int, fold: int | None = None) -> int:
    """The seed of a member, or of one of its folds."""
    parts = [seed, zlib.crc32(group.encode()), number]
    if fold is not None:
        parts.append(fold)
    # 31 bits: some libraries refuse larger seeds.
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)
