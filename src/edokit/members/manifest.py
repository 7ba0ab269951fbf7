"""The manifest of a folder of members: ``manifest.json``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from pydantic import AfterValidator, Field

from edokit._errors import InputError, errors_in, examples, option
from edokit._io.documents import Count, Document, Json, Names, read_json, to_model, write_json
from edokit._package import member_versions
from edokit._types import Floats
from edokit.members.collect import fold_details
from edokit.members.contexts import have_contexts
from edokit.members.groups import Group
from edokit.members.jobs import Outcome
from edokit.members.layout import FOLDER_NAME, FORMAT, HAS_CONTEXTS, MANIFEST, PREDICTIONS
from edokit.members.plan import TrainingPlan
from edokit.members.recipe_options import known_options
from edokit.members.registry import find_recipe
from edokit.members.resume import Cards
from edokit.members.training_data import TrainingData
from edokit.scales import DeclaredScale, Scale, check_same_scale

if TYPE_CHECKING:
    from edokit.predictions.core import Predictions

ManifestContent: TypeAlias = dict[str, Any]
"""The content of a manifest, or a part of it, whose fields `Manifest` checks."""
# Metrics by name; None where one can't be computed.
MetricScores = dict[str, float | None]


def _check_folder_name(name: str) -> str:
    if not re.fullmatch(FOLDER_NAME, name):
        raise ValueError("can't be the name of a folder")
    return name


# The name of a folder, in a document.
FolderName = Annotated[str, AfterValidator(_check_folder_name)]


def check_format(number: int) -> int:
    """Raise an error for the format of a document that a newer version wrote."""
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
    has_contexts: bool = Field(alias="pairs")


def _distinct_members(members: list[_ManifestMember]) -> list[_ManifestMember]:
    if len({member.name for member in members}) < len(members):
        raise ValueError("has a name twice")
    return members


class Manifest(Document):
    """The fields of ``manifest.json`` that are needed to use its members."""

    format: Annotated[Count, AfterValidator(check_format)]
    members: Annotated[list[_ManifestMember], AfterValidator(_distinct_members)]
    data: _ManifestData


def read_manifest(folder: Path) -> ManifestContent:
    """The manifest of a folder of members."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(
            f"{folder} has no {MANIFEST}: it is not a folder of trained members",
            "name a folder that `edo train` finished (start it again and it resumes)",
            code="wrong-folder",
        )
    manifest: ManifestContent = read_json(path)
    to_model(manifest, Manifest, path, title="a manifest of trained members", hint="train again")
    with errors_in(path):
        scale_of(manifest["data"])
    return manifest


def scale_of(description: ManifestContent) -> Scale:
    """The answer scale in a manifest or a member's card."""
    return DeclaredScale(description["scale"]).resolve(description["classes"])


def new_manifest(classes: Sequence[str], scale: Scale) -> ManifestContent:
    """The manifest of a folder in which nothing was trained yet."""
    return {
        "format": FORMAT,
        "data": {
            "source": "",
            "items": {},
            "classes": list(classes),
            "scale": scale.to_text(tuple(classes)),
            HAS_CONTEXTS: False,
        },
        "groups": [],
        "members": [],
        "failed": [],
        "predictions": {},
        "versions": member_versions(),
    }


def make_manifest(
    plan: TrainingPlan,
    predictions: Mapping[str, Predictions],
    failed: Sequence[Outcome],
    cards: Cards,
) -> ManifestContent:
    """The manifest of a training: its data, groups and members with their metrics, and failures."""
    data = plan.data
    labelled = {
        split: table
        for split, table in predictions.items()
        if table.annotators is None and split not in data.unlabelled
    }
    names: Sequence[str] = ()
    if predictions:
        names = next(iter(predictions.values())).members
    members = []
    for number, name in enumerate(names):
        metrics = {
            split: _scores(data, table, table.probabilities[:, number])
            for split, table in labelled.items()
        }
        members.append(_manifest_entry(plan, name, cards, metrics))
    manifest = new_manifest(data.classes, data.scale)
    manifest["data"] |= {
        "source": plan.options.source,
        "digest": data.digest,
        "items": dict(Counter(data.splits)),
        HAS_CONTEXTS: have_contexts(data.texts),
        "annotators": len(data.annotations.annotators),
    }
    return manifest | {
        "seed": plan.options.random_state,
        "cross_fit": plan.options.cross_fit,
        "groups": [_describe_group(group) for group in plan.groups],
        "members": members,
        "mean": {split: _scores(data, table, table.uniform) for split, table in labelled.items()},
        "failed": [{"name": outcome.job.path, "reason": outcome.reason} for outcome in failed],
        "predictions": {split: f"{PREDICTIONS}/{split}.npz" for split in predictions},
        "seconds": round(sum(member["seconds"] for member in members), 3),
    }


