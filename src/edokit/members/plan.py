"""What is to be trained: one unit of work for each member, or for each fold of it."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit.members.course import Course
from edokit.members.crossfit import rows_of
from edokit.members.pool import Group, is_folder_name
from edokit.members.supervision import Supervision, most_active


@dataclass(frozen=True)
class Unit:
    """One fit."""

    member: str
    """The member's name."""
    group: str
    """The group that it belongs to."""
    recipe: str
    """The recipe's name."""
    options: Mapping[str, Any]
    """The recipe's options."""
    supervision: str
    """Whose answers it learns from."""
    draw: str
    """When random-select draws."""
    seed: int
    """Its own seed."""
    annotator: str | None = None
    """Whom it learns from, with per-annotator supervision."""
    fold: int | None = None
    """The fold that it does not see."""

    @property
    def path(self) -> str:
        """Its folder under ``members``."""
        return self.member if self.fold is None else f"{self.member}/fold-{self.fold}"


@dataclass(frozen=True, eq=False)
class Plan:
    """All units, and the data that they learn from."""

    course: Course
    units: tuple[Unit, ...]
    folds: npt.NDArray[np.int32] | None = None
    """The fold of each item [N], -1 for items outside of all folds."""

    def fingerprint(self, unit: Unit) -> str:
        """A name for exactly this fit on exactly this data."""
        folds = None if self.folds is None else self.folds.tolist()
        text = json.dumps([asdict(unit), self.course.digest, folds], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def save(self, folder: Path) -> None:
        """Write ``course.json`` and ``plan.json``, for a machine with little installed."""
        self.course.save(folder / "course.json")
        stored = {
            "units": [asdict(unit) for unit in self.units],
            "folds": None if self.folds is None else self.folds.tolist(),
        }
        from edokit._io import whole_file

        # The plan comes last: where there is one, there is all.
        with whole_file(folder / "plan.json") as temporary:
            temporary.write_text(json.dumps(stored, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Plan:
        """Read what ``save`` wrote."""
        try:
            stored = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
            folds = stored["folds"]
            units = tuple(Unit(**unit) for unit in stored["units"])
            if not all(is_folder_name(unit.member) for unit in units):
                raise ValueError("folders can't be named like its members")
            if not all(unit.fold is None or isinstance(unit.fold, int) for unit in units):
                raise ValueError("its folds are not numbered")
            return cls(
                Course.load(folder / "course.json"),
                units,
                None if folds is None else np.asarray(folds, dtype=np.int32),
            )
        except (OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
            raise InputError(
                f"{folder} must hold a whole plan.json and course.json, but: {error}",
                "write them with `edo train … --prepare`",
            ) from error


def plan_units(
    groups: Sequence[Group],
    course: Course,
    *,
    seed: int = 0,
    folds: npt.NDArray[np.int32] | None = None,
) -> Plan:
    """A unit for each member of each group, and for each fold if there are folds.

    A member's seed depends on the seed, its group's name and its number alone, so that a pool can
    grow without changing the members it has.
    """
    if seed < 0:
        raise InputError(f"the seed must not be negative, but got {seed}", "choose 0 or more")
    numbers: list[int | None] = [None] if folds is None else list(range(int(folds.max()) + 1))
    units = []
    for group in groups:
        people: list[str] | list[None] = [None] * group.members
        if group.supervision == Supervision.PER_ANNOTATOR.value:
            learn = (
                rows_of(course, None, None).learn if folds is None else np.flatnonzero(folds >= 0)
            )
            people = most_active(course.take(learn), group.members)
        for k in range(group.members):
            for fold in numbers:
                units.append(
                    Unit(
                        member=f"{group.name}-{k + 1:02d}",
                        group=group.name,
                        recipe=group.recipe,
                        options=dict(group.options),
                        supervision=group.supervision,
                        draw=str(group.draw),
                        seed=member_seed(seed, group.name, k, fold),
                        annotator=people[k],
                        fold=fold,
                    )
                )
    names = [unit.path for unit in units]
    if len(set(names)) < len(names):
        raise InputError(
            "members must have different names, but groups named alike give the same",
            "rename a group",
        )
    return Plan(course, tuple(units), folds)


def member_seed(seed: int, group: str, number: int, fold: int | None = None) -> int:
    """A member's own seed."""
    parts = [seed, zlib.crc32(group.encode()), number] + ([] if fold is None else [fold])
    # 31 bits: some libraries refuse larger seeds.
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)
