"""Everything that a page shows, read from the folder of a run; what is missing becomes a note."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from edokit._errors import EDOError, EDOWarning, InputError, listed, option
from edokit._io.digests import digest_input
from edokit._io.documents import read_json
from edokit.analysis.compare.result import Comparison
from edokit.analysis.diagnose.groups.result import GroupComparison
from edokit.annotations.core import Annotations
from edokit.ensemble.estimator import EDOEnsemble
from edokit.predictions.core import Predictions
from edokit.report.evaluation import EvaluatedItems, evaluate_items
from edokit.report.results import MethodScores, SearchTrials, read_comparison, read_search
from edokit.rows import in_order
from edokit.runs.record import RUN_RECORD, RunRecord

Value = TypeVar("Value")
_PERMUTATIONS = 799
"""The largest number of permutations of the diagnosis; `edo diagnose` makes more if needed."""
GROUPS = "groups.json"
"""Where a run keeps how groups of people differ."""
ENCODER = "encoder.json"
"""Where a run keeps what its sentence encoder gained."""
ROLES = {
    "predictions": "Predictions of the fit",
    "annotations": "Annotations of the fit",
    "test_predictions": "Test predictions",
    "test_annotations": "Test annotations",
}


@dataclass
class ReportData:
    """What is known of a run: the content of its page.

    Attributes
    ----------
    name : str
        Of the folder.
    record : RunRecord or None
    ensemble : EDOEnsemble or None
    evaluation : EvaluatedItems or None
    search : SearchTrials or None
    comparison : MethodScores or None
    diagnosis : dict[str, Any] or None
        `edokit.diagnose` of the annotations, as a dictionary.
    diagnosis_subject : str
        Which annotations the diagnosis is of.
    groups : GroupComparison or None
        How groups of people differ, where it was asked for.
    has_bundle : bool
        Whether members beside the ensemble answer for new texts.
    remarks : list of str
        Further sentences on the result, for the evidence.
    inputs : dict[str, str]
        State of each input by role: ``same``, ``changed``, ``gone`` or ``large`` (over one GiB).
    missing : list[str]
        What is missing and why, one sentence each.
    """

    name: str
    record: RunRecord | None = None
    ensemble: EDOEnsemble | None = None
    evaluation: EvaluatedItems | None = None
    search: SearchTrials | None = None
    comparison: MethodScores | None = None
    diagnosis: dict[str, Any] | None = None
    diagnosis_subject: str = ""
    groups: GroupComparison | None = None
    has_bundle: bool = False
    remarks: list[str] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    @property
    def source(self) -> str:
        """The name of the file of annotations, where it is recorded."""
        if self.record is None or "annotations" not in self.record.inputs:
            return ""
        return Path(self.record.inputs["annotations"].path).name

    def attempt(self, title: str, read: Callable[[], Value]) -> Value | None:
        """The result of ``read``; if it fails, a note instead."""
        try:
            return read()
        except EDOError as error:
            self.missing.append(f"{title} could not be shown: {error}.")
        return None


def collect(
    run: str | Path,
    *,
    predictions: Predictions | None = None,
    annotations: Annotations | None = None,
    fit_items: bool = True,
) -> ReportData:
    """Read everything that a report shows of a run.

    Parameters
    ----------
    run : str or Path
        Folder made by ``edo search``, ``edo compare`` or ``edo demo --out``, or a saved ensemble.
    predictions : Predictions, optional
        Items to show instead of those of the run; for a saved ensemble, the only ones.
    annotations : Annotations, optional
        Annotations of these items.
    fit_items : bool, default True
        Whether the items of the fit may be shown if test items are not available; False if they
        are too many to read at once.

    Returns
    -------
    ReportData
        What was found; ``missing`` says what was not.

    Raises
    ------
    InputError
        If ``run`` is not such a folder, if the ensemble does not fit ``predictions``, or if there
        are ``annotations`` without ``predictions``.

    Examples
    --------
    >>> from edokit import Annotations, EDOEnsemble, Predictions
    >>> annotations = Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> p = [[[0.6, 0.4], [0.2, 0.8], [0.9, 0.1], [0.1, 0.9]]]
    >>> predictions = Predictions.from_arrays(p, items=annotations.items, layout="KNC")
    >>> EDOEnsemble().fit(predictions, annotations).save("ensemble")
    >>> data = collect("ensemble", predictions=predictions, annotations=annotations)
    >>> round(data.evaluation.metrics["f1"], 2)
    1.0
    >>> data.missing
    []
    """
    top = Path(run)
    folder = top
    if (top / "comparison").is_dir():  # the comparison of `edo run`
        folder = top / "comparison"
    data = _read_folder(folder)
    data.name = top.resolve().name
    data.has_bundle = (top / "bundle").is_dir()
    if (top / GROUPS).exists():
        data.groups = data.attempt("Groups of people", lambda: read_groups(top / GROUPS))
    if (top / ENCODER).exists():
        sentence = data.attempt("The sentence encoder", lambda: _encoder_sentence(top / ENCODER))
        if sentence:
            data.remarks.append(sentence)
    if annotations is not None and predictions is None:
        raise InputError(
            "there are annotations, but no predictions of the same items",
            f"pass {option('predictions')} as well",
            code="missing-option",
        )
    items = _PageItems(data, folder, predictions, annotations, fit_items=fit_items)
    return _evaluate(data, items)


def collect_comparison(
    comparison: Comparison,
    record: RunRecord,
    predictions: Predictions,
    annotations: Annotations,
    *,
    name: str,
) -> ReportData:
    """Everything that a report shows of a comparison in memory, as `collect` reads it from files.

    Parameters
    ----------
    comparison : Comparison
        A cross-validated comparison, with EDO among its methods.
    record : RunRecord
        The record of its inputs, which is saved with the comparison.
    predictions : Predictions
        The members' predictions of these items.
    annotations : Annotations
        The annotations of these items.
    name : str
        Of the folder.

    Returns
    -------
    ReportData
    """
    data = ReportData(name, record, comparison=MethodScores.from_comparison(comparison))
    ensemble = comparison.fitted["edo"]
    assert isinstance(ensemble, EDOEnsemble)
    data.ensemble = ensemble
    for role, source in record.inputs.items():
        # Files without a digest are too large for a page.
        data.inputs[role] = "same" if source.sha256 is not None else "large"
    items = _PageItems(data, Path())
    items.in_memory["predictions"] = predictions
    items.in_memory["annotations"] = annotations
    return _evaluate(data, items)


def _evaluate(data: ReportData, items: _PageItems) -> ReportData:
    """Evaluate the ensemble on the items, and diagnose their annotations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)  # the run warned already
        if data.ensemble is not None:
            data.evaluation = items.evaluation(data.ensemble)
        evaluation = data.evaluation
        if evaluation is not None and evaluation.annotations is not None:
            diagnosis = partial(items.diagnosis, evaluation, evaluation.annotations)
            data.diagnosis = data.attempt("The diagnosis", diagnosis)
    data.missing = list(dict.fromkeys(data.missing))
    return data


