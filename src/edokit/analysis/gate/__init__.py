"""`gate`: are new labels answered as well as those that the ensemble was fitted on?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from edokit._errors import InputError, counted, local_path, option
from edokit._types import Bools, Floats, Ints
from edokit.analysis.fit_items import FitItems, ensemble_folder, fit_columns, read_fit_items
from edokit.analysis.gate import text
from edokit.analysis.gate.options import GateOptions
from edokit.analysis.gate.result import Gate, GateRow
from edokit.analysis.gate.statistics import loss_change
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.scores.slices import FEWEST_ITEMS, find_slices
from edokit.analysis.sequential import holm
from edokit.annotations.core import Annotations
from edokit.bundle import Bundle, is_bundle
from edokit.datasets.item_groups import item_clusters
from edokit.ensemble.estimator import EDOEnsemble
from edokit.fitdata.inputs import align_inputs, load_new_labels, load_predictions
from edokit.fitdata.reading import AnnotationsLike, ReadOptions, separate_settings
from edokit.members.texts import Texts
from edokit.metrics import headline_metric
from edokit.predictions.core import Predictions


def gate(
    run: str | Path,
    annotations: AnnotationsLike,
    options: GateOptions | None = None,
    *,
    predictions: Predictions | str | Path | None = None,
    split: str | Sequence[str] | None = None,
    **settings: object,
) -> Gate:
    """Compare the answers to new labels with the held-out answers of the fit: pass or fail.

    Parameters
    ----------
    run : str or Path
        A folder of ``edo run``, or of ``edo fit``: its record says what it was fitted on.
    annotations : Annotations, table, str or Path
        New labels, with texts if the run's members are to answer. A table may have the column names
        of the run's table; they need not be given again.
    options : GateOptions, default=None
        Parts of the items, and what counts as a fall.
    predictions : Predictions, str or Path, default=None
        The members' predictions of the new items, instead of their texts: of a jury of models that
        answered elsewhere.
    split : str or sequence of str, default=None
        Only these splits of the annotations.
    **settings
        Single fields of `GateOptions`, such as ``by="lang"``, and further arguments of
        `read_annotations` for annotations that are a file.

    Returns
    -------
    Gate

    Raises
    ------
    InputError
        If the files of the fit are gone, items are too few, or classes differ.

    Examples
    --------
    >>> result = edokit.gate("run", "week.csv", by="lang")  # doctest: +SKIP
    >>> result.gate  # doctest: +SKIP
    'pass'
    """
    changes, arguments = separate_settings(settings, GateOptions)
    options = replace(options or GateOptions(), **changes)
    folder = local_path(run)
    bundle = None
    if predictions is None:
        bundle = _bundle(folder)
        ensemble = bundle.ensemble
    else:
        ensemble = EDOEnsemble.load(ensemble_folder(folder))
    reading = ReadOptions.from_arguments(arguments, split=split)
    columns = fit_columns(folder, annotations, reading.columns or {})
    reading = replace(reading, columns=columns or None)
    labels = _new_labels(annotations, ensemble, reading)
    slices = find_slices(labels, options.by)
    fit_items = read_fit_items(folder, ensemble)
    members = _predictions(labels, predictions, bundle)
    # A bundle holds only the members that carry weight; pooling refuses to do without these.
    answering = [name for name in ensemble.members_ if name in members.members]
    members = members.select(answering).order_classes(labels.classes).align(labels.rows)
    fit_labels = fit_items.labels.with_classes(labels.classes)
    order = [fit_items.pooled.classes.index(name) for name in labels.classes]
    reference = _Losses(HumanLabels(fit_labels), fit_items.clusters)
    current = _Losses(HumanLabels(labels), item_clusters(labels))
    reference.add(None, fit_items.pooled.probabilities[:, order])
    current.add(None, ensemble.describe(members).probabilities)
    if len(members.members) > 1:
        fit_members = fit_items.members.order_classes(labels.classes)
        for k, name in enumerate(members.members):
            current.add(name, np.asarray(members.probabilities[:, k], dtype=np.float64))
            position = fit_members.members.index(name)
            fit_answers = np.asarray(fit_members.probabilities[:, position], dtype=np.float64)
            reference.add(name, fit_answers)
    tests = 1 + sum(len(values) for values in slices.values())
    comparison = _LossComparison(reference, current, fit_labels, options, tests)
    total = comparison.row(None)
    parts: list[GateRow] = []
    for column, values in slices.items():
        for value, mask in values.items():
            parts.append(comparison.row(None, mask, column, value))
    total, *parts = _corrected([total, *parts], options.level)
    rows = [comparison.row(name) for name in current.by_member if name is not None]
    rows = _corrected(rows, options.level)
    verdict: Literal["pass", "fail"] = "pass"
    if any(row.is_fall for row in (total, *parts)):
        verdict = "fail"
    return Gate(
        gate=verdict,
        metric=headline_metric(labels.scale),
        level=options.level,
        total=total,
        slices=tuple(parts),
        members=tuple(sorted(rows, key=lambda row: -(row.change or 0.0))),
        notes=tuple(_notes(labels, fit_items)),
    )


def _bundle(folder: Path) -> Bundle:
    """The bundle of a run, whose members answer for the new texts."""
    if not is_bundle(folder):
        raise InputError(
            f"{folder} does not hold members to answer for the new items",
            f"give the folder of `edo run`, or their answers: {option('predictions', 'FILE')}",
            code="missing-members",
        )
    return Bundle.load(folder)


def _new_labels(
    annotations: AnnotationsLike, ensemble: EDOEnsemble, reading: ReadOptions
) -> Annotations:
    """The new labels, which must be enough for a verdict."""
    fitted = ensemble.fitted_
    labels = load_new_labels(annotations, reading, fitted.classes, fitted.scale)
    if len(labels.items) < FEWEST_ITEMS:
        raise InputError(
            f"{counted(len(labels.items), 'item')} are too few for a verdict",
            f"give {FEWEST_ITEMS} or more; some hundred show a small fall",
            code="too-few-items",
        )
    return labels


def _predictions(
    labels: Annotations, predictions: Predictions | str | Path | None, bundle: Bundle | None
) -> Predictions:
    """The members' predictions of the new items."""
    if predictions is not None:
        loaded = load_predictions(predictions, ReadOptions())
        aligned, _ = align_inputs(loaded, labels)
        return aligned
    assert bundle is not None
    if labels.texts is None:
        raise InputError(
            "the annotations lack texts for the members to answer",
            f"name their column, {option('columns', {'text': 'NAME'})}, or give the answers:"
            f" {option('predictions', 'FILE')}",
            code="missing-texts",
        )
    texts = Texts.from_source(labels).checked()
    texts.check_lengths(bundle.max_length)
    return bundle.members.predict(texts)


