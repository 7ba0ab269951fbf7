"""The items that an ensemble was fitted on, and its answers to them, read from the run's files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from edokit._errors import EDOWarning, InputError, local_path
from edokit._io.tables import READABLE_SUFFIXES, read_table
from edokit._types import Floats, Ints
from edokit.annotations.core import Annotations
from edokit.annotations.long_table import COLUMNS, ROLES
from edokit.datasets.item_groups import item_clusters
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.persistence import FILE as ENSEMBLE_FILE
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.views import answer_for_panel
from edokit.fitdata.inputs import align_inputs
from edokit.panels import Panel
from edokit.predictions.core import Predictions
from edokit.runs.record import RUN_RECORD, RunRecord

_FIT_PREDICTIONS = Path("members") / "predictions" / "fit.npz"
"""Where a run keeps the predictions that its weights were learned from."""


@dataclass(frozen=True, eq=False)
class FitItems:
    """Labels of the items of a fit, and answers to these items.

    Attributes
    ----------
    labels : Annotations
    members : Predictions
        The members' predictions of the same items, in the same order and classes.
    pooled : Pooled
        The pool of each item by weights learned without it, where the fit kept these answers (see
        `held_out_pool`).
    clusters : ndarray of int of shape (N,) or None
        Items with the same number belong together.
    """

    labels: Annotations
    members: Predictions
    pooled: Pooled
    clusters: Ints | None

    def labels_and_answers(self) -> tuple[Annotations, Floats]:
        """The annotations, with all classes of the pool, and the pool [N, C] in their order."""
        annotations = self.labels
        classes = self.pooled.classes
        if set(annotations.classes) < set(classes):
            annotations = annotations.with_classes(classes)
        order = [classes.index(name) for name in annotations.classes]
        return annotations, np.asarray(self.pooled.probabilities[:, order])

    def answers(self, ensemble: EDOEnsemble, panel: Panel | None) -> Floats:
        """The pool [N, C], or what a panel would answer."""
        if panel is None or ensemble.people_ is None:
            return self.pooled.probabilities
        return answer_for_panel(self.pooled, ensemble.people_, panel).probabilities


def ensemble_folder(folder: Path) -> Path:
    """The folder with the record of the fit: the folder ``ensemble`` of a run, else the folder."""
    if (folder / "ensemble" / RUN_RECORD).exists():
        return folder / "ensemble"
    return folder


def is_fit_folder(path: Path) -> bool:
    """Whether a path is the folder of a run, or of a fitted ensemble, with its record."""
    place = ensemble_folder(path)
    return (place / RUN_RECORD).exists() and (place / ENSEMBLE_FILE).exists()


@dataclass(frozen=True, eq=False)
class FitLabels:
    """The labels of a fit, and the file that they were read from.

    Attributes
    ----------
    annotations : Annotations
    path : Path
    options : mapping of str to object
        How the file was read: arguments of `read_annotations`.
    """

    annotations: Annotations
    path: Path
    options: Mapping[str, object]


def read_fit_labels(folder: Path) -> FitLabels:
    """Read the annotations that the ensemble in a folder was fitted on, as its record says."""
    place = ensemble_folder(folder)
    record = _record_with_moved_files(place, folder)
    annotations = record.annotations("annotations", place)
    path = record.path("annotations", place)
    if annotations is None or path is None:
        raise InputError(
            f"{place / RUN_RECORD} names no annotations",
            "give the table of annotations instead",
            code="wrong-folder",
        )
    return FitLabels(annotations, path, record.inputs["annotations"].options)


def fit_columns(folder: Path | None, file: object, given: Mapping[str, str]) -> dict[str, str]:
    """The names of a new file's columns: those that the user gave, and those of the fit's table.

    The fit's name of a column applies if the file has a column of this name, and has none of the
    default name.

    Parameters
    ----------
    folder : Path or None
        A run, or the folder of a fitted ensemble; without the record of a fit, only ``given`` is
        returned.
    file : object
        The path of a table; for anything else, only ``given`` is returned.
    given : mapping of str to str
        Names that the user gave, by role.
    """
    if folder is None or not isinstance(file, str | Path):
        return dict(given)
    place = ensemble_folder(folder)
    if not (place / RUN_RECORD).exists():
        return dict(given)
    path = local_path(file)
    if path.suffix.lower() not in READABLE_SUFFIXES or not path.is_file():
        return dict(given)
    source = RunRecord.load(place).inputs.get("annotations")
    if source is None:
        return dict(given)
    columns = source.options.get("columns")
    if not isinstance(columns, Mapping):
        return dict(given)
    present = read_table(path).column_names
    default_columns = dict(zip(ROLES, COLUMNS, strict=True))
    names = {}
    for role, name in columns.items():
        if name in present and default_columns.get(role) not in present:
            names[str(role)] = str(name)
    return names | dict(given)


def load_fit_items(folder: Path) -> FitItems:
    """Read what the ensemble in a folder was fitted on, as its record says."""
    return read_fit_items(folder, EDOEnsemble.load(ensemble_folder(folder)))


def read_fit_items(folder: Path, ensemble: EDOEnsemble) -> FitItems:
    """Read what an ensemble was fitted on, as its record says.

    Parameters
    ----------
    folder : Path
        A run, or the folder of a fitted ensemble.
    ensemble : EDOEnsemble
        The ensemble in it.

    Raises
    ------
    InputError
        If the folder lacks the record of a fit, or files named in it are gone.
    """
    place = ensemble_folder(folder)
    if not (place / RUN_RECORD).exists():
        raise InputError(
            f"{folder} does not say what its ensemble was fitted on: it has no {RUN_RECORD}",
            "give the folder of `edo run` or `edo fit`, not a bundle",
            code="wrong-folder",
        )
    record = _record_with_moved_files(place, folder)
    labels = record.annotations("annotations", place)
    predictions = record.predictions("predictions", place)
    if labels is None or predictions is None:
        raise InputError(
            f"{place / RUN_RECORD} names no predictions and annotations of a fit",
            "give the folder of `edo run` or `edo fit`",
            code="wrong-folder",
        )
    if ensemble.fitted_.is_fitted_on_pairs or predictions.rows.people:
        raise InputError(
            f"the ensemble in {place} was fitted on answers for annotators",
            "fit it on anonymous answers, as `edo run` does",
            code="pairs-for-items",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)  # the fit has given them
        predictions = predictions.select(ensemble.members_)
        predictions, labels = align_inputs(predictions, labels)
        clusters = item_clusters(labels)
        pooled = held_out_pool(ensemble, predictions, labels)
    return FitItems(labels, predictions, pooled, clusters)


def _record_with_moved_files(place: Path, folder: Path) -> RunRecord:
    """The record of a fit; where a file is gone from its place, it is looked for beside the run."""
    record = RunRecord.load(place)
    home = folder.resolve()
    inputs = dict(record.inputs)
    for role, source in record.inputs.items():
        recorded = Path(source.path)
        candidates = [recorded]
        if role == "predictions":
            candidates.append(home / _FIT_PREDICTIONS)
        candidates.extend((home / recorded.name, home.parent / recorded.name))
        for path in candidates:
            if path.exists():
                inputs[role] = replace(source, path=str(path.absolute()))
                break
    return replace(record, inputs=inputs)


def held_out_pool(ensemble: EDOEnsemble, predictions: Predictions, labels: Annotations) -> Pooled:
    """The pool of each item by weights learned without it, where the fit kept these answers.

    Where it kept none, or only those of a sample of the items, it is pooled by the weights of the
    fit.
    """
    pooled = ensemble.describe(predictions)
    held_out = ensemble.fitted_.held_out
    if held_out is None or held_out.shares.shape != labels.soft_labels.shape:
        return pooled
    # Answers that were kept have no names: other labels mean other items, or another order.
    if not np.allclose(held_out.shares, labels.soft_labels, atol=1e-5):
        return pooled
    return replace(pooled, probabilities=held_out.answers)
