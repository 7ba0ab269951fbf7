"""Predictions and labels in the forms that users have them, matched item by item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import InputError, are, counted, examples, option, warn
from edokit._names import as_name
from edokit._types import Floats
from edokit.annotations.core import Annotations
from edokit.fitdata.data import FitData
from edokit.fitdata.reading import ClassLabels, LabelsLike, ReadOptions
from edokit.predictions.core import ANONYMOUS, Predictions
from edokit.predictions.shards import Shards
from edokit.runs.inputs import Input, InputReader
from edokit.scales import NOMINAL, DeclaredScale, Scale, ScaleLike, check_same_scale

_FORMS = "[N] labels, [N, A] labels per annotator, [N, C] soft labels, or Annotations"
_SETS = "[N, L] with 0 or 1, or a share of annotators, for each label; or Annotations"
PredictionsLike: TypeAlias = Predictions | Shards | FitData | npt.ArrayLike | str | Path
"""Predictions as a verb accepts them; an array has the shape (N, K, C), a path is read."""


def as_predictions(
    predictions: PredictionsLike,
    members: tuple[str, ...] | None = None,
    classes: Sequence[str] | None = None,
    scale: ScaleLike | None = None,
) -> Predictions:
    """Predictions as they are, or a bare array [N, K, C]; names are 0, 1, … where None.

    ``scale`` applies to an array and to predictions that declare none.
    """
    if isinstance(predictions, Predictions):
        return predictions if scale is None else predictions.on_scale(scale)
    if hasattr(predictions, "shape"):
        array = predictions
    else:
        array = np.asarray(predictions)
    return Predictions.from_arrays(
        array, layout="NKC", members=members, classes=classes, scale=scale
    )


def as_annotations(
    labels: LabelsLike,
    n_items: int,
    classes: Sequence[str] | None = None,
    *,
    scale: ScaleLike | None = None,
) -> Annotations:
    """Annotations as they are, or an array of labels with one row per item.

    One dimension: one label per item. Two: a label per annotator with gaps, or, if the numbers
    are shares that sum to one in every row, soft labels. For multi-label data: a column per label.
    ``scale`` applies to an array and to annotations that declare none.
    """
    if labels is None:
        raise InputError("there are no labels to learn from", f"give {_FORMS}")
    if isinstance(labels, Annotations):
        if len(labels.items) != n_items:
            raise InputError(
                f"predictions and annotations must hold the same items, but there are {n_items}"
                f" rows and {len(labels.items)} annotated items",
                "give one row per item, in the order of the annotations' items",
            )
        if scale is None:
            return labels
        return _declared(labels, DeclaredScale(scale))
    values = _array(labels)
    sets = scale is not None and DeclaredScale(scale).kind == "multi-label"
    if len(values.shape) not in ((2,) if sets else (1, 2)) or len(values) != n_items:
        raise InputError(
            f"{'sets of ' if sets else ''}labels need one row for each of the {n_items} items"
            f"{' and a column per label' if sets else ''}; these have shape {values.shape}",
            f"give {_SETS if sets else _FORMS}",
        )
    if not sets:
        values = _label_columns(values)
        _refuse_doubtful(values, scale)
    if sets or _is_soft(values, classes):
        return Annotations.from_soft_labels(values, classes=classes, scale=scale)
    return Annotations.from_matrix(values, classes=classes, scale=scale)


def _refuse_doubtful(values: npt.NDArray[Any], scale: ScaleLike | None) -> None:
    """Refuse numbers [N, A] that may be gaps (−1 beside 0), or shares that do not sum to 1."""
    if values.dtype.kind not in "iuf" or values.shape[1] < 2:
        return
    lowest = values.min()
    may_be_gaps = scale in (None, NOMINAL) and not lowest >= 0  # NaN is not
    if may_be_gaps and (values == -1).any() and (values == 0).any():
        raise InputError(
            f"y holds −1 beside 0 ({counted(int((values == -1).sum()), 'such entry')}): it may be a"
            " class, or stand for no label",
            "put NaN or None where there is no label; if it is a class, name the classes:"
            " Annotations.from_matrix(y, classes=[-1, 0, 1])",
        )
    if values.dtype.kind != "f" or not lowest >= 0 or not values.max() <= 1:
        return
    if not NOMINAL.all_distributions(values) and (values != np.round(values)).any():
        sums = values.sum(axis=1)
        raise InputError(
            f"y holds shares whose rows sum to {sums.min():.3g} to {sums.max():.3g}, not to 1",
            "divide each row by its sum: y / y.sum(axis=1, keepdims=True)",
        )


def _label_columns(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as a matrix [N, A]; one label per item is a single column."""
    if values.ndim == 1:
        numeric = values.dtype.kind in "fc"
        if numeric and not np.isfinite(values).all():
            raise InputError("Input y contains NaN or infinity", "give a label for every item")
        if numeric and (values != np.round(values)).any():
            raise InputError("Unknown label type: y holds fractions, not classes", f"give {_FORMS}")
        return values[:, None]
    if values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn(
            "A column-vector y was passed when a 1d array was expected; it is read as one label"
            " per item.",
            DataConversionWarning,
        )
    return values


