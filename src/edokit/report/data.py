"""Everything a page shows, gathered from a run's folder; what is not there is noted, not fatal."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from edokit._errors import EDOError, EDOWarning, InputError
from edokit._io import read_json
from edokit._outputs import RUN_RECORD as RUN_FILE
from edokit.annotations import Annotations
from edokit.ensemble import EDOEnsemble, load_ensemble
from edokit.ensemble.review import review
from edokit.predictions import Predictions
from edokit.report.evaluation import Evaluation, evaluate_items
from edokit.report.trials import Search, read_search
from edokit.runs import RunRecord, digest, is_there

Found = TypeVar("Found")
ROLES = {
    "predictions": "Predictions to learn from",
    "annotations": "Annotations to learn from",
    "test_predictions": "Predictions to judge by",
    "test_annotations": "Annotations to judge by",
}
QUEUE = 10
"""Items of the review queue that a page shows."""
_GIVE = "give --predictions and --annotations to show some"


@dataclass
class ReportData:
    """What is known of a run."""

    name: str
    """Of the folder."""
    record: RunRecord | None = None
    ensemble: EDOEnsemble | None = None
    about: dict[str, Any] = field(default_factory=dict)
    """``ensemble.json`` as it stands."""
    evaluation: Evaluation | None = None
    search: Search | None = None
    comparison: dict[str, Any] | None = None
    """``compare/methods.json``."""
    diagnosis: dict[str, Any] | None = None
    """What kind of disagreement there is, as `edokit.diagnose` tells it."""
    review: list[dict[str, Any]] = field(default_factory=list)
    """The items most in need of people, first the most urgent."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Of each input by role: ``same``, ``changed``, ``gone`` or ``large`` (over one GiB)."""
    missing: list[str] = field(default_factory=list)
    """What is not there, and how it would be, one sentence each."""

    def attempt(self, what: str, read: Callable[[], Found]) -> Found | None:
        """What ``read`` gives; where it can't, a note instead."""
        try:
            return read()
        except EDOError as error:
            self.missing.append(f"{what} could not be shown: {error}.")
        return None


def collect(
    run: str | Path,
    *,
    predictions: Predictions | None = None,
    annotations: Annotations | None = None,
    fit_items: bool = True,
) -> ReportData:
    """Gather a run's folder, or a saved ensemble with the predictions and annotations given.

    ``fit_items=False``: the items that it learned from are not read, since they are too many.
    """
    folder = Path(run)
    place = _ensemble_folder(folder)
    found = ReportData(folder.resolve().name)
    if (folder / RUN_FILE).exists():
        found.record = found.attempt("How it was run", lambda: RunRecord.load(folder))
    if (place / "ensemble.json").exists():
        found.ensemble = found.attempt("The ensemble", lambda: load_ensemble(place))
        found.about = read_json(place / "ensemble.json") if found.ensemble else {}
    else:
        found.missing.append("The run has no ensemble (no ensemble/ensemble.json in its folder).")
    if (folder / "search" / "trials.parquet").exists():
        found.search = found.attempt("The search", lambda: read_search(folder / "search"))
    # A demo keeps its comparison with its other results.
    for path in (folder / "compare" / "methods.json", folder / "results.json"):
        if path.exists() and found.comparison is None:
            found.comparison = found.attempt("The comparison", partial(_methods, path))
    if found.record is not None:
        found.inputs = {role: _state(found.record, role, folder) for role in found.record.inputs}
    if found.ensemble is not None:
        found.evaluation = _items(
            found, found.ensemble, folder, predictions, annotations, fit_items
        )
    if found.evaluation is not None:
        found.review = [one.to_json() for one in review(found.evaluation.pooled, QUEUE)]
    if found.evaluation is not None and found.evaluation.people is not None:
        people = found.evaluation.people
        found.diagnosis = found.attempt("The diagnosis", lambda: _diagnosed(people))
    return found


def _ensemble_folder(folder: Path) -> Path:
    if not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise InputError(
            f"a report is made of a run's folder, but {folder} is {what}",
            "name a folder made by `edo search`, `edo compare`, `edo demo --out` or `edo fit`",
        )
    if (folder / "ensemble.json").exists():
        return folder
    known = (RUN_FILE, "ensemble", "search", "compare")
    if not any((folder / name).exists() for name in known):
        raise InputError(
            f"a run's folder holds {RUN_FILE} or an ensemble, but {folder} holds neither",
            "name a folder made by `edo search`, `edo compare`, `edo demo --out` or `edo fit`",
        )
    return folder / "ensemble"


