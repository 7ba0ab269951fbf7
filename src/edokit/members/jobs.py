"""Training jobs: the plan of all fits, and how one job fits, predicts and saves.

A job trains one member, or one fold of a member.
"""

from __future__ import annotations

import os
import re
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from edokit._errors import EDOWarning, InputError, check_seed, option
from edokit._io.atomic import files_below, whole_folder
from edokit._io.digests import digest_file, digest_json
from edokit._io.documents import Count, Document, Json, Names, read_json, to_model, write_json
from edokit._package import loaded_versions
from edokit._types import Codes, Floats
from edokit.members.groups import Group
from edokit.members.recipe import (
    OPERATIONAL,
    Member,
    MemberData,
    Progress,
    find_recipe,
    has_epochs,
    learns,
    make_member,
    predict_texts,
    split_context,
    write_arrays,
)
from edokit.members.supervision import (
    ONCE,
    PER_ANNOTATOR,
    RANDOM_SELECT,
    SOFT,
    majority,
    most_active,
    per_annotator,
    random_select,
    soft,
)
from edokit.members.texts import Texts
from edokit.members.training_data import (
    TRAIN,
    JobRows,
    TrainingData,
    check_splits,
    fold_numbers,
    rows_for_job,
)
from edokit.scales import Scale

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations

FORMAT = 1
# The folder of a training: members, predictions by split and the manifest, written last. The folder
# of a job: the model, its predictions and its card, written last.
MEMBERS, PREDICTIONS, MANIFEST = "members", "predictions", "manifest.json"
JOB_PREDICTIONS, CARD = "predictions.npz", "member.json"
# Suffix of the name of predictions with a row per item and annotator.
BY_ANNOTATOR = "-pairs"
# The recipe of models from elsewhere, which `add_member` adds to a folder.
EXISTING = "edokit.members.existing:ExistingModel"


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
        What the requests of members that ask a server may cost together, in the unit of their
        prices. Members that it does not cover fail; all answers are kept, and not asked again.
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

    def annotator_rows(self, positions: npt.ArrayLike) -> list[tuple[int, str]]:
        """Each of these items with each annotator who labelled it or is to be predicted."""
        return [(int(i), name) for i in np.asarray(positions) for name in self.data.people[i]]

    def fingerprint(self, job: TrainingJob) -> str:
        """A digest of everything that the result of a job depends on."""
        options = {key: value for key, value in job.options.items() if key not in OPERATIONAL}
        folds = None if self.folds is None else self.folds.tolist()
        parts = [{**asdict(job), "options": options}, self.data.digest, folds]
        return digest_json(parts)[:32]


def make_plan(
    data: TrainingData, groups: Sequence[Group], options: TrainingOptions | None = None
) -> TrainingPlan:
    """Plan a job for each member of each group, and for each fold if there are folds.

    A member's seed depends on ``random_state``, its group's name and its number alone, so that
    groups can grow without changing their members. Data and options that a recipe refuses are
    refused here.
    """
    options = options or TrainingOptions()
    check_seed(options.random_state)
    some_learn = any(learns(find_recipe(group.recipe), group.options) for group in groups)
    check_splits(data, options.cross_fit, some_learn)
    folds, all_folds = None, list[int | None]([None])
    if options.cross_fit is not None:
        folds = fold_numbers(data, options.cross_fit, options.random_state)
        all_folds = list(range(options.cross_fit))
    train = data.where(TRAIN) if folds is None else np.flatnonzero(folds >= 0)
    jobs = []
    for group in groups:
        recipe = find_recipe(group.recipe)
        make_member(group.recipe, len(data.classes), group.options)  # refuses invalid options
        if data.scale.is_multi_label and not recipe.multi_label:
            raise InputError(
                f"{group.recipe} predicts one class of a text, but these annotators gave sets of"
                " labels",
                f"choose another recipe, such as {option('recipe', 'linear')}",
            )
        annotators: list[str] | list[None] = [None] * group.members
        if group.supervision == PER_ANNOTATOR:
            annotators = most_active(data.annotations.take(train), group.members)
        for k, name in enumerate(member_names(group.name, group.members, annotators)):
            for fold in all_folds if learns(recipe, group.options) else [None]:
                job = TrainingJob(
                    member=name,
                    group=group.name,
                    recipe=group.recipe,
                    options=dict(group.options),
                    supervision=group.supervision,
                    draw=str(group.draw),
                    seed=member_seed(options.random_state, group.name, k, fold),
                    annotator=annotators[k],
                    fold=fold,
                )
                jobs.append(job)
    return TrainingPlan(data, tuple(groups), tuple(jobs), folds, options)