def _declared(annotations: Annotations, declared: DeclaredScale) -> Annotations:
    """Annotations on this scale: theirs, or one that is declared for those without."""
    if annotations.scale == NOMINAL and declared.kind == "ordinal":
        ordered = annotations.with_classes(declared.classes or annotations.classes)
        return replace(ordered, scale=declared.on(ordered.classes))
    check_same_scale(
        annotations.scale, "annotations", declared.on(annotations.classes), "declaration"
    )
    return annotations


def class_labels(
    labels: Any, classes: Sequence[str], *, scale: Scale = NOMINAL
) -> ClassLabels | None:
    """The classes in the type of the labels, so that predictions equal what was given.

    None where the names themselves, which are text, are what the user works with.
    """
    if labels is None or isinstance(labels, Annotations):
        return None
    values = _array(labels)
    if scale.is_multi_label or (values.ndim == 2 and _is_soft(values, classes)):
        positions = tuple(range(len(classes)))
        if tuple(map(str, positions)) == tuple(classes):
            return positions
        return None
    return _typed(classes, _labels_by_name(values))


def _typed(classes: Sequence[str], by_name: dict[str, Any]) -> ClassLabels | None:
    """The classes as labels, those that nobody chose of the type of the others; None for names."""
    kinds = set(map(type, by_name.values()))
    if not kinds <= {int, float, bool, str} or kinds == {str}:
        return None
    unchosen = [name for name in classes if name not in by_name]
    if unchosen and (len(kinds) != 1 or bool in kinds):
        return None
    try:
        by_name |= {name: next(iter(kinds))(name) for name in unchosen}
    except ValueError:
        return None
    return tuple(by_name[name] for name in classes)


def _labels_by_name(values: npt.NDArray[Any]) -> dict[str, Any]:
    """The different labels, by name."""
    labels = values[~pd.isna(values)]
    if labels.dtype.kind == "O":
        distinct = set(labels.tolist())
    else:
        distinct = np.unique(labels).tolist()
    return {as_name(label): label for label in distinct}


def label_array(classes: Sequence[str], labels: ClassLabels | None) -> npt.NDArray[Any]:
    """Class labels [C]: of one type where they have one, else objects; names are objects."""
    listed = tuple(classes) if labels is None else labels
    kinds = set(map(type, listed))
    return np.array(listed, dtype=None if len(kinds) == 1 and kinds != {str} else object)


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


def load_inputs(
    predictions: PredictionsLike, annotations: LabelsLike, reading: ReadOptions
) -> FitData:
    """Return predictions and labels, matched by item, as a fit needs them.

    Paths are read, shards are opened and not read into memory, and `FitData` come back as they
    are. Close what was opened (`open_inputs` does).
    """
    if isinstance(predictions, FitData):
        if reading.scale is not None:
            declared = DeclaredScale(reading.scale).on(predictions.classes)
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
    if isinstance(annotations, Annotations | str | Path):  # arrays have no names of annotators
        data.annotations = matched.annotations
    return data


