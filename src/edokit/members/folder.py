"""The folder of trained members: finished jobs, predictions, manifest."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import EDOWarning, InputError, examples
from edokit.members.end_to_end import END_TO_END
from edokit.members.groups import Group, is_folder_name
from edokit.members.jobs import CARD, FORMAT, Outcome, Plan, TrainingJob, sizes_of, versions
from edokit.members.jobs import JOB_PREDICTIONS as PREDICTIONS
from edokit.members.recipe import find_recipe, known_options, read_arrays
from edokit.members.storing import discard
from edokit.members.training_data import FIT, TrainingData

if TYPE_CHECKING:
    from edokit.predictions import Predictions

MEMBERS = "members"


def read_card(folder: Path) -> dict[str, Any] | None:
    """What a finished unit says of itself; none if it is not there."""
    try:
        card: dict[str, Any] = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{folder / CARD} must be a whole JSON file, but: {error}", "remove this folder"
        ) from error
    if not isinstance(card, dict):
        raise InputError(
            f"{folder / CARD} must describe a member, but does not", "remove this folder"
        )
    return card


def unfinished(plan: Plan, out: Path, *, overwrite: bool = False) -> list[TrainingJob]:
    """The units that are not there yet; units trained otherwise are refused or replaced."""
    missing, other = [], {}
    for unit in plan.units:
        place = out / MEMBERS / unit.path
        card = read_card(place)
        if card is None:
            missing.append(unit)
            in_the_way = _in_the_way(place, unit)
            if in_the_way is not None:
                other[unit.path] = in_the_way
            else:
                # A folder without a card is what is left of one that was being removed.
                discard(place)
        elif card.get("fingerprint") != plan.fingerprint(unit):
            other[unit.path] = place
        elif not _all_there(place, card):
            # Such as a copy from another machine that broke off.
            warnings.warn(
                f"{place} has lost a file or a part of one and is trained again",
                EDOWarning,
                stacklevel=3,
            )
            discard(place)
            missing.append(unit)
    if other and not overwrite:
        raise InputError(
            f"{out} must be empty or hold members of this very training, but"
            f" {len(other)} {'was' if len(other) == 1 else 'were'} trained on other data or with"
            f" other settings: {examples(other)}",
            "choose another --out, or replace them with --overwrite",
        )
    if not other:
        return missing
    for place in dict.fromkeys(other.values()):
        discard(place)
    return unfinished(plan, out)


def _all_there(place: Path, card: dict[str, Any]) -> bool:
    """Whether the files of a finished unit are still those that its card lists."""
    there, listed = sizes_of(place), card.get("files", {})
    return isinstance(listed, dict) and all(there.get(name) == listed[name] for name in listed)


def _in_the_way(place: Path, unit: TrainingJob) -> Path | None:
    """Where a member was trained in folds that is now to be trained without, or the reverse."""
    if unit.fold is None:
        return place if any(map(read_card, place.glob("fold-*"))) else None
    return place.parent if read_card(place.parent) is not None else None


def not_asked_for(plan: Plan, out: Path) -> list[str]:
    """Members that are finished here, but not among those of the plan."""
    asked = {unit.member for unit in plan.units}
    found = {card.relative_to(out / MEMBERS).parts[0] for card in _cards(out)}
    return sorted(name for name in found - asked if not name.startswith("."))


def _cards(out: Path) -> Iterator[Path]:
    for pattern in (f"*/{CARD}", f"*/fold-*/{CARD}"):
        yield from (out / MEMBERS).glob(pattern)


def collect(plan: Plan, out: Path, failed: Sequence[str] = ()) -> dict[str, Predictions]:
    """Predictions of all members but the failed ones, by name.

    With folds, ``fit`` holds for each item the answer of the fit that did not see it, and the
    others hold the mean over the folds' fits.
    """
    from edokit.predictions import Predictions

    of_member: dict[str, list[TrainingJob]] = {}
    for unit in plan.units:
        if unit.member not in failed:
            of_member.setdefault(unit.member, []).append(unit)
    gathered: dict[str, list[Any]] = {}
    items: dict[str, Any] = {}
    for units in of_member.values():
        for name, (ids, answers) in _of_one(units, out, plan).items():
            gathered.setdefault(name, []).append(answers)
            items[name] = ids
    return {
        name: Predictions.from_arrays(
            np.stack(answers, axis=1),
            items=items[name],
            members=list(of_member),
            classes=plan.course.classes,
            groups=[units[0].group for units in of_member.values()],
            layout="NKC",
        )
        for name, answers in gathered.items()
    }


def _of_one(units: Sequence[TrainingJob], out: Path, plan: Plan) -> dict[str, tuple[Any, Any]]:
    """Items and answers of one member, by name of the predictions."""
    stored = [read_arrays(out / MEMBERS / unit.path / PREDICTIONS) for unit in units]
    names = [name for name in stored[0] if not name.endswith(" items")]
    result = {}
    for name in names:
        ids = [arrays[f"{name} items"].tolist() for arrays in stored]
        if name == FIT and plan.folds is not None:
            place = {item: row for row, item in enumerate(chain.from_iterable(ids))}
            answers = np.concatenate([arrays[name] for arrays in stored])
            wanted = [item for item in plan.course.items if item in place]
            result[name] = (wanted, answers[[place[item] for item in wanted]])
        else:
            result[name] = (ids[0], np.mean([arrays[name] for arrays in stored], axis=0))
    return result


MANIFEST, PREDICTIONS_FOLDER, ENSEMBLE_FOLDER = "manifest.json", "predictions", "ensemble"
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
        "predictions": {name: f"{PREDICTIONS_FOLDER}/{name}.npz" for name in predictions},
        "seconds": round(sum(member["seconds"] for member in members), 3),
        "versions": versions(),
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder of members."""
    from edokit._io import read_json

    if not (folder / MANIFEST).is_file():
        raise InputError(
            f"a folder of members must hold {MANIFEST}, but {folder} does not",
            "name a folder that `edo train` finished (start it again and it goes on)",
        )
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or not _is_whole(manifest):
        raise InputError(
            f"{folder / MANIFEST} must list members with names, groups and classes, but does not",
            "train again",
        )
    written = manifest.get("format", 0)
    if not isinstance(written, int) or written > FORMAT:
        raise InputError(
            f"{folder / MANIFEST} must have the format {FORMAT} or older, but has {written!r}",
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
        how = {MEMBERS: "one by one", END_TO_END: "end to end"}[other]
        raise InputError(
            f"{out} must be empty or hold members of this very training, but holds members trained"
            f" {how}",
            "choose another --out, or replace them with --overwrite",
        )


def clear(out: Path, *kinds: str) -> None:
    """Remove members, and what was written about them."""
    (out / MANIFEST).unlink(missing_ok=True)
    for name in (PREDICTIONS_FOLDER, ENSEMBLE_FOLDER, *kinds):
        discard(out / name)


def described(course: TrainingData, source: str) -> dict[str, Any]:
    """What members were trained on."""
    return {
        "source": source,
        "digest": course.digest,
        "items": dict(Counter(course.splits)),
        "classes": list(course.classes),
        "annotators": len(course.annotators),
    }


def member_scores(course: TrainingData, table: Predictions) -> tuple[list[Scores], Scores]:
    """Metrics of each member and of the plain mean."""
    members = [scores(course, table, table.probabilities[:, k]) for k in range(len(table.members))]
    return members, scores(course, table, table.uniform)


def scores(course: TrainingData, table: Predictions, probabilities: Any) -> Scores:
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