def _read_folder(folder: Path) -> ReportData:
    """The record, the ensemble, the search and the comparison of a run."""
    ensemble_folder = _ensemble_folder(folder)
    data = ReportData(folder.name)
    if (folder / RUN_RECORD).exists():
        data.record = data.attempt("The record of the run", lambda: RunRecord.load(folder))
    if (ensemble_folder / "ensemble.json").exists():
        data.ensemble = data.attempt("The ensemble", lambda: EDOEnsemble.load(ensemble_folder))
    else:
        data.missing.append("The run lacks an ensemble (no ensemble/ensemble.json in its folder).")
    if (folder / "search" / "trials.parquet").exists():
        data.search = data.attempt("The search", lambda: read_search(folder / "search"))
    # A demo keeps its comparison with its other results.
    for path in (folder / "compare" / "methods.json", folder / "results.json"):
        if path.exists() and data.comparison is None:
            data.comparison = data.attempt("The comparison", partial(read_comparison, path))
    if data.record is not None:
        data.inputs = {role: _state(data.record, role, folder) for role in data.record.inputs}
    return data


def read_groups(path: Path) -> GroupComparison:
    """How groups of people differ, as a run wrote it."""
    content = read_json(path)
    try:
        return GroupComparison.from_dict(content)
    except (LookupError, TypeError) as error:
        raise InputError(
            f"{path} is not a comparison of groups",
            "run `edo run --by` again",
            code="wrong-content",
        ) from error