@contextmanager
def open_inputs(
    predictions: PredictionsLike, annotations: LabelsLike, reading: ReadOptions
) -> Iterator[FitData]:
    """`load_inputs` for a ``with``: data that it opens are closed, `FitData` stay open."""
    data = load_inputs(predictions, annotations, reading)
    try:
        yield data
    finally:
        if data is not predictions:
            data.close()


def match_inputs(
    predictions: PredictionsLike, annotations: LabelsLike, reading: ReadOptions
) -> MatchedInputs:
    """Return predictions and annotations in memory, read where they are paths, and matched."""
    reader = _reader(predictions, annotations, reading)
    if reader is not None:
        annotations = reader.annotations("annotations", annotations, reading.split)
        predictions = reader.predictions("predictions", predictions)
    aligned, labelled = align_inputs(predictions, annotations, reading.scale)
    labels = class_labels(annotations, labelled.classes, scale=labelled.scale)
    inputs = {} if reader is None else reader.inputs
    return MatchedInputs(aligned, labelled, labels, inputs)


def _reader(
    predictions: PredictionsLike, annotations: LabelsLike, reading: ReadOptions
) -> InputReader | None:
    """Return what reads the files, and refuses options of files where there are none."""
    options = reading.file_options()
    if not isinstance(annotations, str | Path):
        options.pop("scale", None)  # it applies to arrays as well
        if not isinstance(predictions, str | Path) and not options and not reading.split:
            return None
    return InputReader(**options)


def _open_shards(
    predictions: PredictionsLike, annotations: LabelsLike, reading: ReadOptions
) -> FitData:
    """Return the data of shards, which are read in passes."""
    from edokit.fitdata.sharded import ShardedData

    if not isinstance(predictions, Shards | str | Path):
        raise InputError(
            f"shards are read from a folder, but the predictions are a"
            f" {type(predictions).__name__}",
            "give the path of the folder, or leave the options of shards out",
        )
    inputs: Mapping[str, Input] = {}
    reader = _reader(predictions, annotations, reading)
    if reader is not None:
        annotations = reader.streamed(predictions, annotations, reading.split)["annotations"]
        inputs = reader.inputs
    data = ShardedData.from_shards(predictions, annotations, reading)
    data.inputs = inputs
    return data


def predictions_for(
    labels: LabelsLike, predictions: PredictionsLike, scale: ScaleLike | None = None
) -> Predictions:
    """Predictions on this scale; an array without one has scale and classes of annotations."""
    bare = not isinstance(predictions, Predictions) and scale is None
    if bare and isinstance(labels, Annotations) and labels.scale != NOMINAL:
        return as_predictions(predictions, classes=labels.classes, scale=labels.scale)
    return as_predictions(predictions, scale=scale)


def align_inputs(
    predictions: PredictionsLike, labels: LabelsLike, scale: ScaleLike | None = None
) -> tuple[Predictions, Annotations]:
    """Both in the order of the predictions' items and the annotations' classes, on one scale.

    ``scale`` applies to arrays and to inputs that declare none; an array without a scale takes the
    other input's.
    """
    predictions = predictions_for(labels, predictions, scale)
    if isinstance(labels, Annotations):
        annotations = labels.align(predictions.rows)
        if scale is not None:
            annotations = _declared(annotations, DeclaredScale(scale))
    else:
        # Rows without ids belong together by position; the ids are then the predictions'.
        annotations = as_annotations(
            labels, len(predictions), predictions.classes, scale=predictions.scale
        )
        annotations = replace(annotations, rows=predictions.rows)
    check_same_scale(predictions.scale, "predictions", annotations.scale, "annotations")
    if len(predictions.classes) > len(annotations.classes):
        annotations = annotations.with_classes(predictions.classes)
    return predictions.order_classes(annotations.classes), annotations


