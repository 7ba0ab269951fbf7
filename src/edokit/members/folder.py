"""The folder of a training: finished jobs, their predictions, and the manifest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from edokit._errors import InputError, errors_in, examples, option, warn
from edokit._io.atomic import discard, remove_leftovers
from edokit._io.documents import Count, Document, Json, Names, read_json, to_model, write_json
from edokit._package import loaded_versions
from edokit.members.groups import FOLDER_NAME, Group
from edokit.members.jobs import (
    BY_ANNOTATOR,
    CARD,
    EXISTING,
    FORMAT,
    JOB_PREDICTIONS,
    MANIFEST,
    MEMBERS,
    PREDICTIONS,
    Outcome,
    TrainingJob,
    TrainingPlan,
    changed_files,
    read_card,
)
from edokit.members.recipe import find_recipe, have_contexts, known_options, read_arrays
from edokit.members.supervision import SOFT
from edokit.members.training_data import FIT, TrainingData
from edokit.scales import DeclaredScale, Scale, check_same_scale

if TYPE_CHECKING:
    from edokit.predictions.core import Predictions

# An item's position and, in predictions by annotator, the annotator ("" is nobody).
Row = tuple[int, str | None]
# Rows and their probabilities [N, C].
Answers = tuple[list[Row], Any]
# Cards of finished jobs by `TrainingJob.path`.
Cards = Mapping[str, Mapping[str, Any]]


def open_folder(plan: TrainingPlan, out: Path) -> list[TrainingJob]:
    """Make a folder ready for the jobs of a plan, and return those that are not finished.

    Members trained with other data or settings are refused or, with ``overwrite``, replaced. So is
    a folder of models from elsewhere, for which a training has no targets and no splits.
    """
    cards = member_cards(out)
    added = [name for name, card in cards.items() if card["recipe"] == EXISTING]
    if added:
        raise InputError(
            f"{out} holds models that were added to it: {examples(added)}",
            f"choose another {option('out')} folder; {option('members')} can be given several times"
            " where members predict",
        )
    if out.is_dir():
        remove_leftovers(out)
    waiting = unfinished_jobs(plan, out, cards)
    if waiting:
        (out / MANIFEST).unlink(missing_ok=True)  # it describes other members, and is written last
    return waiting


def unfinished_jobs(plan: TrainingPlan, out: Path, cards: Cards) -> list[TrainingJob]:
    """The jobs of a plan that are not finished in a folder with these cards."""
    fingerprints = {job.path: plan.fingerprint(job) for job in plan.jobs}
    members = {job.member for job in plan.jobs}
    different = [
        path
        for path, card in cards.items()
        if path.partition("/")[0] in members and fingerprints.get(path) != card["fingerprint"]
    ]
    if different and not plan.options.overwrite:
        raise InputError(
            f"{out} holds other members, trained on other data or with other settings:"
            f" {examples(different)}",
            f"choose another {option('out')} folder, or replace them with"
            f" {option('overwrite', True)}",
        )
    for path in different:
        discard(out / MEMBERS / path)
    missing = []
    for job in plan.jobs:
        folder = out / job.folder
        if job.path in cards and job.path not in different:
            if not (changed := changed_files(folder, cards[job.path])):
                continue
            # For example an incomplete copy from another machine.
            warn(f"{folder} is damaged ({examples(changed)}) and is trained again")
        discard(folder)  # without a card it was left by an interrupted removal
        missing.append(job)
    return missing


def member_cards(out: Path) -> Cards:
    """Cards of the finished jobs in a folder, by `TrainingJob.path`."""
    root = out / MEMBERS
    paths = sorted(chain(root.glob(f"[!.]*/{CARD}"), root.glob(f"[!.]*/fold-*/{CARD}")))
    return {path.parent.relative_to(root).as_posix(): read_card(path.parent) for path in paths}


def collect_predictions(
    plan: TrainingPlan, out: Path, cards: Cards, failed: Sequence[str] = ()
) -> dict[str, Predictions]:
    """Predictions of all members but the failed ones, by split.

    With folds, ``fit`` holds the out-of-fold predictions, and other splits the mean over the
    folds. Names that end in ``-pairs`` are of members that know annotators: a row for each item
    and annotator, and an anonymous one for each item.
    """
    from edokit.predictions.core import Predictions

    jobs_of: dict[str, list[TrainingJob]] = {}
    for job in plan.jobs:
        if job.member not in failed:
            jobs_of.setdefault(job.member, []).append(job)
    answers_of: dict[str, dict[str, Answers]] = {}
    details = {}
    for member, jobs in jobs_of.items():
        for split, joined in _member_predictions(plan, jobs, out).items():
            answers_of.setdefault(split, {})[member] = joined
        facts = fold_details([cards[job.path] for job in jobs])
        details[member] = facts | soft_supervision(jobs[0].supervision)
    tables = {}
    for split, answers in answers_of.items():
        rows, *_ = next(iter(answers.values()))
        tables[split] = Predictions.from_arrays(
            np.stack([probabilities for _, probabilities in answers.values()], axis=1),
            items=[plan.data.items[item] for item, _ in rows],
            members=list(answers),
            classes=plan.data.classes,
            groups=[jobs_of[member][0].group for member in answers],
            annotators=[name for _, name in rows] if split.endswith(BY_ANNOTATOR) else None,
            layout="NKC",
            scale=plan.data.scale,
            member_info={member: details[member] for member in answers if details[member]},
        )
    return tables


def _member_predictions(
    plan: TrainingPlan, jobs: Sequence[TrainingJob], out: Path
) -> dict[str, Answers]:
    """The predictions of a member by split: the rows of all folds, or the mean over folds."""
    folds = [_job_predictions(plan, job, out / job.folder) for job in jobs]
    predictions: dict[str, Answers] = {}
    for split in folds[0]:
        if not all(split in fold for fold in folds):
            continue
        rows, probabilities = zip(*(fold[split] for fold in folds), strict=True)
        if plan.folds is None or split.removesuffix(BY_ANNOTATOR) != FIT:
            predictions[split] = rows[0], np.mean(probabilities, axis=0)
            continue
        all_rows = list(chain.from_iterable(rows))
        order = sorted(range(len(all_rows)), key=lambda row: all_rows[row][0])
        predictions[split] = [all_rows[row] for row in order], np.concatenate(probabilities)[order]
    return predictions


def _job_predictions(plan: TrainingPlan, job: TrainingJob, folder: Path) -> dict[str, Answers]:
    """The predictions of a finished job by split: rows of the plan, and probabilities."""
    splits = plan.rows(job).predict
    names = [*splits, *(f"{split}{BY_ANNOTATOR}" for split in splits)]
    arrays = read_arrays(folder / JOB_PREDICTIONS, names)
    predictions: dict[str, Answers] = {}
    for split, positions in splits.items():
        anonymous = arrays[split]
        predictions[split] = [(int(i), None) for i in positions], anonymous
        if (name := f"{split}{BY_ANNOTATOR}") in arrays:
            rows: list[Row] = [*plan.annotator_rows(positions)]
            rows += [(int(i), "") for i in positions]  # the anonymous answers
            predictions[name] = rows, np.concatenate([arrays[name], anonymous])
    return predictions


def soft_supervision(supervision: str | None) -> dict[str, str]:
    """The note in ``member_info`` that a member learned soft labels, which `compare` reads."""
    return {"supervision": supervision} if supervision == SOFT else {}


_SUMMED = ("requests", "answers", "failures", "tokens_in", "tokens_out", "cost", "total_cost")
"""Details of a member that add up over its folds."""


def fold_details(cards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The details that a member's folds share; counts and costs are sums over folds."""
    details = [
        {
            key: value
            for key, value in (card.get("details") or {}).items()
            if isinstance(value, str | int | float)
        }
        for card in cards
    ]
    combined: dict[str, Any] = {}
    for key in dict.fromkeys(key for facts in details for key in facts):
        values: list[Any] = [facts[key] for facts in details if key in facts]
        if key in _SUMMED:
            combined[key] = sum(values)
        elif all(value == values[0] for value in values):
            combined[key] = values[0]
    return combined


