"""Training jobs: what is to be trained, and how one job fits, predicts and saves.

A job trains one member, one fold of a member, or, end to end, all members of an ensemble together.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import HAVE, EDOWarning, InputError, are, check_seed, examples, warn
from edokit._io.atomic import digest_of, discard, whole_file, whole_folder
from edokit._io.schema import (
    flag,
    listed,
    loose,
    mapping,
    number,
    optional,
    plain,
    read_document,
    record,
    text,
)
from edokit._types import Codes, Floats
from edokit._version import __version__
from edokit.annotator_effects import ATTRIBUTES_NOTE, attributes_of
from edokit.members.groups import Group, folder_name
from edokit.members.recipe import (
    Member,
    MemberData,
    Progress,
    find_recipe,
    make_member,
    refuse_code,
    write_arrays,
)
from edokit.members.supervision import (
    Draw,
    Supervision,
    majority,
    most_active,
    per_annotator,
    random_select,
    soft,
)
from edokit.members.training_data import TRAIN, JobRows, TrainingData, rows_for_job

FORMAT = 1
# The folder of a training: members trained one by one or end to end, predictions by split, the
# ensemble (end to end alone) and the manifest, written last. The folder of a job: the model, its
# predictions and its card, written last.
MEMBERS, END_TO_END = "members", "end-to-end"
PREDICTIONS, ENSEMBLE, MANIFEST = "predictions", "ensemble", "manifest.json"
JOB_PREDICTIONS, CARD = "predictions.npz", "member.json"
PAIRS = "-pairs"
"""Ends the name of predictions of pairs of an item and an annotator."""
HEADS = "head"
"""The group of members that are trained end to end; they are named after it."""
HEAD_OPTIONS = ("n_members", "preset")
"""Options of an end-to-end job that have parameters of their own."""
FEW_LABELS = 20
"""Fewer labels of an annotator make a member that says little; it is trained, with a warning."""
_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "transformers", "sentence-transformers")


@dataclass(frozen=True)
class TrainingJob:
    """One fit."""

    member: str
    group: str
    recipe: str
    options: Mapping[str, Any]
    supervision: str
    draw: str
    seed: int
    """Its own seed; end to end, the seed that those of the heads are derived from."""
    annotator: str | None = None
    """Whose labels are its targets, with per-annotator supervision."""
    fold: int | None = None
    heads: int = 0
    """How many members it trains end to end; 0: one member, on its own."""

    @property
    def path(self) -> str:
        """Its name in messages: the member, and the fold."""
        return self.member if self.fold is None else f"{self.member}/fold-{self.fold}"

    @property
    def folder(self) -> str:
        """Where it is kept, relative to the folder of the training."""
        return END_TO_END if self.heads else f"{MEMBERS}/{self.path}"

    @property
    def members(self) -> list[str]:
        """The names of the members that it trains."""
        return member_names(HEADS, self.heads) if self.heads else [self.member]

    @property
    def head_seeds(self) -> list[int]:
        """Seeds of the heads, from which their targets are drawn."""
        return [member_seed(self.seed, HEADS, k) for k in range(self.heads)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as plan and card hold them."""
        values = asdict(self)
        if not self.heads:
            del values["heads"]
        return values