@dataclass(frozen=True, eq=False)
class _Losses:
    """Losses of items [N] by member; None is the pool."""

    labels: HumanLabels
    clusters: Ints | None
    by_member: dict[str | None, Floats] = field(default_factory=dict)

    def add(self, name: str | None, p: Floats) -> None:
        """Add the losses of answers [N, C]."""
        self.by_member[name] = self.labels.label_losses(p)


@dataclass(frozen=True, eq=False)
class _LossComparison:
    """New items beside those of the fit."""

    reference: _Losses
    current: _Losses
    fit_labels: Annotations
    options: GateOptions
    tests: int
    """How many comparisons are made of the pool."""

    def row(
        self,
        member: str | None,
        mask: Bools | None = None,
        column: str | None = None,
        value: str | None = None,
    ) -> GateRow:
        """The comparison of a member, or of the pool on the new items [n] of a mask.

        Items of a slice are compared with those of the same slice of the fit, where it has enough.
        """
        before = self.reference.by_member[member]
        before_clusters = self.reference.clusters
        after = self.current.by_member[member]
        after_clusters = self.current.clusters
        if mask is not None:
            after_clusters = None if after_clusters is None else after_clusters[mask]
            after = after[mask]
            slice_of_fit = self._same_slice(str(column), value)
            if slice_of_fit is not None:
                before_clusters = None if before_clusters is None else before_clusters[slice_of_fit]
                before = before[slice_of_fit]
        if member is not None:
            column = "member"
            value = member
        units = len(after)
        if after_clusters is not None:
            units = len(np.unique(after_clusters))
        row = GateRow(
            items=len(after),
            fit_items=len(before),
            verdict="too few",
            fit_loss=float(before.mean()),
            loss=float(after.mean()),
            column=column,
            value=value,
        )
        if units < FEWEST_ITEMS:
            return row
        tests = self.tests
        if member is not None:
            tests = len(self.current.by_member) - 1
        change_estimate = loss_change(
            before,
            after,
            before_clusters,
            after_clusters,
            level=self.options.level,
            tolerance=self.options.tolerance,
            tests=tests,
        )
        return replace(
            row,
            verdict="pass",
            change=change_estimate.change,
            low=change_estimate.low,
            high=change_estimate.high,
            p=change_estimate.p,
            detectable=change_estimate.detectable,
        )

    def _same_slice(self, column: str, value: str | None) -> Bools | None:
        """The items of the fit [N] with this value, if they are enough."""
        try:
            slice_of_fit = find_slices(self.fit_labels, column)[column].get(value)
        except InputError:  # it has no such column
            return None
        if slice_of_fit is None or slice_of_fit.sum() < FEWEST_ITEMS:
            return None
        return slice_of_fit


def _corrected(rows: Sequence[GateRow], level: float) -> list[GateRow]:
    """The verdicts with p-values corrected for all these comparisons."""
    tested = [row for row in rows if row.p is not None]
    p_values = holm(np.array([row.p for row in tested], dtype=np.float64))
    corrected = iter(p_values.tolist())
    decided: list[GateRow] = []
    for row in rows:
        if row.p is None:
            decided.append(row)
            continue
        p = next(corrected)
        verdict: Literal["pass", "fail"] = "pass"
        if p <= (1 - level) / 2:
            verdict = "fail"
        decided.append(replace(row, p=p, verdict=verdict))
    return decided


def _notes(labels: Annotations, fit_items: FitItems) -> list[str]:
    """A note on new items that are old ones."""
    texts = labels.whole_texts
    fit_texts = fit_items.labels.whole_texts
    if texts is None or fit_texts is None:
        return []
    n_shared = len({*texts} & {*fit_texts})
    if n_shared == 0:
        return []
    repeated = int(np.isin(texts.astype(str), fit_texts.astype(str)).sum())
    return [text.known_note(repeated, len(texts))]