def _describe_group(group: Group) -> ManifestContent:
    """A group in the manifest, with the defaults of its options."""
    defaults = known_options(find_recipe(group.recipe))
    description = {**asdict(group), "options": {**defaults, **group.options}}
    if group.attribute is None:
        del description["attribute"], description["levels"]
    return description


def _manifest_entry(
    plan: TrainingPlan, name: str, cards: Cards, metrics: Mapping[str, MetricScores]
) -> ManifestContent:
    """A member in the manifest, from the cards of its folds, which say more."""
    jobs = [job for job in plan.jobs if name == job.member]
    job_cards = [cards[job.path] for job in jobs]
    first_job = jobs[0]
    targets: dict[str, Json] = {"supervision": first_job.supervision, "draw": first_job.draw}
    if first_job.annotator is not None:
        targets["annotator"] = first_job.annotator
    if first_job.level is not None:
        targets["attribute"] = str(first_job.attribute)
        targets["level"] = first_job.level
        targets["annotators"] = len(plan.annotators_of(first_job) or ())
    return {
        "name": name,
        "group": first_job.group,
        "recipe": first_job.recipe,
        "targets": targets,
        "metrics": metrics,
        "kept": all(card["kept"] for card in job_cards),
        "seconds": round(sum(card["seconds"] for card in job_cards), 3),
        "details": fold_details([card.get("details") or {} for card in job_cards]),
    }


def _scores(data: TrainingData, table: Predictions, probabilities: Floats) -> MetricScores:
    """Metrics of probabilities [N, C] of the table's items."""
    from edokit.metrics import compute_metrics, main_metrics

    row_of = {item: row for row, item in enumerate(data.items)}
    rows = [row_of[str(item)] for item in table.items]
    return compute_metrics(
        np.asarray(probabilities),
        np.asarray(data.annotations.soft_labels)[rows],
        np.asarray(data.hard_labels)[rows],
        metrics=main_metrics(data.scale),
        scale=data.scale,
    )


def write_training(
    out: Path, predictions: Mapping[str, Predictions], manifest: ManifestContent
) -> None:
    """Write predictions, and the manifest last."""
    from edokit.predictions.files import write_predictions

    (out / MANIFEST).unlink(missing_ok=True)  # it may describe other predictions
    for split, table in predictions.items():
        write_predictions(table, out / PREDICTIONS / f"{split}.npz")
    write_json(manifest, out / MANIFEST)


def join_manifests(folders: Sequence[Path]) -> tuple[ManifestContent, dict[str, Path]]:
    """One manifest of the members of several folders, and the folder of each member.

    The manifest has the classes of the first folder, and reads contexts if any folder does. Entries
    of members that differ from it have a field of their own for it.
    """
    if not folders:
        raise InputError(
            "no folder of members is named", f"name one: {option('members')}", code="empty-option"
        )
    manifests = [read_manifest(folder) for folder in folders]
    reference = manifests[0]["data"]
    has_contexts = any(manifest["data"][HAS_CONTEXTS] for manifest in manifests)
    data = {**reference, HAS_CONTEXTS: has_contexts}
    members: list[ManifestContent] = []
    folder_of: dict[str, Path] = {}
    for folder, manifest in zip(folders, manifests, strict=True):
        folder_data = manifest["data"]
        if sorted(folder_data["classes"]) != sorted(reference["classes"]):
            raise InputError(
                f"the members in {folder} predict {examples(folder_data['classes'])}, those in"
                f" {folders[0]} {examples(reference['classes'])}",
                "name folders of members with the same classes",
                code="classes-differ",
            )
        check_same_scale(
            scale_of(folder_data),
            f"members in {folder}",
            scale_of(reference),
            f"members in {folders[0]}",
        )
        repeated = [entry["name"] for entry in manifest["members"] if entry["name"] in folder_of]
        if repeated:
            raise InputError(
                f"{folder_of[repeated[0]]} and {folder} both have a member {examples(repeated)}",
                "train one of them again as a group with another name (in a TOML file), or name"
                " one folder",
                code="duplicate-name",
            )
        differences = {
            key: folder_data[key]
            for key in (HAS_CONTEXTS, "classes")
            if folder_data[key] != data[key]
        }
        for entry in manifest["members"]:
            members.append({**differences, **entry})
            folder_of[entry["name"]] = folder
    return {**manifests[0], "data": data, "members": members}, folder_of
