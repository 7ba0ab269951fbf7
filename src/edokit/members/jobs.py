"""Training jobs: what is to be trained, and how one job fits, predicts and saves."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning, InputError
from edokit._types import Floats
from edokit._version import __version__
from edokit.members.groups import Group, is_folder_name
from edokit.members.recipe import (
    Member,
    MemberData,
    Progress,
    find_recipe,
    make_member,
    write_arrays,
)
from edokit.members.storing import whole_folder
from edokit.members.supervision import (
    Draw,
    Supervision,
    majority,
    most_active,
    per_annotator,
    random_select,
    soft,
)
from edokit.members.training_data import TrainingData, rows_for_job


@dataclass(frozen=True)
class TrainingJob:
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

    course: TrainingData
    units: tuple[TrainingJob, ...]
    folds: npt.NDArray[np.int32] | None = None
    """The fold of each item [N], -1 for items outside of all folds."""

    def fingerprint(self, unit: TrainingJob) -> str:
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
            units = tuple(TrainingJob(**unit) for unit in stored["units"])
            if not all(is_folder_name(unit.member) for unit in units):
                raise ValueError("folders can't be named like its members")
            if not all(unit.fold is None or isinstance(unit.fold, int) for unit in units):
                raise ValueError("its folds are not numbered")
            return cls(
                TrainingData.load(folder / "course.json"),
                units,
                None if folds is None else np.asarray(folds, dtype=np.int32),
            )
        except (OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
            raise InputError(
                f"{folder} must hold a whole plan.json and course.json, but: {error}",
                "write them with `edo train … --prepare`",
            ) from error


def plan_jobs(
    groups: Sequence[Group],
    course: TrainingData,
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
                rows_for_job(course, None, None).learn
                if folds is None
                else np.flatnonzero(folds >= 0)
            )
            people = most_active(course.take(learn), group.members)
        for k in range(group.members):
            for fold in numbers:
                units.append(
                    TrainingJob(
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


FORMAT = 1
CARD, JOB_PREDICTIONS = "member.json", "predictions.npz"
_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "torch": "torch",
    "transformers": "transformers",
    "sentence-transformers": "sentence_transformers",
}


@dataclass(frozen=True, eq=False)
class JobContext:
    """What all units of a run need: sent to each worker once."""

    plan: Plan
    shared: dict[str, Any]
    """What each group prepared, by its name."""
    keep_models: bool = True
    """Whether fitted models are kept beside the predictions."""


@dataclass(frozen=True)
class Outcome:
    """How a unit ended."""

    unit: TrainingJob
    reason: str = ""
    """Why it failed; empty if it did not."""
    notes: tuple[str, ...] = ()
    """Warnings on the way."""
    files: dict[str, bytes] | None = field(default=None, repr=False)
    """Its files by name, where the worker could not write them itself."""


def run_job(
    room: JobContext,
    unit: TrainingJob,
    members: Path,
    device: str | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Train a unit into its folder under ``members``; a failure is told, not raised."""
    notes: tuple[str, ...] = ()
    try:
        with whole_folder(members / unit.path) as folder:
            notes = fit_job(room, unit, folder, device, progress)
    except Exception as error:  # whatever a model does, the other members go on
        reason = " ".join(str(error).split())
        named = reason if isinstance(error, InputError) else f"{type(error).__name__}: {reason}"
        return Outcome(unit, named or type(error).__name__, notes)
    return Outcome(unit, notes=notes)