def align_test_inputs(
    predictions: PredictionsLike, labels: LabelsLike, split: str | Sequence[str] | None
) -> tuple[Predictions, Annotations]:
    """The same of test data; without a split, items that differ are most likely those of others."""
    try:
        return align_inputs(predictions, labels)
    except InputError as error:
        hint = error._hint
        if split is None and isinstance(labels, Annotations):
            hint = f"choose one split of the annotations: {option('test_split', 'test')}"
        raise InputError(f"of the test data, {error._message}", hint) from None


def pooled_members(
    predictions: PredictionsLike,
    members: tuple[str, ...],
    classes: Sequence[str],
    weights: Floats,
    scale: Scale,
) -> Predictions:
    """Predictions of the members that carry weight, classes and scale as fitted."""
    weighted_members = [name for name, weight in zip(members, weights, strict=True) if weight > 0]
    if not isinstance(predictions, Predictions):
        predictions = as_predictions(predictions, members, classes, scale)
    selected = select_members(predictions, weighted_members, "predictions").order_classes(classes)
    return selected.on_scale(scale, "ensemble")


def check_disjoint(dev: Predictions, test: Predictions) -> None:
    """Refuse test items that were fitted on: they would favour whatever overfits most.

    Splits may number their items alike, so an id in both is the same item only if the members'
    predictions of it are the same.
    """
    places = dev.rows.positions(test.rows)
    shared = test.rows.take(places >= 0)
    in_both = test.select(dev.members).probabilities[places >= 0]
    if len(shared) and np.array_equal(dev.probabilities[places[places >= 0]], in_both):
        raise InputError(
            f"{are(len(shared), len(test), noun='test item')} among the items to fit on:"
            f" {examples(sorted(shared.names))}",
            f"give {option('test_predictions')} of the test items alone",
        )


def select_members(predictions: Predictions, members: Sequence[str], role: str) -> Predictions:
    """Predictions of these members, in this order; all of them must be there.

    Anonymous answers are members of their own where these are named.
    """
    missing = [name for name in members if name not in predictions.members]
    if any(name.endswith(ANONYMOUS) for name in missing) and predictions.rows.noun == "pair":
        predictions = predictions.with_anonymous()
        missing = [name for name in members if name not in predictions.members]
    if missing:
        raise InputError(
            f"the {role} lack members that were fitted on: {are(len(missing), len(members))}"
            f" missing: {examples(missing)}",
            "score the items with these members, too",
        )
    return predictions.select(members)


def _array(labels: LabelsLike) -> npt.NDArray[Any]:
    try:
        values = np.asarray(getattr(labels, "to_numpy", lambda: labels)())
    except ValueError as error:
        raise InputError(
            "the rows of the labels have different lengths",
            f"give {_FORMS}; of sets {_SETS} (sklearn.preprocessing.MultiLabelBinarizer makes it)",
        ) from error
    if isinstance(labels, np.ma.MaskedArray):
        values = values.astype(object)
        values[np.ma.getmaskarray(labels)] = None
    return values


def _is_soft(values: npt.NDArray[Any], classes: Sequence[str] | None) -> bool:
    """Whether a matrix [N, ·] holds shares per class; where it could be labels, that is an error.

    Shares are fractions that sum to one in each row. Whole numbers are labels, except in a float
    matrix of zeros and ones with a single one per row, which could be either.
    """
    if values.dtype.kind != "f" or values.shape[1] < 2:
        return False
    if classes is not None and values.shape[1] != len(classes):
        return False
    if not NOMINAL.all_distributions(values):
        return False
    if (values != np.round(values)).any():
        return True
    raise InputError(
        "this matrix of zeros and ones with a single one per row can be labels of annotators or"
        " soft labels",
        "give labels as integers, or use Annotations.from_soft_labels / from_matrix",
    )
