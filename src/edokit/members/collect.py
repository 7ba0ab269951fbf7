"""From the folders of finished units to predictions of all members."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit.errors import InputError, examples
from edokit.members.arrays_file import read_arrays
from edokit.members.crossfit import FIT
from edokit.members.plan import Plan, Unit
from edokit.members.unit import CARD, PREDICTIONS

if TYPE_CHECKING:
    from edokit.predictions import Predictions

MEMBERS = "members"


def read_card(folder: Path) -> dict[str, Any] | None:
    """What a finished unit says of itself; none if it is not there."""
    try:
        card: dict[str, Any] = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder / CARD} must be a whole JSON file, but: {error}", "remove this folder"
        ) from error
    return card


def unfinished(plan: Plan, out: Path, *, overwrite: bool = False) -> list[Unit]:
    """The units that are not there yet; units trained otherwise are refused or replaced."""
    missing, other = [], []
    for unit in plan.units:
        card = read_card(out / MEMBERS / unit.path)
        if card is None:
            missing.append(unit)
        elif card.get("fingerprint") != plan.fingerprint(unit):
            other.append(unit)
    if other and not overwrite:
        raise InputError(
            f"{out} must be empty or hold members of this very training, but {len(other)} were"
            f" trained on other data or with other settings: {examples(u.path for u in other)}",
            "choose another --out, or replace them with --overwrite",
        )
    for unit in other:
        shutil.rmtree(out / MEMBERS / unit.path)
    return [*missing, *other]


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