def make_manifest(
    plan: TrainingPlan,
    predictions: Mapping[str, Predictions],
    failed: Sequence[Outcome],
    cards: Cards,
) -> dict[str, Any]:
    """Groups, members with their metrics, those of the uniform mean, failures, versions."""
    data = plan.data
    labelled = {
        split: table
        for split, table in predictions.items()
        if table.annotators is None and split not in data.unlabelled
    }
    names = next(iter(predictions.values())).members if predictions else ()
    members = []
    for k, name in enumerate(names):
        metrics = {
            s: _scores(data, table, table.probabilities[:, k]) for s, table in labelled.items()
        }
        members.append(_manifest_entry(plan, name, cards, metrics))
    manifest = new_manifest(data.classes, data.scale)
    manifest["data"] |= {
        "source": plan.options.source,
        "digest": data.digest,
        "items": dict(Counter(data.splits)),
        "pairs": have_contexts(data.texts),
        "annotators": len(data.annotations.annotators),
    }
    return manifest | {
        "seed": plan.options.random_state,
        "cross_fit": plan.options.cross_fit,
        "groups": [_describe_group(group) for group in plan.groups],
        "members": members,
        "mean": {split: _scores(data, t, t.uniform) for split, t in labelled.items()},
        "failed": [{"name": outcome.job.path, "reason": outcome.reason} for outcome in failed],
        "predictions": {split: f"{PREDICTIONS}/{split}.npz" for split in predictions},
        "seconds": round(sum(member["seconds"] for member in members), 3),
    }


