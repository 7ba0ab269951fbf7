"""Tables with one row per item and one column per annotator, as tables of annotations."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np
import pyarrow as pa

from edokit._errors import InputError, headings, option
from edokit._names import as_names, check_unique, encode
from edokit._types import Codes
from edokit.annotations.labels import list_labels_as_text


def unpivot(table: pa.Table, annotator_columns: Sequence[str]) -> tuple[pa.Table, Codes]:
    """Turn a table with a row per item and a column per annotator into a row per annotation.

    Empty cells are skipped. Also return the row of ``table`` [n] that each new row comes from.
    """
    for name in annotator_columns:
        if name not in table.column_names:
            raise _missing_annotator_column(name, table.column_names)
    check_unique(as_names(annotator_columns), "annotator columns", "name each column once")
    item_columns = table.drop_columns(list(annotator_columns))
    for name in ("annotator", "label"):
        if name in item_columns.column_names:
            raise InputError(
                f"the table has a column {name!r} beside the columns of annotators"
                f" {headings(annotator_columns)}",
                f"rename or remove it; if it describes single annotations, leave"
                f" {option('annotator_columns')} out",
                code="conflicting-options",
            )
    rows = []
    annotators = []
    labels = []
    for name in annotator_columns:
        texts = encode(list_labels_as_text(table[name]), name).row_names
        filled = np.flatnonzero([bool(text.strip()) for text in texts])
        rows.append(filled)
        annotators += [name] * len(filled)
        labels += texts[filled].tolist()
    place = np.concatenate(rows).astype(np.int32)
    order = np.argsort(place, kind="stable")
    place = place[order]
    long_table = item_columns.take(pa.array(place))
    for name, values in (("annotator", annotators), ("label", labels)):
        column = pa.array(np.array(values, dtype=object)[order], pa.string())
        long_table = long_table.append_column(name, column.dictionary_encode())
    return long_table, place


def _missing_annotator_column(name: str, column_names: Sequence[str]) -> InputError:
    """The error for a column of an annotator that the table does not have."""
    hint = "check the spelling"
    close = get_close_matches(name, column_names, 1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    return InputError(
        f"{option('annotator_columns')} names the column {name!r}, which does not exist; the"
        f" columns are {headings(column_names)}",
        hint,
        code="missing-column",
    )