def _encoder_sentence(path: Path) -> str:
    """What the sentence encoder gained, as a run wrote it."""
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("sentence"), str):
        raise InputError(
            f"{path} does not say what an encoder gained",
            "run `edo run` again",
            code="wrong-content",
        )
    return str(content["sentence"])


def _ensemble_folder(folder: Path) -> Path:
    """The folder with ``ensemble.json`` of a run or of a saved ensemble."""
    if (folder / "ensemble.json").exists():
        return folder
    if not any((folder / name).exists() for name in (RUN_RECORD, "ensemble", "search", "compare")):
        raise InputError(
            f"{folder} is not the folder of a run: it has neither {RUN_RECORD} nor an ensemble",
            "name a folder made by `edo run`, `edo search`, `edo compare`, `edo demo --out` or"
            " `edo fit`",
            code="wrong-folder",
        )
    return folder / "ensemble"


def _by_item(annotations: Annotations) -> Annotations:
    """Annotations of pairs as annotations of items, without what is known of each pair."""
    rows = annotations.rows
    return replace(
        annotations,
        rows=rows.by_item(),
        item_codes=rows.item_codes[annotations.item_codes],
        item_columns={},
        texts=None,
        contexts=None,
        splits=None,
        item_groups=None,
    )


def _state(record: RunRecord, role: str, folder: Path) -> str:
    """Whether an input is still as the run read it."""
    path = record.path(role, folder)
    if path is None:
        return "gone"
    try:
        digest = digest_input(path)
    except EDOError:
        return "gone"
    if digest is None:
        return "large"
    if digest == record.inputs[role].sha256:
        return "same"
    return "changed"


