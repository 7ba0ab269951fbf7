"""The one way in: predictions and labels in any form that users have, matched by item.

`load_inputs` is for verbs that learn weights, also from shards. `match_inputs`, `load_annotations`,
`load_new_labels` and `load_predictions` are for verbs that need all data in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np

from edokit._errors import InputError, are, counted, examples, one_of, option
from edokit._types import Floats
from edokit.annotations.core import Annotations
from edokit.fitdata.arrays import (
    as_annotations,
    as_predictions,
    check_lengths,
    class_labels,
    with_scale,
)
from edokit.fitdata.data import FitData
from edokit.fitdata.reading import (
    AnnotationsLike,
    ClassLabels,
    InputFiles,
    LabelsLike,
    PredictionsLike,
    ReadOptions,
)
from edokit.item_array import Order
from edokit.predictions.core import ANONYMOUS, Predictions
from edokit.predictions.shards import Shards
from edokit.rows import Rows
from edokit.runs.inputs import Input
from edokit.scales import NOMINAL, DeclaredScale, Scale, ScaleLike, check_same_scale


@dataclass(frozen=True, eq=False)
class MatchedInputs:
    """Predictions and annotations of the same items, in one order.

    Attributes
    ----------
    predictions : Predictions
        Classes in the order of the annotations.
    annotations : Annotations
        Items in the order of the predictions.
    class_labels : tuple or None
        Class labels [C] in the type that the user gave; None where they are the names.
    inputs : mapping of str to Input
        The files that were read, by role.
    """

    predictions: Predictions
    annotations: Annotations
    class_labels: ClassLabels | None
    inputs: Mapping[str, Input]


@dataclass(frozen=True, eq=False)
class LoadedAnnotations:
    """Annotations, and the files that they were read from, by role."""

    annotations: Annotations
    inputs: Mapping[str, Input]


def load_inputs(
    predictions: PredictionsLike, annotations: LabelsLike, reading: ReadOptions
) -> FitData:
    """Return the fit data of predictions and labels, matched by item.

    Paths are read; shards are opened, but not read into memory; `FitData` are returned unchanged.
    The caller closes data that were opened, as `open_inputs` does.
    """
    if isinstance(predictions, FitData):
        if reading.scale is not None:
            declared = DeclaredScale(reading.scale).resolve(predictions.classes)
            check_same_scale(predictions.scale, "fit data", declared, "declaration")
        return predictions
    if reading.shards is not None or isinstance(predictions, Shards):
        return _open_shards(predictions, annotations, reading)
    matched = match_inputs(predictions, annotations, reading)
    data = FitData.from_predictions(
        matched.predictions, matched.annotations, ties=reading.ties, random_state=reading.seed
    )
    data.class_labels = matched.class_labels
    data.inputs = matched.inputs
    if isinstance(annotations, Annotations | str | Path):  # arrays don't name annotators
        data.annotations = matched.annotations
    return data


@contextmanager
def open_inputs(
    predictions: PredictionsLike, annotations: LabelsLike, reading: ReadOptions
) -> Iterator[FitData]:
    """`load_inputs` as a context: data that it opens are closed at the end, given `FitData` not."""
    data = load_inputs(predictions, annotations, reading)
    try:
        yield data
    finally:
        if data is not predictions:
            data.close()


def match_inputs(
    predictions: PredictionsLike,
    annotations: LabelsLike,
    reading: ReadOptions,
    *,
    is_test: bool = False,
) -> MatchedInputs:
    """Return predictions and annotations in memory, read if they are paths, and matched by item.

    ``is_test`` names them as the test data in messages and among the files.
    """
    files = InputFiles(reading)
    prefix = ""
    if is_test:
        prefix = "test_"
    labels = files.annotations(f"{prefix}annotations", annotations)
    members = files.predictions(f"{prefix}predictions", predictions)
    try:
        matched_predictions, matched_annotations = align_inputs(
            members, labels, reading.scale, reading.order
        )
    except InputError as error:
        if not is_test:
            raise
        hint = error._hint
        if not reading.split and isinstance(labels, Annotations):
            hint = f"choose one split of the annotations: {option('test_split', 'test')}"
        raise InputError(f"of the test data, {error._message}", hint, code=error.code) from None
    typed_labels = None
    if not isinstance(labels, Annotations):
        typed_labels = class_labels(labels, matched_annotations)
    return MatchedInputs(matched_predictions, matched_annotations, typed_labels, files.inputs)


def load_annotations(
    annotations: AnnotationsLike, reading: ReadOptions, role: str = "annotations"
) -> LoadedAnnotations:
    """Return annotations, read if they are a path, and converted if they are a table."""
    files = InputFiles(reading)
    if isinstance(annotations, str | Path | Annotations):
        loaded = files.annotations(role, annotations)
    else:
        loaded = files.annotations(role, Annotations.from_table(annotations))
    assert isinstance(loaded, Annotations)
    if reading.scale is not None:
        loaded = with_scale(loaded, DeclaredScale(reading.scale))
    return LoadedAnnotations(loaded, files.inputs)


def load_new_labels(
    annotations: AnnotationsLike,
    reading: ReadOptions,
    classes: Sequence[str],
    scale: Scale,
    role: str = "annotations",
) -> Annotations:
    """Return annotations of new items with the classes and the scale of an ensemble.

    A file or a table is read with the ensemble's classes and scale, unless ``reading`` has others.
    """
    if not isinstance(annotations, Annotations) and reading.scale is None:
        if scale != NOMINAL:
            reading = replace(reading, scale=scale.to_text(classes))
        elif isinstance(annotations, str | Path) and reading.classes is None:
            reading = replace(reading, classes=tuple(classes))
    labels = load_annotations(annotations, reading, role).annotations
    check_same_scale(labels.scale, role, scale, "ensemble")
    return labels.with_classes(classes)


def load_predictions(
    predictions: PredictionsLike, reading: ReadOptions, labels: LabelsLike = None
) -> Predictions:
    """Return predictions in memory, read if they are a path.

    An array for which no scale is declared gets that of ``labels`` if these are annotations.
    """
    loaded = InputFiles(reading).predictions("predictions", predictions)
    members = predictions_for(labels, loaded, reading.scale, reading.order)
    if isinstance(labels, Annotations):
        members = with_declared_order(members, labels.rows, reading.order)
    return members


def _open_shards(
    predictions: PredictionsLike, annotations: LabelsLike, reading: ReadOptions
) -> FitData:
    """Return fit data of shards, which are read in passes."""
    from edokit.fitdata.sharded import ShardedData

    if not isinstance(predictions, Shards | str | Path):
        raise InputError(
            f"shards are read from a folder, but the predictions are a"
            f" {type(predictions).__name__}",
            "give the path of the folder, or leave the options for shards out",
            code="unsupported-type",
        )
    files = InputFiles(reading)
    if not isinstance(predictions, Shards):
        files.note_predictions("predictions", predictions)
    if isinstance(annotations, str | Path):
        files.note_annotations("annotations", annotations)
    else:
        annotations = files.annotations("annotations", annotations)
    data = ShardedData.from_shards(predictions, annotations, reading)
    data.inputs = files.inputs
    return data


def predictions_for(
    labels: LabelsLike,
    predictions: PredictionsLike,
    scale: ScaleLike | None = None,
    order: Order | None = None,
) -> Predictions:
    """Return predictions on the declared scale.

    An array for which no scale is declared gets scale and classes of annotations on a scale that is
    not nominal. If ``order`` is declared, an array with as many columns as the annotations have
    classes gets these classes.
    """
    if isinstance(predictions, Predictions):
        if scale is None:
            return predictions
        return predictions.on_scale(scale)
    if isinstance(labels, Annotations):
        if scale is None and labels.scale != NOMINAL:
            return as_predictions(predictions, classes=labels.classes, scale=labels.scale)
        if order is not None and np.asarray(predictions).shape[-1] == len(labels.classes):
            return as_predictions(predictions, classes=labels.classes, scale=scale)
    return as_predictions(predictions, scale=scale)


def with_declared_order(predictions: Predictions, rows: Rows, order: Order | None) -> Predictions:
    """Return predictions without ids with the ids of ``rows``, if ``order`` declares their order.

    They are returned unchanged if they have ids, if the rows have none, and without ``order``.
    """
    if order is None:
        return predictions
    one_of("order", order, get_args(Order))
    if predictions.rows.has_ids or not rows.has_ids:
        return predictions
    if len(predictions) != len(rows):
        raise InputError(
            f"there are predictions of {counted(len(predictions), 'item')}, but annotations of"
            f" {counted(len(rows), 'item')}",
            f"give one row per item, or leave {option('order')} out and give ids",
            code="lengths-differ",
        )
    return replace(predictions, rows=rows)


def align_inputs(
    predictions: PredictionsLike,
    labels: LabelsLike,
    scale: ScaleLike | None = None,
    order: Order | None = None,
) -> tuple[Predictions, Annotations]:
    """Return both in the order of the predictions' items and the annotations' classes.

    Items are matched by id; if only one side has ids, ``order`` declares that the rows of the other
    are in the same order. ``scale`` applies to arrays, and to inputs that declare none; an array
    for which no scale is declared gets that of the other input.
    """
    predictions = predictions_for(labels, predictions, scale, order)
    if isinstance(labels, Annotations):
        annotations = labels
    else:
        annotations = as_annotations(
            labels, len(predictions), predictions.classes, scale=predictions.scale
        )
    predictions = with_declared_order(predictions, annotations.rows, order)
    are_matched_by_position = order is not None or not predictions.rows.has_ids
    if are_matched_by_position and not annotations.rows.has_ids:
        check_lengths(annotations, len(predictions.rows))
        annotations = replace(annotations, rows=predictions.rows)
    else:
        annotations = annotations.align(predictions.rows)
    if scale is not None and isinstance(labels, Annotations):
        annotations = with_scale(annotations, DeclaredScale(scale))
    check_same_scale(predictions.scale, "predictions", annotations.scale, "annotations")
    if len(predictions.classes) > len(annotations.classes):
        annotations = annotations.with_classes(predictions.classes)
    return predictions.order_classes(annotations.classes), annotations


def members_with_weight(
    predictions: PredictionsLike,
    members: tuple[str, ...],
    classes: Sequence[str],
    weights: Floats,
    scale: Scale,
) -> Predictions:
    """Return the predictions of the members with weight, on the ensemble's classes and scale.

    ``members``, ``classes``, ``weights`` and ``scale`` are those of the ensemble.
    """
    names = [name for name, weight in zip(members, weights, strict=True) if weight > 0]
    if not isinstance(predictions, Predictions):
        predictions = as_predictions(predictions, members, classes, scale)
    selected = select_members(predictions, names, "predictions")
    return selected.order_classes(classes).on_scale(scale, "ensemble")


def check_disjoint(dev: Predictions, test: Predictions) -> None:
    """Refuse test items that are also fitted on: they would favour whatever overfits most.

    Splits may use the same numbers as ids, so items with the same ids are the same items only if
    the members' predictions of them are equal, too.
    """
    dev_positions = dev.rows.positions(test.rows)
    has_id_in_dev = dev_positions >= 0
    repeated = test.rows.take(has_id_in_dev)
    dev_probabilities = dev.probabilities[dev_positions[has_id_in_dev]]
    test_probabilities = test.select(dev.members).probabilities[has_id_in_dev]
    if len(repeated) and np.array_equal(dev_probabilities, test_probabilities):
        raise InputError(
            f"{are(len(repeated), len(test), noun='test item')} among the items to fit on:"
            f" {examples(sorted(repeated.names))}",
            f"give {option('test_predictions')} of the test items alone",
            code="test-items-in-fit",
        )


def select_members(predictions: Predictions, members: Sequence[str], role: str) -> Predictions:
    """Return the predictions of these members, in this order; a missing member is refused.

    If a name of anonymous answers is among ``members``, those of pairs become members, too.
    """
    missing = [name for name in members if name not in predictions.members]
    if any(name.endswith(ANONYMOUS) for name in missing) and predictions.rows.are_pairs:
        predictions = predictions.with_anonymous()
        missing = [name for name in members if name not in predictions.members]
    if missing:
        raise InputError(
            f"the {role} lack members that were fitted on: {are(len(missing), len(members))}"
            f" missing: {examples(missing)}",
            "score the items with these members, too",
            code="missing-members",
        )
    return predictions.select(members)