def _describe_group(group: Group) -> dict[str, Any]:
    """A group in the manifest, with the defaults of its options."""
    defaults = known_options(find_recipe(group.recipe))
    return {**asdict(group), "options": {**defaults, **group.options}}


def _manifest_entry(
    plan: TrainingPlan, name: str, cards: Cards, scores: dict[str, Any]
) -> dict[str, Any]:
    """A member in the manifest, from the cards of its folds, which say more."""
    jobs = [job for job in plan.jobs if name == job.member]
    job, job_cards = jobs[0], [cards[job.path] for job in jobs]
    targets = {"supervision": job.supervision, "draw": job.draw}
    if job.annotator is not None:
        targets["annotator"] = job.annotator
    return {
        "name": name,
        "group": job.group,
        "recipe": job.recipe,
        "targets": targets,
        "metrics": scores,
        "kept": all(card["kept"] for card in job_cards),
        "seconds": round(sum(card["seconds"] for card in job_cards), 3),
        "details": fold_details(job_cards),
    }


def _scores(data: TrainingData, table: Predictions, probabilities: Any) -> dict[str, float | None]:
    """Metrics of probabilities [N, C] of the table's items."""
    from edokit.metrics import compute_metrics, main_metrics

    row_of = {item: row for row, item in enumerate(data.items)}
    rows = [row_of[str(item)] for item in table.items]
    labels = data.annotations.soft_labels[rows], data.hard[rows]
    names = main_metrics(data.scale)
    return compute_metrics(probabilities, *labels, metrics=names, scale=data.scale)


def write_training(
    out: Path, predictions: Mapping[str, Predictions], manifest: dict[str, Any]
) -> None:
    """Write predictions, and the manifest last."""
    from edokit.predictions.files import write_predictions

    (out / MANIFEST).unlink(missing_ok=True)  # it may describe other predictions
    for split, table in predictions.items():
        write_predictions(table, out / PREDICTIONS / f"{split}.npz")
    write_json(manifest, out / MANIFEST)


def _check_folder_name(name: str) -> str:
    if not re.fullmatch(FOLDER_NAME, name):
        raise ValueError("is no name of a folder")
    return name


