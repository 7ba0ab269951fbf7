"""Tables of people: attributes of annotators in a separate file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from edokit._errors import InputError, are, examples, headings, option, warn
from edokit._io.documents import read_json
from edokit._io.tables import read_table
from edokit._names import as_name, encode
from edokit._types import Strings
from edokit.annotations.core import Annotations
from edokit.annotations.long_table import COLUMNS, ROLES


def read_people(path: str | Path, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Read a table of people.

    Parameters
    ----------
    path : str or Path
        A table with a column ``annotator`` and a row per person (or several rows that agree, as in
        a table of annotations), or a JSON object with an object per annotator.
    columns : mapping of str to str, default=None
        Names of columns, as for the annotations: the name of ``annotator`` is used, and the columns
        of other roles are left out.

    Returns
    -------
    pandas.DataFrame
        The attributes as text, with a row per annotator. From a table of annotations, the columns
        with one value per annotator.

    Raises
    ------
    InputError
        If the column of annotators is missing, or an annotator has several values.
    """
    file = Path(path)
    if file.suffix.lower() == ".json":
        return _people_of_json(file)
    names = dict(columns or {})
    table = read_table(file)
    present = table.column_names
    key = names.get("annotator", "annotator")
    if key not in present:
        # The table of people may use the default name even if the annotations use another one.
        key = "annotator"
    if key not in present:
        raise InputError(
            f"{file} lacks the column {names.get('annotator', 'annotator')!r} of annotators; its"
            f" columns are {headings(present)}",
            f"say which it is: {option('columns', {'annotator': 'NAME'})}",
            code="missing-column",
        )
    has_role = set()
    for role, default in zip(ROLES, COLUMNS, strict=True):
        has_role.add(names.get(role, default))
    cells = {}
    for name in [key, *present]:
        if name == key or name not in has_role:
            cells[name] = encode(table[name], name).row_names
    frame = pd.DataFrame(cells)
    frame = frame[frame[key] != ""]
    by_person = frame.groupby(key, sort=False)
    is_constant = (by_person.nunique() <= 1).all()
    varying = is_constant[~is_constant].index
    if len(varying) and names.get("item", "item") not in present:
        several = by_person[varying[0]].nunique()
        raise InputError(
            f"{file}: annotator {several.idxmax()!r} has several values of {examples(varying)}",
            "give each annotator one value",
            code="contradictory-rows",
        )
    # In a table of annotations, columns that vary do not describe annotators.
    return by_person.first().loc[:, is_constant[is_constant].index]


def _people_of_json(file: Path) -> pd.DataFrame:
    """The attributes in a JSON object with an object per annotator."""
    content = read_json(file)
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise InputError(
            f"{file} is not a JSON object with an object per annotator",
            "write people as a table with a column annotator",
            code="wrong-content",
        )
    rows: dict[str, dict[str, str]] = {}
    for annotator, entry in content.items():
        row = {}
        for name, value in entry.items():
            if value is not None and not isinstance(value, dict | list):
                row[name] = as_name(value)
        rows[annotator] = row
    return pd.DataFrame.from_dict(rows, orient="index", dtype=object).fillna("")


def with_people(
    annotations: Annotations, path: str | Path, columns: Mapping[str, str] | None = None
) -> Annotations:
    """Return the annotations with the attributes of a table of people.

    They replace columns of the same name. The attributes of annotators who are not in the table are
    unknown; a warning counts these annotators.
    """
    people = read_people(path, columns)
    ids = [str(name) for name in annotations.annotators]
    missing = [name for name in ids if name not in people.index]
    if len(missing) == len(ids):
        raise InputError(
            f"{path} describes none of the annotators: it has {examples(people.index)}, the"
            f" annotations have {examples(ids)}",
            "check that both use the same names of people",
            code="unknown-annotator",
        )
    if missing:
        warn(
            f"{are(len(missing), len(ids), noun='annotator')} not in {path}, so their attributes"
            f" are unknown: {examples(missing)}"
        )
    described = people.reindex(ids).fillna("")
    attributes = dict(annotations.attributes)
    for name in described:
        attributes[str(name)] = described[name].to_numpy(dtype=object)
    return replace(
        annotations,
        attributes=attributes,
        item_columns=_without_columns(annotations.item_columns, described),
        annotation_columns=_without_columns(annotations.annotation_columns, described),
    )


def _without_columns(columns: Mapping[str, Strings], replaced: pd.DataFrame) -> dict[str, Strings]:
    return {name: values for name, values in columns.items() if name not in replaced}
