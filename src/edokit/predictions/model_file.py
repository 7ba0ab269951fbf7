"""One model's probabilities in one file: what `predict` writes and other tools export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import InputError, counted, headings
from edokit._io import number_column, read_table
from edokit._names import check_unique, class_order, encode, row_number
from edokit._types import Strings
from edokit.predictions.check import checked, policy_for
from edokit.predictions.shapes import canonical

PREFIX = "p_"


@dataclass(frozen=True, eq=False)
class ModelFile:
    """Probabilities [N, C] of one model, by item id and class name."""

    probabilities: npt.NDArray[Any]
    items: Strings
    classes: tuple[str, ...]


def read_model_file(path: str | Path, *, logits: bool = False, invalid: str = "error") -> ModelFile:
    """A CSV, TSV, Parquet or JSONL with ``item`` and one ``p_<class>`` column per class."""
    policy = policy_for(invalid)
    table = read_table(path, numbers=lambda name: name.startswith(PREFIX))
    items = item_column(table, path)
    found = [name for name in table.column_names if name.startswith(PREFIX)]
    if len(found) < 2:
        raise InputError(
            f"{path} must have one p_<class> column per class, but its columns are"
            f" {headings(table.column_names)}",
            "name them p_0, p_1, …; for one column of positive-class probabilities per model use"
            " `edo predictions join --positive CLASS`",
        )
    classes = class_order(name.removeprefix(PREFIX) for name in found)
    if "" in classes:
        raise InputError(
            f"every probability column of {path} must name its class, but one is called {PREFIX!r}",
            "name them p_0, p_1, …",
        )
    values = np.column_stack([number_column(table, PREFIX + name, str(path)) for name in classes])
    array = canonical(values, "NC", logits=logits)
    array = checked(array, items, [Path(path).stem], policy, f" in {path}")
    return ModelFile(array[:, 0], items, classes)


def item_column(table: pa.Table, path: str | Path) -> Strings:
    """The ids of a table with one row per item [N]."""
    if "item" not in table.column_names:
        raise InputError(
            f"{path} must have a column 'item', but its columns are {headings(table.column_names)}",
            "rename the column with the ids to item",
        )
    encoded = encode(table["item"], "item")
    gaps = np.flatnonzero(encoded.codes < 0)
    if len(gaps):
        raise InputError(
            f"every row of {path} must name its item, but {row_number(int(gaps[0]))} does not"
            f" ({counted(len(gaps), 'such row')})",
            "fill in or drop these rows",
        )
    items = encoded.names[encoded.codes]
    check_unique(items, f"items in {path}", "keep one row per item")
    return items