def fit_job(
    room: JobContext,
    unit: TrainingJob,
    folder: Path,
    device: str | None = None,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Fit, predict and write everything into a folder; returns what was warned about."""
    course, plan = room.plan.course, room.plan
    recipe = find_recipe(unit.recipe)
    rows = rows_for_job(course, plan.folds, unit.fold)
    learn = np.setdiff1d(rows.learn, rows.stop) if recipe.stops_early else rows.learn
    lesson = member_data(course.take(learn), unit, course.take(rows.stop), room.shared[unit.group])
    history: list[dict[str, Any]] = []

    def note(event: dict[str, Any]) -> None:
        history.append(event)
        if progress is not None:
            progress(event)

    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        member = make_member(unit.recipe, len(course.classes), unit.options, device)
        member.fit(lesson, seed=unit.seed, progress=note)
        answers = {
            name: _answers(member, course, positions) for name, positions in rows.answer.items()
        }
    seconds = time.perf_counter() - started
    ours, theirs = split_warnings(caught)
    if room.keep_models:
        member.save(folder)
    arrays: dict[str, Any] = {}
    for name, positions in rows.answer.items():
        arrays[name] = answers[name].astype(np.float32)
        arrays[f"{name} items"] = np.array([course.items[i] for i in positions])
    write_arrays(folder / JOB_PREDICTIONS, **arrays)
    card = {
        "format": FORMAT,
        **asdict(unit),
        "fingerprint": plan.fingerprint(unit),
        "classes": course.classes,
        "items": len(lesson.texts),
        "kept": room.keep_models,
        "files": sizes_of(folder),
        "seconds": round(seconds, 3),
        "history": history,
        "notes": [*ours, *theirs],
        "versions": versions(),
        "hardware": hardware(),
    }
    (folder / CARD).write_text(
        json.dumps(card, ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
    )
    return ours


def sizes_of(folder: Path) -> dict[str, int]:
    """The bytes of each file in a folder, by name."""
    return {
        file.relative_to(folder).as_posix(): file.stat().st_size
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def member_data(
    part: TrainingData, unit: TrainingJob, stop: TrainingData, shared: Any = None
) -> MemberData:
    """What a unit learns from, given the items that it may see."""
    targets: Callable[[int], Floats]
    if unit.supervision == Supervision.PER_ANNOTATOR.value:
        if unit.annotator not in part.annotators:
            raise InputError(
                f"annotator {unit.annotator!r} must have answered an item to learn from, but has"
                " none in this fold",
                "ask for fewer members or folds",
            )
        positions, own = per_annotator(part, unit.annotator)
        part = part.take(positions)
        targets = _always(own)
    elif unit.supervision == Supervision.SOFT.value:
        targets = _always(soft(part))
    elif unit.supervision == Supervision.MAJORITY.value:
        targets = _always(majority(part))
    else:
        fixed = unit.draw == Draw.ONCE.value

        def targets(epoch: int) -> Floats:
            return random_select(part, unit.seed, 0 if fixed else epoch)

    return MemberData(
        texts=part.texts,
        targets=targets,
        dev_texts=stop.texts,
        dev_soft_labels=stop.soft_labels if len(stop) else None,
        dev_hard_labels=stop.hard if len(stop) else None,
        annotations=part,
        shared=shared,
    )


def split_warnings(
    caught: Sequence[warnings.WarningMessage],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What was warned about by EDO, and by others; each once."""
    said = dict.fromkeys(
        (" ".join(str(one.message).split()), issubclass(one.category, EDOWarning)) for one in caught
    )
    return tuple(s for s, own in said if own), tuple(s for s, own in said if not own)


def versions() -> dict[str, str]:
    """What computed here: the versions of Python, EDO and the packages in use."""
    found = {"python": platform.python_version(), "edokit": __version__}
    for package, module in _PACKAGES.items():
        if module in sys.modules:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                continue
    return found


def hardware() -> dict[str, Any]:
    """On what it was computed."""
    from joblib import cpu_count

    torch = sys.modules.get("torch")
    gpu = torch is not None and torch.cuda.is_available()
    return {
        "machine": platform.machine(),
        "cpus": cpu_count(),
        "gpu": torch.cuda.get_device_name() if torch is not None and gpu else None,
    }


def _always(targets: Floats) -> Callable[[int], Floats]:
    return lambda epoch: targets


def _answers(member: Member, course: TrainingData, positions: Any) -> Floats:
    """Probabilities [n, C], checked: a model that fell apart must not pass for a member."""
    answers = np.asarray(member.predict_proba([course.texts[i] for i in positions]), dtype=float)
    wanted = (len(positions), len(course.classes))
    if answers.shape != wanted:
        raise InputError(
            f"a member must give probabilities of shape {wanted}, but gave {answers.shape}",
            "correct the recipe",
        )
    off = ~np.isfinite(answers).all(axis=1) | (answers < 0).any(axis=1)
    off |= np.abs(answers.sum(axis=1) - 1) > 1e-3
    if off.any():
        raise InputError(
            "a member must give finite probabilities that sum to 1, but for"
            f" {int(off.sum())} of {len(answers)} texts it does not",
            "train with other options",
        )
    return answers
