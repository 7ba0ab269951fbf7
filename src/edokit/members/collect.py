"""From the folders of finished units to predictions of all members."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import EDOWarning, InputError, examples
from edokit.members.arrays_file import read_arrays
from edokit.members.crossfit import FIT
from edokit.members.plan import Plan, Unit
from edokit.members.storing import discard
from edokit.members.unit import CARD, PREDICTIONS, sizes_of

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


def unfinished(plan: Plan, out: Path, *, overwrite: bool = False) -> list[Unit]:
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


def _in_the_way(place: Path, unit: Unit) -> Path | None:
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

    of_member: dict[str, list[Unit]] = {}
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


def _of_one(units: Sequence[Unit], out: Path, plan: Plan) -> dict[str, tuple[Any, Any]]:
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
