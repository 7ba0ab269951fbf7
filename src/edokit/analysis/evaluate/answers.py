"""The answers to evaluate, read from files, tables or arrays, and matched with annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import InputError, data_row, examples, one_of, option
from edokit._io.tables import FileTable, read_file_table
from edokit._types import Floats, Strings
from edokit.analysis.evaluate.result import ANONYMOUS
from edokit.analysis.scores.result import UNIFORM
from edokit.annotations.core import Annotations
from edokit.fitdata.arrays import check_lengths
from edokit.fitdata.inputs import load_predictions, select_members
from edokit.fitdata.reading import PredictionsLike, ReadOptions, TableLike
from edokit.item_array import Order, classes_of, rows_of
from edokit.predictions.core import Invalid, Predictions
from edokit.predictions.join import model_from_table
from edokit.predictions.shards import read_predictions
from edokit.rows import Rows, is_default_index, missing_ids
from edokit.scales import Scale, check_same_scale

if TYPE_CHECKING:
    from edokit.ensemble.estimator import EDOEnsemble
    from edokit.ensemble.pooled import Pooled

ProbabilitiesLike: TypeAlias = "str | Path | TableLike | Predictions | Pooled | npt.ArrayLike"

_MEMBER = "predictions"
"""Name of the single member as which probabilities are read."""
_ID_HINT = (
    "give what predict_proba or describe returns for named predictions, or"
    " edokit.ItemArray(values, items=…), or a table with a column item"
)


@dataclass(frozen=True)
class EvaluatedAnswers:
    """The answers to evaluate, in the order of the annotations' items and classes.

    Attributes
    ----------
    labels : Annotations
    by_name : dict of str to ndarray of shape [N, C]
        Answers to items by name: first those to evaluate, then others to compare them with.
    by_annotator : ndarray of shape [M, C] or None
        Answers for each pair of an item and an annotator; None if they are for nobody in
        particular.
    """

    labels: Annotations
    by_name: dict[str, Floats]
    by_annotator: Floats | None = None

    @property
    def probabilities(self) -> Floats:
        """The answers to evaluate [N, C]."""
        return next(iter(self.by_name.values()))


def read_answers(
    probabilities: ProbabilitiesLike | None,
    predictions: PredictionsLike | None,
    ensemble: EDOEnsemble | None,
    labels: Annotations,
    invalid: Invalid,
    order: Order | None = None,
) -> EvaluatedAnswers:
    """The answers to evaluate: probabilities, or an ensemble's answers from its members.

    Where members' predictions are given, their uniform mean is there, too.
    """
    if order is not None:
        one_of("order", order, get_args(Order))
    members = None
    if ensemble is not None:
        check_same_scale(labels.scale, "annotations", ensemble.fitted_.scale, "ensemble")
    if predictions is not None:
        members = load_predictions(predictions, ReadOptions(order=order), labels)
        members = members.annotated(labels).on_scale(labels.scale, "annotations")
    if probabilities is not None:
        answers = _as_one_member(probabilities, labels, invalid, order)
    elif members is not None and ensemble is not None:
        answers = ensemble.describe(members, only_knowing=True).as_predictions()
    else:
        raise InputError(
            "there is nothing to evaluate",
            f"give {option('probabilities', 'FILE')}, or {option('ensemble', 'FOLDER')} and"
            f" {option('predictions', 'FILE')}",
            code="missing-option",
        )
    if ensemble is not None and set(ensemble.fitted_.classes) != set(answers.classes):
        raise InputError(
            f"the ensemble is about the classes {examples(ensemble.fitted_.classes, 20)}, the"
            f" probabilities are about {examples(answers.classes, 20)}",
            "give the ensemble that made them",
            code="classes-differ",
        )
    if set(labels.classes) < set(answers.classes):
        labels = labels.with_classes(answers.classes)
    answers = answers.order_classes(labels.classes).on_scale(labels.scale, "annotations")
    answers = answers.annotated(labels)
    by_name = {answers.members[0]: _aligned(answers.panel_means(), labels.rows)}
    if members is not None:
        if ensemble is not None:
            members = select_members(members, ensemble.members_, "predictions")
        item_means = members.order_classes(labels.classes).panel_means()
        by_name[UNIFORM] = _aligned(item_means, labels.rows)
    by_annotator = None
    # Rows of pairs name an annotator; those without a name are for nobody in particular.
    is_named = answers.rows.is_named
    if is_named.any():
        by_annotator = _aligned(answers.pairs(), labels.pairs().rows)
        if not is_named.all():
            by_name[ANONYMOUS] = _aligned(answers.anonymous(), labels.rows)
    return EvaluatedAnswers(labels, by_name, by_annotator)


def _aligned(predictions: Predictions, rows: Rows) -> Floats:
    """The mean of the members for these rows, matched by id."""
    return np.asarray(predictions.align(rows).uniform)


def _as_one_member(
    source: ProbabilitiesLike, labels: Annotations, invalid: Invalid, order: Order | None
) -> Predictions:
    """The probabilities of items, or of pairs of an item and an annotator, as one member."""
    predictions = _read_probabilities(source, labels, invalid, order)
    p = np.asarray(predictions.uniform)[:, None]
    return Predictions(
        p, predictions.rows, (_MEMBER,), predictions.classes, scale=predictions.scale
    )


def _read_probabilities(
    source: ProbabilitiesLike, labels: Annotations, invalid: Invalid, order: Order | None
) -> Predictions:
    """Probabilities from a file, a table or an array, with the ids of their rows."""
    if isinstance(source, Predictions):
        return source
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix.lower() == ".npz" or path.is_dir():
            return read_predictions(path, invalid=invalid)
        return _from_table(read_file_table(path), path, labels, invalid)
    name = "the table of probabilities"
    if isinstance(source, pa.Table):
        return _from_table(FileTable(source, data_row), name, labels, invalid)
    if isinstance(source, pd.DataFrame | Mapping):
        frame = pd.DataFrame(source)
        if "item" not in frame.columns:
            if is_default_index(frame.index):
                frame.index = pd.Index(_items_by_position(labels, len(frame), order))
            frame = frame.rename_axis(index="item").reset_index()
        table = pa.Table.from_pandas(frame, preserve_index=False)
        return _from_table(FileTable(table, data_row), name, labels, invalid)
    rows = rows_of(source)
    items = None
    if rows is None:
        items = _items_by_position(labels, len(np.asarray(source)), order)
    predictions = Predictions.from_arrays(
        np.asarray(source),
        items=items,
        classes=classes_of(source) or labels.classes,
        layout="NC",
        invalid=invalid,
        scale=_declared_scale(labels),
    )
    if rows is not None:
        predictions = replace(predictions, rows=rows)
    return predictions


def _items_by_position(labels: Annotations, length: int, order: Order | None) -> Strings:
    """Ids for rows without ids: the annotations' items, if ``order`` declares the same order."""
    if order is None and labels.rows.has_ids:
        raise missing_ids("the rows of the probabilities", "the annotations", _ID_HINT)
    check_lengths(labels, length)
    return labels.items


def _from_table(
    source: FileTable, path: str | Path, labels: Annotations, invalid: Invalid
) -> Predictions:
    """Probabilities of items, or of pairs of an item and an annotator, from a table."""
    table = source.table
    if "annotator" in table.column_names and "member" not in table.column_names:
        table = table.append_column("member", pa.array([_MEMBER] * len(table)))
    source = replace(source, table=table)
    return model_from_table(source, path, _MEMBER, invalid=invalid, scale=_declared_scale(labels))


def _declared_scale(labels: Annotations) -> Scale | None:
    """The scale that probabilities are checked by as they are read.

    Probabilities of labels need not sum to 1. Those of ordered classes are checked like others; the
    scale is declared of them later.
    """
    if labels.scale.is_multi_label:
        return labels.scale
    return None
