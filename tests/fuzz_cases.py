"""Every reader that may be handed a file of someone else's, and what it may do with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from edokit import Annotations, EDOEnsemble, Predictions
from edokit._errors import EDOError, EDOWarning
from edokit._io import read_json
from edokit.datasets import read_annotations
from edokit.members import read_annotators, read_texts
from edokit.members.folder import read_card, read_manifest
from edokit.members.groups import parse_groups
from edokit.members.jobs import Plan
from edokit.members.recipe import read_arrays
from edokit.predictions import join_models, read_model_file, read_predictions
from edokit.report.results import read_search
from edokit.report.summary import describe_choice
from edokit.runs import RunRecord
from fuzz_damage import another
from fuzz_files import OTHERS, whole_files

__all__ = ["OTHERS", "another", "read_everywhere", "read_own", "whole_files"]

Reader = Callable[[Path], Any]


def _ensemble(path: Path) -> EDOEnsemble:
    loaded = EDOEnsemble.load(path.parent)
    loaded.summary()
    loaded.explain()
    k, c = len(loaded.members_), len(loaded.classes_)
    shares = np.full((2, k, c), 1 / c)
    answers = loaded.predict_proba(
        Predictions.from_arrays(
            shares,
            members=loaded.members_,
            classes=loaded.classes_,
            groups=loaded.groups_,
            layout="NKC",
        )
    )
    assert np.allclose(answers.sum(axis=1), 1, atol=1e-3)
    return loaded


def _run(path: Path) -> RunRecord:
    record = RunRecord.load(path.parent)
    for role in record.inputs:
        record.changed(role, path.parent)
    record.annotations("annotations", path.parent)
    record.predictions("predictions", path.parent)
    return record


def _search(path: Path) -> Any:
    found = read_search(path.parent)
    return describe_choice(found, None)


def _manifest(path: Path) -> Any:
    manifest = read_manifest(path.parent)
    for member in manifest["members"]:
        place = (path.parent / "members" / member["name"]).resolve()
        assert place.is_relative_to(path.parent.resolve())
    return manifest["data"]["classes"]


def _member(path: Path) -> Any:
    card = read_card(path.parent)
    return card is not None and card.get("recipe")


def _plan(path: Path) -> Plan:
    plan = Plan.load(path.parent)
    for job in plan.jobs:
        assert (path.parent / job.path).resolve().is_relative_to(path.parent.resolve())
        plan.fingerprint(job)
    return plan


def _pool(path: Path) -> Any:
    return parse_groups(str(path))


_LABEL_STUDIO = partial(read_annotations, format="label-studio")
_ARGILLA = partial(read_annotations, format="argilla")
_LEWIDI = partial(read_annotations, format="lewidi")
_POSITIVE: Reader = lambda path: join_models([path], positive="1")  # noqa: E731
_JOIN: Reader = lambda path: join_models([path])  # noqa: E731

OWN: dict[str, list[Reader]] = {
    "people": [read_annotations],
    "model": [read_model_file, _POSITIVE],
    "texts": [read_texts],
    "studio": [read_annotations, _LABEL_STUDIO],
    "argilla": [read_annotations, _ARGILLA],
    "tone_train": [read_annotations, _LEWIDI],
    "made": [read_predictions],
    "ensemble": [_ensemble],
    "run": [_run],
    "search": [_search],
    "trials": [_search],
    "manifest": [_manifest],
    "member": [_member],
    "plan": [_plan],
    "course": [_plan],
    "pool": [_pool],
}
"""The readers that a file is meant for, by the file's name."""

_TABLES: list[Reader] = [
    *(read_annotations, read_model_file, _POSITIVE, _JOIN, read_texts, read_annotators),
    *(_LABEL_STUDIO, _ARGILLA, _LEWIDI),
]
ENDINGS: dict[str, list[Reader]] = {
    ".csv": _TABLES,
    ".tsv": _TABLES,
    ".jsonl": _TABLES,
    ".parquet": [*_TABLES, read_predictions],
    ".npz": [_JOIN, read_arrays],
    ".json": [read_annotations, _LABEL_STUDIO, _ARGILLA, _LEWIDI, read_json, read_annotators],
}
"""The readers that a file may be given to by mistake, by its ending."""


@cache
def readers_of(name: str) -> list[Reader]:
    """Every reader that a file of this name may be given to."""
    own = OWN[Path(name).stem]
    return own + [reader for reader in ENDINGS.get(Path(name).suffix, ()) if reader not in own]


def read_everywhere(path: Path) -> int:
    """How many readers accept the file; each must do so or refuse it in one line."""
    return sum(_accepts(read, path) for read in readers_of(path.name))


def read_own(path: Path) -> bool:
    """Whether a reader that the file is meant for accepts it."""
    return sum(_accepts(read, path) for read in OWN[path.stem]) > 0


def _accepts(read: Reader, path: Path) -> bool:
    """Whether a reader accepts the file, with a valid object; if not, it must say so in one line.

    EDO's own warnings tell what was decided; any other is a failure.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", EDOWarning)
        try:
            _check(read(path))
        except EDOError as error:
            said = str(error)
            assert said, read
            assert len(said.splitlines()) == 1, said
            assert len(said) < 3000, said
            return False
    return True


def _check(found: Any) -> None:
    """Use what was read, as the rest of EDO would."""
    if isinstance(found, Annotations):
        assert np.allclose(found.soft_labels.sum(axis=1), 1)
        assert found.hard_labels().max() < len(found.classes)
        again = Annotations.from_table(found.to_table(), classes=found.classes, duplicates="all")
        assert again.items.tolist() == found.items.tolist()
    elif isinstance(found, Predictions):
        assert np.isfinite(found.probabilities).all()
        assert np.allclose(found.uniform.sum(axis=1), 1, atol=1e-3)