def _methods(path: Path) -> dict[str, Any]:
    content = read_json(path)
    rows = content.get("methods") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and "name" in row for row in rows
    ):
        raise InputError(f"{path} must list methods with names, but does not", "compare again")
    level = content.get("level")
    if level is not None and not (isinstance(level, float) and 0 < level < 1):
        raise InputError(f"{path} must give a level between 0 and 1, but does not", "compare again")
    for row in rows:
        for part in ("intervals", "against_reference"):
            if not isinstance(row.get(part) or {}, dict):
                raise InputError(f"{path} must give {part} by name, but does not", "compare again")
    return dict(content)


def _diagnosed(people: Annotations) -> dict[str, Any]:
    from edokit.diagnosis import diagnose

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        return diagnose(people).to_dict()


def _state(record: RunRecord, role: str, folder: Path) -> str:
    """What became of an input since the run read it."""
    path = record.path(role, folder)
    if path is None or not is_there(path):
        return "gone"
    try:
        found = digest(path)
    except EDOError:
        return "gone"
    if found is None:
        return "large"
    return "same" if found == record.inputs[role].sha256 else "changed"


def _items(
    found: ReportData,
    ensemble: EDOEnsemble,
    folder: Path,
    predictions: Predictions | None,
    annotations: Annotations | None,
    fit_items: bool,
) -> Evaluation | None:
    """The items that are given, else the run's test items, else those it learned from."""
    how = _resampling(found)

    def evaluation(
        answers: Predictions, people: Annotations | None, what: str, held_out: bool | None
    ) -> Evaluation:
        return evaluate_items(ensemble, answers, people, what=what, held_out=held_out, **how)

    if predictions is not None:
        if annotations is None:
            found.missing.append(
                "What people said of the items is not known; give --annotations, too."
            )
        # A person named these: what is wrong with them is an error.
        return evaluation(predictions, annotations, "given items", None)
    if annotations is not None:
        raise InputError(
            "annotations are shown beside predictions, but got annotations alone",
            "give --predictions, too",
        )
    if found.record is None:
        found.missing.append(
            f"The page has no items, since the folder does not tell where they are; {_GIVE}."
        )
        return None
    for prefix, what, held_out in (("test_", "test items", True), ("", "fit items", False)):
        if not prefix and not fit_items:
            found.missing.append("The items it learned from were read shard by shard.")
            continue
        pair = _read_pair(found, found.record, folder, prefix)
        if pair is None:
            continue
        shown = found.attempt(f"The {what}", partial(evaluation, *pair, what, held_out))
        if shown is not None:
            return shown
    found.missing.append(f"The page has no items; {_GIVE}.")
    return None


def _resampling(found: ReportData) -> dict[str, Any]:
    """How intervals are found: as in the comparison that the page shows, if there is one."""
    told = found.comparison or {}
    samples, level = told.get("samples"), told.get("level")
    how: dict[str, Any] = {"seed": found.record.seed if found.record is not None else 0}
    if isinstance(samples, int) and samples > 0 and isinstance(level, float) and 0 < level < 1:
        how |= {"samples": samples, "level": level}
    return how


def _read_pair(
    found: ReportData, record: RunRecord, folder: Path, prefix: str
) -> tuple[Predictions, Annotations] | None:
    """Predictions and annotations of a role, as the run read them."""
    roles = [prefix + "predictions", prefix + "annotations"]
    if not all(role in record.inputs for role in roles):
        return None
    for role in roles:
        state, where = found.inputs[role], record.inputs[role].path
        if state == "gone":
            found.missing.append(f"{ROLES[role]} are no longer at {where}.")
        elif state == "large":
            found.missing.append(
                f"{ROLES[role]} ({where}) are over one GiB, too large for a page; give a part of"
                " them with --predictions and --annotations."
            )
    if any(found.inputs[role] in ("gone", "large") for role in roles):
        return None
    with warnings.catch_warnings():
        # The run told of these already.
        warnings.simplefilter("ignore", EDOWarning)
        answers = found.attempt(ROLES[roles[0]], lambda: record.predictions(roles[0], folder))
        people = found.attempt(ROLES[roles[1]], lambda: record.annotations(roles[1], folder))
    return None if answers is None or people is None else (answers, people)
