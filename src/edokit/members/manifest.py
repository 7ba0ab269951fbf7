"""What was trained, on what, how long it took and how good it is: one JSON file, written last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import InputError
from edokit.members.collect import MEMBERS, read_card
from edokit.members.course import Course
from edokit.members.end_to_end import FOLDER
from edokit.members.plan import Plan
from edokit.members.pool import Group, is_folder_name
from edokit.members.registry import find_recipe, known_options
from edokit.members.storing import discard
from edokit.members.unit import FORMAT, Outcome, versions

if TYPE_CHECKING:
    from edokit.predictions import Predictions

NAME, PREDICTIONS, ENSEMBLE = "manifest.json", "predictions", "ensemble"
METRICS = ("f1", "ce", "md", "bs")
Scores = dict[str, float | None]


def make_manifest(
    plan: Plan,
    groups: Sequence[Group],
    predictions: Mapping[str, Predictions],
    failed: Sequence[Outcome],
    out: Path,
    *,
    seed: int,
    source: str = "",
) -> dict[str, Any]:
    """Groups, members with their metrics, the plain mean's metrics, what failed, versions."""
    scores = {name: member_scores(plan.course, table) for name, table in predictions.items()}
    named = next(iter(predictions.values()), None)
    members = [
        _member(plan, name, out, {split: table[k] for split, (table, _) in scores.items()})
        for k, name in enumerate(named.members if named is not None else ())
    ]
    return {
        "format": FORMAT,
        "data": described(plan.course, source),
        "seed": seed,
        "cross_fit": None if plan.folds is None else int(plan.folds.max()) + 1,
        "groups": [
            {
                "name": group.name,
                "recipe": group.recipe,
                "members": group.members,
                "supervision": group.supervision,
                "draw": group.draw,
                "options": {**known_options(find_recipe(group.recipe)), **group.options},
            }
            for group in groups
        ],
        "members": members,
        "mean": {split: mean for split, (_, mean) in scores.items()},
        "failed": [{"name": one.unit.path, "reason": one.reason} for one in failed],
        "predictions": {name: f"{PREDICTIONS}/{name}.npz" for name in predictions},
        "seconds": round(sum(member["seconds"] for member in members), 3),
        "versions": versions(),
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder of members."""
    from edokit._io import read_json

    if not (folder / NAME).is_file():
        raise InputError(
            f"a folder of members must hold {NAME}, but {folder} does not",
            "name a folder that `edo train` finished (start it again and it goes on)",
        )
    manifest = read_json(folder / NAME)
    if not isinstance(manifest, dict) or not _is_whole(manifest):
        raise InputError(
            f"{folder / NAME} must list members with names, groups and classes, but does not",
            "train again",
        )
    written = manifest.get("format", 0)
    if not isinstance(written, int) or written > FORMAT:
        raise InputError(
            f"{folder / NAME} must have the format {FORMAT} or older, but has {written!r}",
            "install a newer edokit",
        )
    return manifest


def _is_whole(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest says what is needed to ask its members."""
    members, data = manifest.get("members"), manifest.get("data")
    if not isinstance(members, list) or not isinstance(data, dict):
        return False
    classes = data.get("classes")
    return (
        # Folders are named like members.
        all(isinstance(one, dict) and is_folder_name(one.get("name")) for one in members)
        and all(isinstance(one.get("group"), str) for one in members)
        and isinstance(classes, list)
        and all(isinstance(name, str) for name in classes)
    )


def check_kind(out: Path, other: str, *, overwrite: bool) -> None:
    """Refuse a folder that holds members of the other kind, unless they are to be replaced."""
    if (out / other).is_dir() and not overwrite:
        how = {MEMBERS: "one by one", FOLDER: "end to end"}[other]
        raise InputError(
            f"{out} must be empty or hold members of this very training, but holds members trained"
            f" {how}",
            "choose another --out, or replace them with --overwrite",
        )


def clear(out: Path, *kinds: str) -> None:
    """Remove members, and what was written about them."""
    (out / NAME).unlink(missing_ok=True)
    for name in (PREDICTIONS, ENSEMBLE, *kinds):
        discard(out / name)


def described(course: Course, source: str) -> dict[str, Any]:
    """What members were trained on."""
    return {
        "source": source,
        "digest": course.digest,
        "items": dict(Counter(course.splits)),
        "classes": list(course.classes),
        "annotators": len(course.annotators),
    }


def member_scores(course: Course, table: Predictions) -> tuple[list[Scores], Scores]:
    """Metrics of each member and of the plain mean."""
    members = [scores(course, table, table.probabilities[:, k]) for k in range(len(table.members))]
    return members, scores(course, table, table.uniform)


def scores(course: Course, table: Predictions, probabilities: Any) -> Scores:
    """Metrics of probabilities [N, C] of the table's items."""
    from edokit.metrics import compute_metrics

    place = {item: row for row, item in enumerate(course.items)}
    rows = [place[str(item)] for item in table.items]
    return compute_metrics(
        probabilities, course.soft_labels[rows], course.hard[rows], metrics=METRICS
    )


def _card(folder: Path) -> dict[str, Any]:
    """What a unit says of itself, which was there a moment ago."""
    card = read_card(folder)
    if card is None:
        raise InputError(
            f"finished members must stay where they are, but {folder} is gone", "run it again"
        )
    return card


def _member(plan: Plan, name: str, out: Path, scores: dict[str, Any]) -> dict[str, Any]:
    units = [unit for unit in plan.units if unit.member == name]
    cards = [_card(out / MEMBERS / unit.path) for unit in units]
    first = units[0]
    member: dict[str, Any] = {
        "name": name,
        "group": first.group,
        "recipe": first.recipe,
        "targets": {"supervision": first.supervision, "draw": first.draw},
        "seed": first.seed if first.fold is None else [unit.seed for unit in units],
        "items": cards[0]["items"] if first.fold is None else [card["items"] for card in cards],
        "seconds": round(sum(card["seconds"] for card in cards), 3),
        "metrics": scores,
        "kept": all(card["kept"] for card in cards),
        "versions": cards[0]["versions"],
        "hardware": cards[0]["hardware"],
    }
    if first.annotator is not None:
        member["targets"]["annotator"] = first.annotator
    for key in ("history", "notes"):
        listed = [card[key] for card in cards]
        if any(listed):
            member[key] = listed[0] if first.fold is None else listed
    return member