@dataclass(frozen=True, eq=False)
class Plan:
    """All jobs, and the data that they train on."""

    data: TrainingData
    jobs: tuple[TrainingJob, ...]
    folds: Codes | None = None
    """The fold of each item [N], -1 for items outside of all folds."""

    @property
    def _fold_list(self) -> list[int] | None:
        return None if self.folds is None else self.folds.tolist()

    @property
    def end_to_end(self) -> bool:
        """Whether one job trains all members together."""
        return any(job.heads for job in self.jobs)

    def rows(self, job: TrainingJob) -> JobRows:
        """The items that a job trains on, stops on and predicts."""
        return rows_for_job(self.data, self.folds, job.fold)

    def pairs(self, positions: npt.ArrayLike) -> list[tuple[int, str]]:
        """Each of these items with each annotator who labelled it, or is asked for."""
        chosen = np.asarray(positions, dtype=np.int64).tolist()
        whose = self.data.annotators_of(chosen)
        return [(i, name) for i, names in zip(chosen, whose, strict=True) for name in names]

    def fingerprint(self, job: TrainingJob) -> str:
        """A name for exactly this fit on exactly this data."""
        free = {*find_recipe(job.recipe).operational, *(HEAD_OPTIONS if job.heads else ())}
        options = {key: value for key, value in job.options.items() if key not in free}
        parts: list[Any] = [{**job.to_dict(), "options": options}, self.data.digest]
        if job.heads:
            preset = job.options["preset"]
            parts[0] = [job.heads, options, preset, job.supervision, job.draw, job.seed]
        else:
            parts.append(self._fold_list)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    def save(self, folder: Path) -> None:
        """Write ``course.json`` and ``plan.json``, for a machine with little installed."""
        self.data.save(folder / "course.json")
        stored = {"units": [job.to_dict() for job in self.jobs], "folds": self._fold_list}
        # The plan comes last: where there is one, there is all.
        with whole_file(folder / "plan.json") as temporary:
            temporary.write_text(json.dumps(stored, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, trust: Collection[str] = ()) -> Plan:
        """Read what ``save`` wrote; code that it names is imported from ``trust`` alone."""
        how = "write them with `edo train … --prepare`"
        for name in ("plan.json", "course.json"):
            if not (folder / name).is_file():
                raise InputError(f"{folder} holds no {name}", how)
        stored = read_document(folder / "plan.json", _PLAN, "a whole plan", how)
        jobs = tuple(TrainingJob(**job) for job in stored["units"])
        for job in jobs:
            refuse_code(str(folder / "plan.json"), job.recipe, job.options, trust)
        data = TrainingData.load(folder / "course.json", how)
        folds = stored["folds"]
        if folds is not None and len(folds) != len(data):
            raise InputError(
                f"{folder / 'plan.json'} has folds for {len(folds)} of {len(data)} items", how
            )
        return cls(data, jobs, None if folds is None else np.asarray(folds, dtype=np.int32))


_WORDS = ("group", "recipe", "supervision", "draw")
_COUNT = number(0, 2**31 - 1, whole=True)
_JOB = record(
    {
        "member": folder_name,
        **dict.fromkeys(_WORDS, text),
        "options": mapping(plain),
        "seed": number(0, whole=True),
    },
    {"annotator": text, "fold": _COUNT, "heads": number(0, 10_000, whole=True)},
    only=True,
)
_PLAN = record(
    {"units": listed(_JOB), "folds": optional(listed(number(-1, 2**31 - 1, whole=True)))}
)
_CARD = record(
    {},
    {
        **dict.fromkeys((*_WORDS, "fingerprint", "scale"), text),
        "kept": flag,
        "files": mapping(number(0, whole=True)),
        "sha256": mapping(text),
        **dict.fromkeys(("history", "notes", "versions", "hardware"), loose),
    },
)


def plan_jobs(
    groups: Sequence[Group],
    data: TrainingData,
    *,
    random_state: int = 0,
    folds: Codes | None = None,
) -> Plan:
    """A job for each member of each group, and for each fold if there are folds.

    A member's seed depends on ``random_state``, its group's name and its number alone, so that
    groups can grow without changing the members they have.
    """
    check_seed(random_state)
    every: list[int | None] = [None] if folds is None else list(range(int(folds.max()) + 1))
    jobs = []
    for group in groups:
        annotators: list[str] | list[None] = [None] * group.members
        numbers = every if find_recipe(group.recipe).learns(group.options) else [None]
        if group.supervision == Supervision.PER_ANNOTATOR.value:
            train = data.where(TRAIN) if folds is None else np.flatnonzero(folds >= 0)
            labelled = data.take(train)
            annotators = most_active(labelled, group.members)
            _warn_of_few_labels(group, labelled, annotators)
        for k, name in enumerate(member_names(group.name, group.members, annotators)):
            how = (group.recipe, dict(group.options), group.supervision, str(group.draw))
            for fold in numbers:
                seed = member_seed(random_state, group.name, k, fold)
                jobs.append(TrainingJob(name, group.name, *how, seed, annotators[k], fold))
    names = [job.path for job in jobs]
    if len(set(names)) < len(names):
        raise InputError("groups of the same name give members of the same name", "rename a group")
    return Plan(data, tuple(jobs), folds)


def member_names(group: str, members: int, annotators: Sequence[str | None] = ()) -> list[str]:
    """Names of a group's members; one that is an annotator has the annotator's name in its own.

    Folders are named like members, so only letters, digits and a few signs of a name stay.
    """
    names = [f"{group}-{k + 1:02d}" for k in range(members)]
    for k, annotator in enumerate(annotators):
        shown = re.sub(r"[^A-Za-z0-9._]+", "-", annotator or "")[:40].strip("-.")
        names[k] += f"-{shown}" if shown else ""
    return names


def member_seed(seed: int, group: str, number: int, fold: int | None = None) -> int:
    """A member's own seed."""
    parts = [seed, zlib.crc32(group.encode()), number] + ([] if fold is None else [fold])
    # 31 bits: some libraries refuse larger seeds.
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)