@dataclass
class _PageItems:
    """Where the items of a page come from: the caller, or the inputs of the run."""

    data: ReportData
    folder: Path
    predictions: Predictions | None = None
    annotations: Annotations | None = None
    in_memory: dict[str, Predictions | Annotations] = field(default_factory=dict)
    """Inputs of the run by role, which need not be read from their files."""
    fit_items: bool = True

    def evaluation(self, ensemble: EDOEnsemble) -> EvaluatedItems | None:
        """The caller's items, else the test items of the run, else those it was fitted on."""
        data = self.data
        if self.predictions is not None:
            if self.annotations is None:
                data.missing.append("The items lack annotations; pass annotations, too.")
            # The caller chose these: what is wrong with them is an error.
            return evaluate_items(
                ensemble,
                self.predictions,
                self.annotations,
                name="given items",
                held_out=self._held_out(self.predictions),
                **self._resampling(),
            )
        for prefix, name in (("test_", "test items"), ("", "fit items")):
            if not prefix and not self.fit_items:
                data.missing.append("The items of the fit were read shard by shard.")
                continue
            items = self._read(prefix)
            if items is None:
                continue
            evaluate = partial(
                evaluate_items,
                ensemble,
                *items,
                name=name,
                held_out=bool(prefix),
                **self._resampling(),
            )
            evaluation = data.attempt(f"The {name}", evaluate)
            if evaluation is not None:
                return evaluation
        reason = ""
        if data.record is None:
            reason = ", since the folder does not record where they are"
        data.missing.append(
            f"The page does not show items{reason}; pass predictions and annotations to show them."
        )
        return None

    def _resampling(self) -> dict[str, Any]:
        """The seed of the run, and the samples and level of the comparison that the page shows."""
        data = self.data
        options: dict[str, Any] = {"random_state": 0}
        if data.record is not None:
            options["random_state"] = data.record.seed
        if data.comparison is not None and data.comparison.samples:
            options["samples"] = data.comparison.samples
            options["level"] = data.comparison.level
        return options

    def diagnosis(self, evaluation: EvaluatedItems, labels: Annotations) -> dict[str, Any]:
        """Diagnose all annotations in the file of the test items; without one, the page's items.

        A run without test items has not looked at other splits, so they are left out.
        """
        from edokit.analysis.diagnose import diagnose

        data = self.data
        pooled = evaluation.pooled
        data.diagnosis_subject = f"the {len(pooled.items):,} {evaluation.name} of this page"
        if data.record is not None and evaluation.name == "test items":
            role = "test_annotations"
            file_labels = data.record.annotations(role, self.folder, all_splits=True)
            assert file_labels is not None
            labels = file_labels
            name = Path(data.record.inputs[role].path).name
            splits = ""
            if len(labels.split_names) > 1:
                splits = f" ({listed(labels.split_names)})"
            data.diagnosis_subject = f"all {len(labels.items):,} items of {name}{splits}"
        if pooled.rows.people:
            labels = _by_item(labels)
        return diagnose(labels, permutations=_PERMUTATIONS).to_dict()

    def _held_out(self, predictions: Predictions) -> bool | None:
        """Whether the ensemble was fitted without these items; None if its record does not say."""
        if self.data.record is None or self.data.inputs.get("predictions") != "same":
            return None
        fitted = self.data.record.predictions("predictions", self.folder)
        assert fitted is not None
        same_rows = fitted.rows.positions(predictions.rows)
        if (same_rows < 0).all():
            return True
        # The same ids may name other items.
        if in_order(same_rows) and np.array_equal(fitted.probabilities, predictions.probabilities):
            return False
        return None

    def _read(self, prefix: str) -> tuple[Predictions, Annotations] | None:
        """Predictions and annotations of the test or of the fit, as the run read them."""
        record = self.data.record
        predictions_role = f"{prefix}predictions"
        annotations_role = f"{prefix}annotations"
        if record is None or not {predictions_role, annotations_role} <= record.inputs.keys():
            return None
        predictions = self.data.attempt(
            ROLES[predictions_role], partial(self._read_predictions, record, predictions_role)
        )
        annotations = self.data.attempt(
            ROLES[annotations_role], partial(self._read_annotations, record, annotations_role)
        )
        if predictions is None or annotations is None:
            return None
        return predictions, annotations

    def _read_predictions(self, record: RunRecord, role: str) -> Predictions | None:
        """The predictions of this role, as the run read them."""
        self._check_input(record, role)
        predictions = self.in_memory.get(role)
        if isinstance(predictions, Predictions):
            return predictions
        return record.predictions(role, self.folder)

    def _read_annotations(self, record: RunRecord, role: str) -> Annotations | None:
        """The annotations of this role, as the run read them."""
        self._check_input(record, role)
        annotations = self.in_memory.get(role)
        if isinstance(annotations, Annotations):
            return annotations
        return record.annotations(role, self.folder)

    def _check_input(self, record: RunRecord, role: str) -> None:
        """Refuse files that are too large, and changed files outside the folder of the run."""
        # A folder may come from somebody else, and its record may name a file of one's own.
        if self.data.inputs[role] == "changed" and not record.is_inside(role, self.folder):
            raise InputError(
                f"{record.inputs[role].path} is not the file that the run read, and not in its"
                " folder",
                "pass predictions and annotations, or run it again",
                code="changed-input",
            )
        if self.data.inputs[role] == "large":
            raise InputError(
                f"{record.inputs[role].path} is over one GiB, too large for a page",
                "pass a part of them as predictions and annotations",
                code="too-large-file",
            )
