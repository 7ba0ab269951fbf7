"""One model's probabilities in one file: what `predict` writes and other tools export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import InputError, counted, examples, headings
from edokit._io import number_column, parquet_columns, read_table
from edokit._names import as_names, check_unique, class_order, encode, match, row_number
from edokit._types import Strings
from edokit.predictions.arrays import PREFIX, canonical, checked, policy_for
from edokit.predictions.core import Predictions
from edokit.predictions.shards import read_predictions


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


def join_models(
    files: Sequence[str | Path],
    *,
    names: Sequence[str | None] | None = None,
    groups: Sequence[str | None] | None = None,
    logits: bool = False,
    invalid: str = "error",
    positive: str | None = None,
    negative: str | None = None,
) -> Predictions:
    """The members of all files side by side, items matched by id to the first file.

    A table with ``item`` and ``p_<class>`` columns is one member, named like the file or by
    ``names``; an .npz, or a Parquet file with a ``member`` column, brings all its members.
    With ``positive`` (the class's name) each column of a table but ``item`` is a member, and its
    numbers are probabilities of that class. ``logits`` is about tables; stored predictions never
    are logits.
    """
    if negative is not None and positive is None:
        raise InputError(
            "the other class is named beside the positive one, but positive is not given",
            "give --positive, too",
        )
    if not files:
        raise InputError("at least one file must be joined, but got none", "name the files")
    for what, given in (("names", names), ("groups", groups)):
        if given and len(given) != len(files):
            raise InputError(
                f"{what} must be one per file ({len(files)}), but got {len(given)}",
                "give None for a file that needs none",
            )
    parts: list[Predictions] = []
    for position, file in enumerate(files):
        name = names[position] if names else None
        group = groups[position] if groups else None
        if positive is None:
            part = _read_part(Path(file), name, logits, invalid)
        else:
            part = _positive_columns(Path(file), negative, positive, logits, invalid)
            part = _renamed(part, name, file)
        if group is not None:
            part = replace(part, groups=(group,) * len(part.members))
        parts.append(part)
    return _side_by_side(parts, files)


def _read_part(path: Path, name: str | None, logits: bool, invalid: str) -> Predictions:
    if path.suffix.lower() == ".npz" or path.is_dir() or "member" in parquet_columns(path):
        return _renamed(read_predictions(path, invalid=invalid), name, path)
    model = read_model_file(path, logits=logits, invalid=invalid)
    return Predictions(
        model.probabilities[:, None, :], model.items, (name or path.stem,), model.classes
    )


def _renamed(part: Predictions, name: str | None, path: str | Path) -> Predictions:
    if name is None:
        return part
    if len(part.members) > 1:
        raise InputError(
            f"a name is given to one member, but {path} holds {len(part.members)}",
            "leave the name out",
        )
    return replace(part, members=(name,))


def _positive_columns(
    path: Path, negative: str | None, positive: str, logits: bool, invalid: str
) -> Predictions:
    policy = policy_for(invalid)
    table = read_table(path, numbers=lambda column: column != "item")
    items = item_column(table, path)
    members = [column for column in table.column_names if column != "item"]
    if not members:
        raise InputError(
            f"{path} must have a column per member beside 'item', but has none",
            "name each column like its member",
        )
    values: Any = np.column_stack([number_column(table, column, str(path)) for column in members])
    array = canonical(values, "NK", logits=logits)
    array = checked(array, items, members, policy, f" in {path}")
    other = negative or {"1": "0", "0": "1"}.get(positive, f"not {positive}")
    both = Predictions(array, items, tuple(members), (other, positive)).named()
    return both.order_classes(class_order(both.classes))


def _side_by_side(parts: Sequence[Predictions], files: Sequence[str | Path]) -> Predictions:
    first = parts[0]
    aligned = [first]
    for part, file in zip(parts[1:], files[1:], strict=True):
        where = match(first.items, part.items, str(file), str(files[0]))
        try:
            aligned.append(part.take(where).order_classes(first.classes))
        except InputError as error:
            raise InputError(
                f"all files must be about the classes of {files[0]}"
                f" ({examples(first.classes, 20)}), but {file} is about"
                f" {examples(part.classes, 20)}",
                "rename its p_<class> columns",
            ) from error
    members = tuple(name for part in aligned for name in part.members)
    check_unique(
        as_names(members), "names of members", "rename one with NAME=FILE on the command line"
    )
    groups: tuple[str, ...] | None = None
    if any(part.groups is not None for part in aligned):
        groups = tuple(
            group for part in aligned for group in (part.groups or ("",) * len(part.members))
        )
    dtype = np.result_type(*(part.probabilities.dtype for part in aligned))
    values = np.concatenate([part.probabilities.astype(dtype) for part in aligned], axis=1)
    return Predictions(values, first.items, members, first.classes, groups).named()