def member_names(group: str, members: int, annotators: Sequence[str | None] = ()) -> list[str]:
    """Names of a group's members; a per-annotator member carries the annotator's name.

    Folders are named like members, so only letters, digits and a few signs of a name stay.
    """
    names = [f"{group}-{k + 1:02d}" for k in range(members)]
    for k, annotator in enumerate(annotators):
        suffix = re.sub(r"[^A-Za-z0-9._]+", "-", annotator or "")[:40].strip("-.")
        names[k] += f"-{suffix}" if suffix else ""
    return names


def member_seed(seed: int, group: str, number: int, fold: int | None = None) -> int:
    """The seed of a member, or of one of its folds."""
    parts = [seed, zlib.crc32(group.encode()), number] + ([] if fold is None else [fold])
    # 31 bits: some libraries refuse larger seeds.
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)


@dataclass(frozen=True)
class Outcome:
    """How a job ended: the reason for a failure (else empty), and the warnings that EDO gave."""

    job: TrainingJob
    reason: str = ""
    notes: tuple[str, ...] = ()


def run_job(
    plan: TrainingPlan,
    job: TrainingJob,
    out: Path,
    device: str | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run a job into its folder under ``out``; a failure is an outcome, not an exception."""
    notes: tuple[str, ...] = ()
    try:
        with whole_folder(out / job.folder) as folder:
            notes = fit_job(plan, job, folder, device, progress)
    except Exception as error:  # a failing model must not stop the other members
        reason = " ".join(str(error).split())
        if not isinstance(error, InputError) or not reason:
            reason = f"{type(error).__name__}: {reason}".removesuffix(": ")
        return Outcome(job, reason, notes)
    return Outcome(job, notes=notes)


def fit_job(
    plan: TrainingPlan,
    job: TrainingJob,
    folder: Path,
    device: str | None,
    progress: Progress | None,
) -> tuple[str, ...]:
    """Fit, predict and write the member into a folder; return EDO's warnings."""
    data, fit_data = plan.data, member_data(plan, job)
    history: list[dict[str, Any]] = []

    def report(event: dict[str, Any]) -> None:
        if "epoch" in event:
            history.append(event)
        if progress is not None:
            progress(event)

    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        member = make_member(job.recipe, len(data.classes), job.options, device)
        member.fit(fit_data, random_state=job.seed, progress=report)
        arrays = predict_splits(member, plan, job)
    seconds = time.perf_counter() - started
    # Every message once, and whether it is one of EDO's.
    notes = {
        " ".join(str(warning.message).split()): issubclass(warning.category, EDOWarning)
        for warning in caught
    }
    if plan.options.keep_models:
        member.save(folder)
    write_arrays(folder / JOB_PREDICTIONS, **arrays)
    card = {
        **asdict(job),
        "fingerprint": plan.fingerprint(job),
        **card_fields(member, data.classes, data.scale),
        "items": len(fit_data.texts),
        "kept": plan.options.keep_models,
        "seconds": round(seconds, 3),
        "history": history,
        "notes": list(notes),
    }
    write_card(card, folder)
    return tuple(note for note, is_ours in notes.items() if is_ours)


def card_fields(member: Member, classes: Sequence[str], scale: Scale) -> dict[str, Any]:
    """The fields that the cards of all saved members have, trained here or added."""
    return {
        "format": FORMAT,
        "details": dict(member.details),
        "classes": list(classes),
        "scale": scale.to_text(tuple(classes)),
        "versions": loaded_versions(),
    }


def predict_splits(
    member: Member, plan: TrainingPlan, job: TrainingJob
) -> dict[str, npt.NDArray[Any]]:
    """Predictions of a fitted member by split; by annotator too, if it knows annotators."""
    data, arrays = plan.data, dict[str, npt.NDArray[Any]]()
    for split, positions in plan.rows(job).predict.items():
        predicted = predict_texts(member, [data.texts[i] for i in positions])
        arrays[split] = _checked(predicted, data.scale)
        if member.known_annotators:
            rows = plan.annotator_rows(positions)
            texts, annotators = [data.texts[i] for i, _ in rows], [[name] for _, name in rows]
            predicted = predict_texts(member, texts, annotators=annotators)
            arrays[f"{split}{BY_ANNOTATOR}"] = _checked(predicted, data.scale)
    return arrays


def member_data(plan: TrainingPlan, job: TrainingJob) -> MemberData:
    """The data that a job trains on."""
    data, rows = plan.data, plan.rows(job)
    stops_early = has_epochs(find_recipe(job.recipe))
    train = np.setdiff1d(rows.train, rows.stop) if stops_early else rows.train
    if job.annotator is not None:
        train = train[np.isin(train, per_annotator(data.annotations, job.annotator)[0])]
        if not len(train):
            raise InputError(
                f"annotator {job.annotator!r} labelled none of the items to train on in this fold",
                "ask for fewer members or folds",
            )
    labels, stop_labels = data.annotations.take(train), data.annotations.take(rows.stop)
    texts, context = split_context([data.texts[i] for i in train])
    dev_texts, dev_context = split_context([data.texts[i] for i in rows.stop])
    has_dev = len(rows.stop) > 0
    return MemberData(
        texts=texts,
        targets=_targets(job, labels, data.hard[train]),
        context=context,
        dev_texts=dev_texts,
        dev_context=dev_context,
        dev_soft_labels=stop_labels.soft_labels if has_dev else None,
        dev_hard_labels=data.hard[rows.stop] if has_dev else None,
        annotations=labels,
        dev_annotations=stop_labels if has_dev else None,
        scale=data.scale,
        classes=data.classes,
        corpus=data.texts,
    )


def _targets(job: TrainingJob, labels: Annotations, hard: Codes) -> Callable[[int], Floats]:
    """The targets of each epoch."""
    if job.supervision == RANDOM_SELECT:
        draws_once = job.draw == ONCE
        return lambda epoch: random_select(labels, job.seed, 0 if draws_once else epoch)
    if job.annotator is not None:
        targets = per_annotator(labels, job.annotator)[1]
    elif job.supervision == SOFT:
        targets = soft(labels)
    else:
        targets = majority(labels, hard)
    return lambda epoch: targets


class MemberCard(Document):
    """What must be in ``member.json``, the card of a finished job, for the member to be used."""

    format: Count
    recipe: str
    options: dict[str, Json]
    fingerprint: str
    classes: Names
    scale: str
    kept: bool
    sha256: dict[str, str]
    seconds: Annotated[float, Field(ge=0)]
    details: dict[str, Json] = Field(default_factory=dict)


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a job that must be finished."""
    path = folder / CARD
    if not os.path.lexists(path):
        raise InputError(f"{folder} holds no {CARD}, so it is no trained member", "train again")
    card: dict[str, Any] = read_json(path)
    hint = "remove this folder and train again"
    to_model(card, MemberCard, path, title="the card of a trained member", hint=hint)
    return card


def write_card(card: Mapping[str, Any], folder: Path) -> None:
    """Write the card of a job, with digests of its files: a damaged model is not loaded.

    It is replaced in one step, so that a kill leaves the old card or the new one.
    """
    files = {name: path for name, path in files_below(folder).items() if name != CARD}
    digests = {name: digest_file(path) for name, path in files.items()}
    write_json({**card, "sha256": digests}, folder / CARD)


def changed_files(folder: Path, card: Mapping[str, Any]) -> list[str]:
    """Files of a job that are missing or are not what its card lists."""
    return [
        name
        for name, digest in card["sha256"].items()
        if not os.path.isfile(folder / name) or digest_file(folder / name) != digest
    ]


def _checked(predicted: Floats, scale: Scale) -> npt.NDArray[Any]:
    """Probabilities [N, C] as they are stored; a model that diverged is refused."""
    invalid = ~scale.are_distributions(predicted)
    if invalid.any():
        texts = np.asarray(invalid.reshape(len(predicted), -1).any(axis=1))
        raise InputError(
            f"the probabilities of {int(texts.sum())} of {len(predicted)} texts are not finite, not"
            " between 0 and 1 or do not sum to 1",
            "train with other options",
        )
    return predicted.astype(np.float32)