def _warn_of_few_labels(group: Group, data: TrainingData, annotators: Sequence[str]) -> None:
    labels = np.bincount(data.annotator_codes, minlength=len(data.annotators))
    count = {name: int(n) for name, n in zip(data.annotators, labels, strict=True)}
    few = [f"{name} ({count[name]})" for name in annotators if count[name] < FEW_LABELS]
    if few:
        enough = len(annotators) - len(few)
        rest = f"members={enough} leaves them out" if enough else "random-select uses all labels"
        warn(
            f"{group.name}: {are(len(few), len(annotators), HAVE, 'annotator')} fewer than"
            f" {FEW_LABELS} labels to train a member on: {examples(few)}; the members are trained"
            f" nevertheless, {rest}",
            parameters=("members",),
        )


@dataclass(frozen=True, eq=False)
class JobContext:
    """What all jobs of a training need: sent to each worker once."""

    plan: Plan
    shared: dict[str, Any]
    """What each group prepared, by its name."""
    keep_models: bool = True
    starts: dict[str, Any] = field(default_factory=dict)
    """Where fits are to start, by the path of the job."""
    spent: dict[str, float] = field(default_factory=dict)
    """Seconds of a job in what was done for all of its group together, by the group's name."""

    def member_data(self, job: TrainingJob) -> MemberData:
        """What a job trains on."""
        data, rows = self.plan.data, self.plan.rows(job)
        early = find_recipe(job.recipe).stops_early
        train = np.setdiff1d(rows.train, rows.stop) if early else rows.train
        shared = self.shared.get(job.group)
        own = member_data(data.take(train), job, data.take(rows.stop), shared)
        return replace(own, start=self.starts.get(job.path))


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    job: TrainingJob
    reason: str = ""
    """Why it failed; empty if it did not."""
    notes: tuple[str, ...] = ()
    """Warnings on the way."""
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Its files by name, where the worker could not write them itself."""


def run_job(
    context: JobContext,
    job: TrainingJob,
    out: Path,
    device: str | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run a job into its folder under ``out``; a failure is an outcome, not an exception."""
    notes: tuple[str, ...] = ()
    try:
        with whole_folder(out / job.folder) as folder:
            notes = fit_job(context, job, folder, device, progress)
            finished = read_card(out / job.folder) or {}
            if job.heads and finished.get("fingerprint") != context.plan.fingerprint(job):
                # What is replaced goes only now that the new is finished.
                clear(out, MEMBERS, END_TO_END)
    except Exception as error:  # whatever a model does, the other members go on
        reason = " ".join(str(error).split())
        named = reason if isinstance(error, InputError) else f"{type(error).__name__}: {reason}"
        return Outcome(job, named or type(error).__name__, notes)
    return Outcome(job, notes=notes)


