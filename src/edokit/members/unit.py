"""One unit of work: fit, predict, save."""

from __future__ import annotations

import json
import platform
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import EDOWarning, InputError
from edokit._types import Floats
from edokit._version import __version__
from edokit.members.arrays_file import write_arrays
from edokit.members.course import Course
from edokit.members.crossfit import rows_of
from edokit.members.plan import Plan, Unit
from edokit.members.recipe import Lesson, Member, Progress
from edokit.members.registry import find_recipe, make_member
from edokit.members.storing import whole_folder
from edokit.members.supervision import (
    Draw,
    Supervision,
    majority,
    per_annotator,
    random_select,
    soft,
)

FORMAT = 1
CARD, PREDICTIONS = "member.json", "predictions.npz"
_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "torch": "torch",
    "transformers": "transformers",
    "sentence-transformers": "sentence_transformers",
}


@dataclass(frozen=True, eq=False)
class Classroom:
    """What all units of a run need: sent to each worker once."""

    plan: Plan
    shared: dict[str, Any]
    """What each group prepared, by its name."""
    keep_models: bool = True
    """Whether fitted models are kept beside the predictions."""


@dataclass(frozen=True)
class Outcome:
    """How a unit ended."""

    unit: Unit
    reason: str = ""
    """Why it failed; empty if it did not."""
    notes: tuple[str, ...] = ()
    """Warnings on the way."""
    files: dict[str, bytes] | None = field(default=None, repr=False)
    """Its files by name, where the worker could not write them itself."""


def train_unit(
    room: Classroom,
    unit: Unit,
    members: Path,
    device: str | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Train a unit into its folder under ``members``; a failure is told, not raised."""
    notes: tuple[str, ...] = ()
    try:
        with whole_folder(members / unit.path) as folder:
            notes = fit_unit(room, unit, folder, device, progress)
    except Exception as error:  # whatever a model does, the other members go on
        reason = " ".join(str(error).split())
        named = reason if isinstance(error, InputError) else f"{type(error).__name__}: {reason}"
        return Outcome(unit, named or type(error).__name__, notes)
    return Outcome(unit, notes=notes)


def fit_unit(
    room: Classroom,
    unit: Unit,
    folder: Path,
    device: str | None = None,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Fit, predict and write everything into a folder; returns what was warned about."""
    course, plan = room.plan.course, room.plan
    recipe = find_recipe(unit.recipe)
    rows = rows_of(course, plan.folds, unit.fold)
    learn = np.setdiff1d(rows.learn, rows.stop) if recipe.stops_early else rows.learn
    lesson = make_lesson(course.take(learn), unit, course.take(rows.stop), room.shared[unit.group])
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
    ours, theirs = heard(caught)
    if room.keep_models:
        member.save(folder)
    arrays: dict[str, Any] = {}
    for name, positions in rows.answer.items():
        arrays[name] = answers[name].astype(np.float32)
        arrays[f"{name} items"] = np.array([course.items[i] for i in positions])
    write_arrays(folder / PREDICTIONS, **arrays)
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


def make_lesson(part: Course, unit: Unit, stop: Course, shared: Any = None) -> Lesson:
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

    return Lesson(
        texts=part.texts,
        targets=targets,
        dev_texts=stop.texts,
        dev_soft_labels=stop.soft_labels if len(stop) else None,
        dev_hard_labels=stop.hard if len(stop) else None,
        annotations=part,
        shared=shared,
    )


def heard(
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


def _answers(member: Member, course: Course, positions: Any) -> Floats:
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
