"""One model's probabilities in one file: what `predict` writes and other tools export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import InputError, counted, examples, headings
from edokit._io.tables import number_column, parquet_columns, read_table
from edokit._names import as_names, check_unique, class_order, match
from edokit._types import Strings
from edokit.predictions.core import PREFIX, Invalid, Predictions, canonical, checked
from edokit.predictions.files import name_column
from edokit.predictions.shards import read_predictions


@dataclass(frozen=True, eq=False)
class ModelFile:
    """Probabilities [N, C] of one model, by item id and class name."""

    probabilities: npt.NDArray[Any]
    items: Strings
    classes: tuple[str, ...]


def read_model_file(
    path: str | Path, *, logits: bool = False, invalid: Invalid = "error"
) -> ModelFile:
    """A CSV, TSV, Parquet or JSONL with ``item`` and one ``p_<class>`` column per class."""
    table = read_table(path, numbers=lambda name: name.startswith(PREFIX))
    return model_from_table(table, path, logits=logits, invalid=invalid)


def model_from_table(
    table: pa.Table, path: str | Path, *, logits: bool = False, invalid: Invalid = "error"
) -> ModelFile:
    """The same from a table; ``path`` names it in messages."""
    items = item_column(table, path)
    found = [name for name in table.column_names if name.startswith(PREFIX)]
    if len(found) < 2:
        raise InputError(
            f"{path} does not have one p_<class> column per class; its columns are"
            f" {headings(table.column_names)}",
            "name them p_0, p_1, …; for one column of positive-class probabilities per model use"
            " `edo predictions join --positive CLASS`",
        )
    classes = class_order(name.removeprefix(PREFIX) for name in found)
    if "" in classes:
        raise InputError(
            f"{path} has a column {PREFIX!r} that does not name its class", "name them p_0, p_1, …"
        )
    values = np.column_stack([number_column(table, PREFIX + name, str(path)) for name in classes])
    array = canonical(values, "NC", logits=logits)
    array = checked(array, items, [Path(path).stem], invalid, f" in {path}")
    return ModelFile(array[:, 0], items, classes)


def item_column(table: pa.Table, path: str | Path) -> Strings:
    """The ids of a table with one row per item [N]."""
    if "item" not in table.column_names:
        raise InputError(
            f"{path} has no column 'item'; its columns are {headings(table.column_names)}",
            "rename the column with the ids to item",
        )
    encoded = name_column(table, "item", path)
    items = encoded.names[encoded.codes]
    check_unique(items, f"items in {path}", "keep one row per item")
    return items


def join_models(
    files: Sequence[str | Path],
    *,
    names: Sequence[str | None] | None = None,
    groups: Sequence[str | None] | Mapping[str, str] | None = None,
    logits: bool = False,
    invalid: Invalid = "error",
    positive: str | None = None,
    negative: str | None = None,
) -> Predictions:
    """Join one file per model into predictions, with items matched by id to the first file.

    Parameters
    ----------
    files : sequence of str or Path
        A table (CSV, TSV, Parquet, JSONL) with the columns ``item`` and ``p_<class>`` is one
        member, named like the file; an .npz, or a Parquet file with a ``member`` column, brings
        all its members.
    names : sequence of str or None, default=None
        Another name for the member of each file.
    groups : sequence of str or None, or mapping of str to str, default=None
        The group of each file's members, or a mapping of members to groups.
    logits : bool, default=False
        Whether tables hold logits; stored predictions never do.
    invalid : {"error", "normalize"}, default="error"
        What to do with probabilities that do not sum to 1: refuse them, or divide by their sum.
    positive : str, default=None
        Each column of a table but ``item`` is a member, with probabilities of this class of two.
    negative : str, default=None
        The name of the other class.

    Returns
    -------
    Predictions

    Raises
    ------
    InputError
        If the files are not about the same items and classes, or names of members repeat.

    Examples
    --------
    >>> from pathlib import Path
    >>> from edokit.predictions import join_models
    >>> _ = Path("bert.csv").write_text("item,p_no,p_yes\\na,0.9,0.1\\nb,0.2,0.8\\n")
    >>> _ = Path("tfidf.csv").write_text("item,p_no,p_yes\\nb,0.4,0.6\\na,0.7,0.3\\n")
    >>> join_models(["bert.csv", "tfidf.csv"])
    Predictions(2 items, 2 members, classes no, yes)
    """
    if negative is not None and positive is None:
        raise InputError(
            f"negative={negative!r} names the other class, but no positive class is given",
            "name the positive class, too",
            parameters=("negative", "positive"),
        )
    if not files:
        raise InputError("there is no file to join", "name the files")
    by_member = groups if isinstance(groups, Mapping) else {}
    by_file = None if isinstance(groups, Mapping) else groups
    for what, given in (("names", names), ("groups", by_file)):
        if given and len(given) != len(files):
            raise InputError(
                f"there are {len(given)} {what} for {counted(len(files), 'file')}",
                "give None for a file that needs none",
                parameters=(what,),
            )
    parts: list[Predictions] = []
    for position, path in enumerate(map(Path, files)):
        name = names[position] if names else None
        group = by_file[position] if by_file else None
        if positive is not None:
            part = _positive_columns(path, negative, positive, logits, invalid)
        elif path.suffix.lower() == ".npz" or path.is_dir() or "member" in parquet_columns(path):
            part = read_predictions(path, invalid=invalid)
        else:
            model = read_model_file(path, logits=logits, invalid=invalid)
            one = model.probabilities[:, None, :]
            part = Predictions(one, model.items, (path.stem,), model.classes)
        if name and len(part.members) > 1:
            raise InputError(
                f"the name {name!r} is for one member, but {path} holds {len(part.members)}",
                "leave the name out",
                parameters=("names",),
            )
        if name:
            part = replace(part, members=(name,))
        if group is not None:
            part = replace(part, groups=(group,) * len(part.members))
        parts.append(part)
    joined = _side_by_side(parts, files)
    return joined.grouped(by_member) if by_member else joined


def _positive_columns(
    path: Path, negative: str | None, positive: str, logits: bool, invalid: Invalid
) -> Predictions:
    table = read_table(path, numbers=lambda column: column != "item")
    items = item_column(table, path)
    members = [column for column in table.column_names if column != "item"]
    if not members:
        raise InputError(
            f"{path} has no column of a member beside 'item'", "name each column like its member"
        )
    values: Any = np.column_stack([number_column(table, column, str(path)) for column in members])
    array = canonical(values, "NK", logits=logits)
    array = checked(array, items, members, invalid, f" in {path}")
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
                f"{file} is about the classes {examples(part.classes, 20)}, but {files[0]} about"
                f" {examples(first.classes, 20)}",
                "rename its p_<class> columns",
            ) from error
    members = tuple(name for part in aligned for name in part.members)
    check_unique(as_names(members), "names of members", "rename one (NAME=FILE in the command)")
    groups: tuple[str, ...] | None = None
    if any(part.groups is not None for part in aligned):
        groups = tuple(
            group for part in aligned for group in (part.groups or ("",) * len(part.members))
        )
    dtype = np.result_type(*(part.probabilities.dtype for part in aligned))
    values = np.concatenate([part.probabilities.astype(dtype) for part in aligned], axis=1)
    return Predictions(values, first.items, members, first.classes, groups).named()