def fit_job(
    context: JobContext,
    job: TrainingJob,
    folder: Path,
    device: str | None = None,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Fit, predict and write everything into a folder; returns what EDO warned of."""
    plan, data = context.plan, context.plan.data
    own = context.member_data(job)
    history: list[dict[str, Any]] = []

    def note(event: dict[str, Any]) -> None:
        if "epoch" in event:  # others are of the moment
            history.append(event)
        if progress is not None:
            progress(event)

    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        member = make_member(job.recipe, len(data.classes), job.options, device)
        seed = member_seed(job.seed, END_TO_END, 0) if job.heads else job.seed
        member.fit(own, random_state=seed, progress=note)
        arrays = predict_rows(member, plan, job)
    seconds = time.perf_counter() - started + context.spent.get(job.group, 0.0)
    # Each warning once, those of EDO first.
    notes = dict.fromkeys(
        (" ".join(str(one.message).split()), issubclass(one.category, EDOWarning)) for one in caught
    )
    ours = tuple(text for text, own in notes if own)
    if context.keep_models:
        member.save(folder)
    write_arrays(folder / JOB_PREDICTIONS, **arrays)
    card = {
        "format": FORMAT,
        **job.to_dict(),
        "fingerprint": plan.fingerprint(job),
        **(member.details if job.heads else {"details": dict(member.details)}),
        **({"attributes_note": ATTRIBUTES_NOTE} if member.known_attributes else {}),
        "classes": data.classes,
        "scale": data.scale.to_text(data.classes),
        "items": len(own.texts),
        "kept": context.keep_models,
        "files": sizes_of(folder),
        "sha256": digests_of(folder),
        "seconds": round(seconds, 3),
        "history": history,
        "notes": [*ours, *(text for text, own in notes if not own)],
        "versions": versions(),
        "hardware": hardware(),
    }
    text = json.dumps(card, ensure_ascii=False, indent=2) + "\n"
    (folder / CARD).write_text(text, encoding="utf-8")
    return ours


def predict_rows(member: Member, plan: Plan, job: TrainingJob) -> dict[str, npt.NDArray[Any]]:
    """What a fitted member predicts of each split, and of pairs if it knows annotators."""
    data, arrays = plan.data, dict[str, npt.NDArray[Any]]()
    for name, positions in plan.rows(job).predict.items():
        predicted = member.predict_proba([data.texts[i] for i in positions])
        arrays[name] = _checked(predicted, job, len(positions), data)
        arrays[f"{name} items"] = np.array([data.items[i] for i in positions])
        if member.known_annotators and not job.heads:
            pairs = plan.pairs(positions)
            known: Any = member
            how: dict[str, Any] = {"annotators": [[whose] for _, whose in pairs]}
            if member.known_attributes:
                how["attributes"] = attributes_of(data)
            predicted = known.predict_proba([data.texts[i] for i, _ in pairs], **how)
            arrays[f"{name}{PAIRS}"] = _checked(predicted, job, len(pairs), data)
    return arrays


def member_data(
    part: TrainingData, job: TrainingJob, stop: TrainingData, shared: Any = None
) -> MemberData:
    """What a job trains on, given the items that it may use."""
    targets: Callable[[int], Floats]
    if job.supervision == Supervision.RANDOM_SELECT.value:

        def targets(epoch: int) -> Floats:
            number = 0 if job.draw == Draw.ONCE.value else epoch
            drawn = [random_select(part, seed, number) for seed in job.head_seeds or [job.seed]]
            return np.stack(drawn, axis=1) if job.heads else drawn[0]

    else:
        if job.annotator is not None:
            if job.annotator not in part.annotators:
                raise InputError(
                    f"annotator {job.annotator!r} labelled no item of those to train on in this"
                    " fold",
                    "ask for fewer members or folds",
                )
            positions, same = per_annotator(part, job.annotator)
            part = part.take(positions)
        else:
            same = soft(part) if job.supervision == Supervision.SOFT.value else majority(part)
        if job.heads:
            same = np.stack([same] * job.heads, axis=1)

        def targets(epoch: int) -> Floats:
            return same

    return MemberData(
        texts=part.texts,
        targets=targets,
        dev_texts=stop.texts,
        dev_soft_labels=stop.soft_labels if len(stop) else None,
        dev_hard_labels=stop.hard if len(stop) else None,
        annotations=part,
        shared=shared,
        dev_annotations=stop if len(stop) else None,
        scale=part.scale,
        classes=part.classes,
    )


def read_card(folder: Path) -> dict[str, Any] | None:
    """What a finished job says of itself; none if it is not there."""
    if not os.path.lexists(folder / CARD):
        return None
    card: dict[str, Any] = read_document(
        folder / CARD, _CARD, "the card of a trained member", "remove this folder"
    )
    return card


def finished_card(folder: Path) -> dict[str, Any]:
    """The same of a job that must be finished."""
    card = read_card(folder)
    if card is None:
        raise InputError(f"{folder} holds no {CARD}, so it is no trained member", "train again")
    return card


def clear(out: Path, *kinds: str) -> None:
    """Remove members of these kinds, and what was written about them."""
    (out / MANIFEST).unlink(missing_ok=True)
    for name in (PREDICTIONS, ENSEMBLE, *kinds):
        discard(out / name)


def sizes_of(folder: Path) -> dict[str, int]:
    """The bytes of each file in a folder, by name."""
    return {
        file.relative_to(folder).as_posix(): file.stat().st_size
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def digests_of(folder: Path) -> dict[str, str]:
    """SHA-256 of each file in a folder, by name: a damaged model is not loaded."""
    return {name: digest_of(folder / name) for name in sizes_of(folder)}


def versions() -> dict[str, str]:
    """The versions of Python, EDO and the packages in use."""
    found = {"python": platform.python_version(), "edokit": __version__}
    for package in _PACKAGES:
        module = "sklearn" if package == "scikit-learn" else package.replace("-", "_")
        with suppress(PackageNotFoundError):
            if module in sys.modules:
                found[package] = _version(package)
    return found


_version = cache(version)


def hardware() -> dict[str, Any]:
    """Machine, processors and GPU."""
    from joblib import cpu_count

    torch = sys.modules.get("torch")
    gpu = torch.cuda.get_device_name() if torch and torch.cuda.is_available() else None
    return {"machine": platform.machine(), "cpus": cpu_count(), "gpu": gpu}


def _checked(values: Any, job: TrainingJob, n_texts: int, data: TrainingData) -> npt.NDArray[Any]:
    """Probabilities [N, C] (end to end [N, K, C]); a model that diverged is no member."""
    predicted, n_classes = np.asarray(values, dtype=float), len(data.classes)
    expected = (n_texts, job.heads, n_classes) if job.heads else (n_texts, n_classes)
    if predicted.shape != expected:
        raise InputError(
            f"the recipe {job.recipe!r} predicts probabilities of shape {predicted.shape} where"
            f" {expected} is needed",
            "correct the recipe",
        )
    rows = data.scale.rows(predicted)
    off = ~np.isfinite(rows).all(axis=-1) | (rows < 0).any(axis=-1)
    off |= np.abs(rows.sum(axis=-1) - 1) > 1e-3
    if off.any():
        each = off.reshape(n_texts, -1).any(axis=1)
        raise InputError(
            f"the probabilities of {int(each.sum())} of {n_texts} texts are not finite, not between"
            " 0 and 1 or do not sum to 1",
            "train with other options",
        )
    return predicted.astype(np.float32)