# The name of a folder, in a document.
FolderName = Annotated[str, AfterValidator(_check_folder_name)]


def check_format(number: int) -> int:
    """Refuse the format of a document that a newer version wrote."""
    if number > FORMAT:
        raise ValueError(f"is {number}, and this version reads {FORMAT}: install a newer edokit")
    return number


class _ManifestMember(Document):
    name: FolderName
    group: str
    targets: dict[str, Json] = Field(default_factory=dict)


class _ManifestData(Document):
    classes: Annotated[Names, Field(min_length=2)]
    scale: str
    pairs: bool


def _distinct_members(members: list[_ManifestMember]) -> list[_ManifestMember]:
    if len({member.name for member in members}) < len(members):
        raise ValueError("holds a name twice")
    return members


class Manifest(Document):
    """What must be in ``manifest.json`` for its members to be used."""

    format: Annotated[Count, AfterValidator(check_format)]
    members: Annotated[list[_ManifestMember], AfterValidator(_distinct_members)]
    data: _ManifestData


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder of members."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(
            f"{folder} holds no {MANIFEST}, so it is no folder of trained members",
            "name a folder that `edo train` finished (start it again and it goes on)",
        )
    manifest: dict[str, Any] = read_json(path)
    to_model(manifest, Manifest, path, title="a manifest of trained members", hint="train again")
    with errors_in(path):
        scale_of(manifest["data"])
    return manifest


def new_manifest(classes: Sequence[str], scale: Scale) -> dict[str, Any]:
    """The manifest of a folder in which nothing was trained yet."""
    return {
        "format": FORMAT,
        "data": {
            "source": "",
            "items": {},
            "classes": list(classes),
            "scale": scale.to_text(tuple(classes)),
            "pairs": False,
        },
        "groups": [],
        "members": [],
        "failed": [],
        "predictions": {},
        "versions": loaded_versions(),
    }


def join_manifests(folders: Sequence[Path]) -> tuple[dict[str, Any], dict[str, Path]]:
    """One manifest of the members of several folders, and the folder of each member.

    A member that reads texts otherwise than the manifest says, or has its classes in another order,
    says so in its entry.
    """
    if not folders:
        raise InputError("no folder of members is named", f"name one: {option('members')}")
    manifests = [read_manifest(folder) for folder in folders]
    reference = manifests[0]["data"]
    data = {**reference, "pairs": any(manifest["data"]["pairs"] for manifest in manifests)}
    members: list[dict[str, Any]] = []
    folder_of: dict[str, Path] = {}
    for folder, manifest in zip(folders, manifests, strict=True):
        folder_data = manifest["data"]
        if sorted(folder_data["classes"]) != sorted(reference["classes"]):
            raise InputError(
                f"the members in {folder} predict {examples(folder_data['classes'])}, those in"
                f" {folders[0]} {examples(reference['classes'])}",
                "name folders of members with the same classes",
            )
        sources = f"members in {folder}", f"members in {folders[0]}"
        check_same_scale(scale_of(folder_data), sources[0], scale_of(reference), sources[1])
        repeated = [entry["name"] for entry in manifest["members"] if entry["name"] in folder_of]
        if repeated:
            raise InputError(
                f"{folder_of[repeated[0]]} and {folder} both have a member {examples(repeated)}",
                "train one of them again as a group with another name (in a TOML file), or name"
                " one folder",
            )
        reading = {
            key: folder_data[key] for key in ("pairs", "classes") if folder_data[key] != data[key]
        }
        members += [{**reading, **entry} for entry in manifest["members"]]
        folder_of |= {entry["name"]: folder for entry in manifest["members"]}
    return {**manifests[0], "data": data, "members": members}, folder_of


def scale_of(description: Mapping[str, Any]) -> Scale:
    """The answer scale in a manifest or a member's card."""
    return DeclaredScale(description["scale"]).on(description["classes"])
