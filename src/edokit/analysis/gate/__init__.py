"""`gate`: are new labels answered as well as those that the ensemble was fitted on?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from edokit._errors import InputError, counted, local_path, option
from edokit._types import Ints
from edokit.analysis.fit_items import FitItems, ensemble_folder, fit_columns, read_fit_items
from edokit.analysis.gate.options import GateOptions
from edokit.analysis.gate.result import Gate, GateRow
from edokit.analysis.gate.statistics import LossSample, compare_losses, with_verdicts
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.scores.slices import FEWEST_ITEMS, SliceItems, find_slices
from edokit.annotations.core import Annotations
from edokit.bundle import Bundle, is_bundle
from edokit.datasets.item_groups import item_clusters
from edokit.ensemble.estimator import EDOEnsemble
from edokit.fitdata.inputs import align_inputs, load_new_labels, load_predictions
from edokit.fitdata.reading import AnnotationsLike, ReadOptions, separate_settings
from edokit.members.texts import Texts
from edokit.metrics import headline_metric
from edokit.metrics.resampling import unit_count
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
        Slices of the items, and what counts as a fall.
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
    fitted = ensemble.fitted_
    labels = load_new_labels(annotations, reading, fitted.classes, fitted.scale)
    clusters = item_clusters(labels)
    _check_enough_items(len(labels.items), clusters, "new labels")
    slices = find_slices(labels, options.by)
    fit_items = read_fit_items(folder, ensemble)
    _check_enough_items(len(fit_items.labels.items), fit_items.clusters, "labels of the fit")
    members = _predictions(labels, predictions, bundle)
    # A bundle holds only the members that carry weight; pooling refuses to do without these.
    answering = [name for name in ensemble.members_ if name in members.members]
    members = members.select(answering).order_classes(labels.classes).align(labels.rows)

    human_labels = HumanLabels(labels)
    fit_labels = fit_items.labels.with_classes(labels.classes)
    fit_human_labels = HumanLabels(fit_labels)
    class_order = [fit_items.pooled.classes.index(name) for name in labels.classes]
    fit_pool = fit_items.pooled.probabilities[:, class_order]
    new_pool = ensemble.describe(members).probabilities
    fit_sample = LossSample(fit_human_labels.label_losses(fit_pool), fit_items.clusters)
    new_sample = LossSample(human_labels.label_losses(new_pool), clusters)

    n_tests = 1 + sum(len(values) for values in slices.values())
    rows = [compare_losses(fit_sample, new_sample, options, n_tests)]
    for column, values in slices.items():
        fit_slices = _fit_slices(fit_labels, column)
        for value, mask in values.items():
            fit_part = fit_sample
            # With few items in the slice of the fit, those of the new one are compared with all.
            if value in fit_slices and fit_sample.take(fit_slices[value]).has_enough:
                fit_part = fit_sample.take(fit_slices[value])
            new_part = new_sample.take(mask)
            rows.append(compare_losses(fit_part, new_part, options, n_tests, column, value))
    total, *slice_rows = with_verdicts(rows, options.level)

    member_rows: list[GateRow] = []
    n_members = len(members.members)
    if n_members > 1:
        fit_members = fit_items.members.order_classes(labels.classes).select(members.members)
        for k, name in enumerate(members.members):
            fit_p = np.asarray(fit_members.probabilities[:, k], dtype=np.float64)
            new_p = np.asarray(members.probabilities[:, k], dtype=np.float64)
            fit_part = LossSample(fit_human_labels.label_losses(fit_p), fit_items.clusters)
            new_part = LossSample(human_labels.label_losses(new_p), clusters)
            member_rows.append(
                compare_losses(fit_part, new_part, options, n_members, "member", name)
            )
    member_rows = with_verdicts(member_rows, options.level)
    member_rows.sort(key=lambda row: -(row.change or 0.0))

    verdict: Literal["pass", "fail"] = "pass"
    if any(row.is_fall for row in (total, *slice_rows)):
        verdict = "fail"
    return Gate(
        gate=verdict,
        metric=headline_metric(labels.scale),
        level=options.level,
        total=total,
        slices=tuple(slice_rows),
        members=tuple(member_rows),
        fit_texts=_count_fit_texts(labels, fit_items),
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


def _check_enough_items(items: int, clusters: Ints | None, source: str) -> None:
    """Refuse labels of too few items, or groups of items, for a verdict."""
    units = unit_count(items, clusters)
    if items < FEWEST_ITEMS:
        raise InputError(
            f"the {source} have {counted(items, 'item')}, which are too few for a verdict",
            f"give {FEWEST_ITEMS} or more; some hundred show a small fall",
            code="too-few-items",
        )
    if units < FEWEST_ITEMS:
        raise InputError(
            f"the {source} have {counted(items, 'item')} in {counted(units, 'group')}, which are"
            " too few for a verdict: the items of a group count as one, and so do near-duplicate"
            " texts",
            f"give labels of {FEWEST_ITEMS} or more groups",
            code="too-few-items",
        )


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


def _fit_slices(fit_labels: Annotations, column: str) -> SliceItems:
    """The slices of the fit's items [N] by a column.

    There are none where the fit's table lacks the column, or has too many values in it.
    """
    try:
        return find_slices(fit_labels, column)[column]
    except InputError:
        return {}


def _count_fit_texts(labels: Annotations, fit_items: FitItems) -> int:
    """How many of the new items have the text of an item of the fit."""
    texts = labels.whole_texts
    fit_texts = fit_items.labels.whole_texts
    if texts is None or fit_texts is None:
        return 0
    return int(np.isin(texts.astype(str), fit_texts.astype(str)).sum())
