"""Exports of annotation tools: their answers as a long table of annotations."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import pandas as pd
import pyarrow as pa
from pydantic import BeforeValidator

from edokit._errors import (
    HAVE,
    Decision,
    InputError,
    OpenDecisionsError,
    are,
    counted,
    examples,
    option,
    warn,
)
from edokit._io.atomic import check_file
from edokit._io.documents import read_json, read_json_lines, show_value, to_model
from edokit._io.memory import check_memory
from edokit._io.tables import read_records
from edokit._names import as_name
from edokit.annotations.core import Annotations
from edokit.annotations.long_table import ITEM_GROUP, TEXTS, from_long_table
from edokit.scales import NOMINAL, DeclaredScale, ScaleLike

OPTIONS = ("columns", "label_map", "question")
"""Options of the readers of all exports (see `read_export`)."""
_LINK = re.compile(r"(https?|s3|gs|azure-blob)://|/data/|data:", re.IGNORECASE)
"""Start of fields that hold the address of an image or a recording instead of text."""
_ANSWER_BYTES = 250  # memory that an answer without labels takes
_CELL_BYTES = 30  # memory that a cell of the long table takes, without its characters
Model = TypeVar("Model")


def is_plain(value: object) -> bool:
    """Whether a value is text or a number."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int) and not isinstance(value, bool)


def _plain_name(value: object) -> str:
    if not is_plain(value):
        raise ValueError(f"should be text or a number, not {show_value(value)}")
    return as_name(value)


Name = Annotated[str, BeforeValidator(_plain_name)]
"""Text, or a number as text."""


class ExportedAnswer(NamedTuple):
    """The answer of an annotator to a question.

    Attributes
    ----------
    annotator : str or None
        The annotator; None if unknown.
    labels : Sequence[str] or None
        The chosen labels: an empty list if none was chosen, None if the answer is not a label.
    """

    annotator: str | None
    labels: Sequence[str] | None


class Item(NamedTuple):
    """An item of an export.

    Attributes
    ----------
    ids : Sequence[str or None]
        Ids that the tool gives it; the first that is not None is used.
    fields : Mapping[str, Any]
        The fields that annotators see; one of them is the text.
    answers : Mapping[str, Sequence[ExportedAnswer]]
        The answers to each question.
    metadata : Mapping[str, Any]
        Other fields.
    """

    ids: Sequence[str | None]
    fields: Mapping[str, object]
    answers: Mapping[str, Sequence[ExportedAnswer]]
    metadata: Mapping[str, object] = {}

    def name(self, number: int, field: str | None) -> str:
        """The value of this field; with None, the first of the item's ids that is not None."""
        values = {**self.fields, **self.metadata}
        if field is None:
            field_name = "id"
            candidates = list[object](self.ids)
        else:
            field_name = repr(field)
            candidates = [values.get(field)]
        for value in candidates:
            if is_plain(value):
                return as_name(value)
        raise InputError(
            f"item number {number} has no {field_name}; its fields are"
            f" {examples(values, 10) or '(none)'}",
            f"name the field with its id: {option('columns', {'item': 'NAME'})}",
            code="missing-value",
        )


def check_answers(source: object, annotations: int, questions: int) -> None:
    """Refuse an export if an answer for each annotation and question would take too much memory.

    ``source`` is the export as it was given: a path, or parsed JSON, which is not checked.
    """
    _check_size(source, _ANSWER_BYTES * annotations * questions)


def _check_size(source: object, needed: float) -> None:
    """Refuse a file that would take too much memory; parsed JSON is in memory already."""
    if isinstance(source, str | Path):
        check_memory(Path(source), needed)


def read_export(
    items: Sequence[Item],
    source: Any,
    *,
    question: str | None = None,
    columns: Mapping[str, str] | None = None,
    scale: ScaleLike | None = None,
    **options: Any,
) -> Annotations:
    """Annotations from the answers to a question.

    Parameters
    ----------
    items : sequence of Item
    source : str, Path or parsed JSON
        The source that the items were read from.
    question : str, optional
        The question that the labels answer; needed only if there are several questions.
    columns : mapping of str to str, optional
        The fields with the ``item`` (by default the tool's own id), the ``text`` (by default the
        only field with text), the ``context`` (a second text) and the ``group`` of the item.
    scale : Scale or str, optional
        The answer scale.
    **options
        Options of `from_long_table`.
    """
    columns = columns or {}
    for role in columns:
        if role not in ("item", "group", *TEXTS):
            raise InputError(
                f"{option('columns')}: in an export only item, text, context and group can be"
                f" named, not {role!r}",
                "leave it out",
                code="unknown-role",
            )
    names = []
    for number, item in enumerate(items, start=1):
        names.append(item.name(number, columns.get("item")))
    if "group" in columns:
        _check_group_field(items, columns["group"])
    question = _choose(question, items)
    may_be_empty = DeclaredScale(scale or NOMINAL).kind == "multi-label"
    table = _answer_table(names, items, question, columns, may_be_empty)
    rows = table.rows
    column_names: dict[str, None] = {}
    for row in rows:
        column_names |= dict.fromkeys(row)
    _check_size(source, _CELL_BYTES * len(rows) * len(column_names))
    # If any answer has several labels, all are written as lists: then a single label such as
    # calm/heated is not taken for two.
    has_lists = may_be_empty or any(len(row["label"]) > 1 for row in rows)
    for row in rows:
        if has_lists:
            row["label"] = json.dumps(row["label"])
        else:
            row["label"] = row["label"][0]
    annotations = from_long_table(
        pd.DataFrame(rows).fillna(""),
        attributes=[],
        scale=scale,
        place=lambda number: f"item {examples([rows[number]['item']])}",
        **options,
    )
    labelled = {row["item"] for row in rows}
    unlabelled = [name for name in dict.fromkeys(names) if name not in labelled]
    if unlabelled:
        total = len(labelled) + len(unlabelled)
        verb = "are"
        if len(unlabelled) == 1:
            verb = "is"
        warn(
            f"{are(len(unlabelled), total, HAVE, 'item')} no annotation and {verb} left out:"
            f" {examples(unlabelled)}"
        )
    n_empty = sum(row["label"] == "[]" for row in rows)
    _warn_of(table.n_without_label, f"without a label for {question!r} left out")
    _warn_of(n_empty, "without a choice counted as the empty set")
    _warn_of(table.n_unnamed, "without an annotator counted as one annotator each")
    return annotations


class _AnswerTable(NamedTuple):
    """The answers to a question.

    Attributes
    ----------
    rows : list of dict of str to Any
        A row per answer, by column; ``label`` is the list of chosen labels.
    n_without_label : int
        The number of answers that are left out, since they have no label.
    n_unnamed : int
        The number of answers whose annotator is unknown.
    """

    rows: list[dict[str, Any]]
    n_without_label: int
    n_unnamed: int


def _answer_table(
    names: Sequence[str],
    items: Sequence[Item],
    question: str,
    columns: Mapping[str, str],
    may_be_empty: bool,
) -> _AnswerTable:
    """The answers to the question; ``names`` are those of the items.

    ``may_be_empty`` says whether an empty list of labels is an answer: the empty set.
    """
    fields = {"text": _text_field(items, columns), "context": "context", **columns}
    rows: list[dict[str, Any]] = []
    n_without_label = 0
    n_unnamed = 0
    for name, item in zip(names, items, strict=True):
        for annotator, labels in item.answers.get(question, ()):
            if labels is None or (not labels and not may_be_empty):
                n_without_label += 1
                continue
            if not annotator:
                n_unnamed += 1
                annotator = f"unknown-{n_unnamed}"
            row: dict[str, Any] = dict(_columns(item, name, fields, columns))
            row |= {"item": name, "annotator": annotator, "label": list(dict.fromkeys(labels))}
            rows.append(row)
    return _AnswerTable(rows, n_without_label, n_unnamed)


def _warn_of(count: int, what: str) -> None:
    if count:
        warn(f"{counted(count, 'annotation')} {what}")


def _choose(name: str | None, items: Sequence[Item]) -> str:
    """The question that labels come from; it must be named if there are several."""
    counts: dict[str, int] = {}
    for item in items:
        for question, answers in item.answers.items():
            n_labelled = sum(bool(answer.labels) for answer in answers)
            if n_labelled:
                counts[question] = counts.get(question, 0) + n_labelled
    if name is not None and name in counts:
        return name
    if name is None and len(counts) == 1:
        return next(iter(counts))
    listed = ", ".join(f"{k!r} ({counted(n, 'annotation')})" for k, n in counts.items())
    hint = f"name one with {option('question', next(iter(counts), 'NAME'))}"
    if name is not None:
        raise InputError(
            f"no annotation labels a whole item as an answer to {name!r}; the questions with labels"
            f" are {listed or 'none'}",
            hint,
            code="ambiguous-question",
        )
    n_items = len({tuple(item.ids) for item in items})
    if not counts:
        raise InputError(
            f"no annotation of the {counted(n_items, 'item')} has a label",
            "check that it is the right export",
            code="ambiguous-question",
        )
    decision = Decision(
        f"the labels of the {counted(n_items, 'item')} answer {len(counts)} questions: {listed}",
        hint,
        {"question": next(iter(counts))},
        can_be_tried=False,  # other decisions follow from the question
        code="ambiguous-question",
    )
    raise OpenDecisionsError([decision])


def _columns(
    item: Item, name: str, fields: Mapping[str, str | None], named: Mapping[str, str]
) -> dict[str, str]:
    """The cells of an item by column: its texts, its group, and its other plain fields.

    ``fields`` are the fields by role, ``named`` those that the user named.
    """
    not_columns = {"item", "annotator", "label", *TEXTS, *fields.values()}
    columns = {}
    for field, value in {**item.metadata, **item.fields}.items():
        if is_plain(value) and field not in not_columns:
            columns[str(field)] = as_name(value)
    for role in TEXTS:
        text = item.fields.get(fields[role] or "")
        if isinstance(text, str):
            columns[role] = text
        elif role in named:
            raise InputError(
                f"item {examples([name])} has {show_value(text)} in the field {fields[role]!r}, not"
                " a text",
                f"its fields are {examples(item.fields, 10) or '(none)'}",
                code="wrong-content",
            )
    if "group" in named:
        group = {**item.metadata, **item.fields}.get(named["group"], "")
        if group is not None and not is_plain(group):
            raise InputError(
                f"item {examples([name])} has {show_value(group)} in the field {named['group']!r},"
                " not the name of a group",
                "name a field that holds text or a number",
                code="wrong-content",
            )
        columns[ITEM_GROUP] = ""
        if group is not None:
            columns[ITEM_GROUP] = as_name(group)
    return columns


def _check_group_field(items: Sequence[Item], field: str) -> None:
    """Refuse a field for the groups that no item has."""
    fields: dict[str, None] = {}
    for item in items:
        fields |= dict.fromkeys([*item.fields, *item.metadata])
    if field not in fields:
        raise InputError(
            f"no item has the field {field!r}, which {option('columns')} names for 'group'",
            f"the fields are {examples(fields, 20) or '(none)'}",
            code="missing-column",
        )


def _text_field(items: Sequence[Item], named: Mapping[str, str]) -> str | None:
    """The field with the text: the one called text, else the only field with text, else None."""
    reserved = {"split", "hard_label", "context", ITEM_GROUP, *named.values()}
    candidates: dict[str, None] = {}
    for item in items:
        for field, value in item.fields.items():
            is_text = isinstance(value, str) and value != "" and not _LINK.match(value)
            if is_text and field not in reserved:
                candidates[str(field)] = None
    if "text" in candidates:
        return "text"
    if len(candidates) == 1:
        return next(iter(candidates))
    if candidates and "text" not in named:
        warn(
            f"the items have several fields of text ({examples(candidates, 6)}), so none was"
            f" taken; choose one with {option('columns', {'text': next(iter(candidates))})}"
        )
    return None


def load(source: object) -> Any:
    """The records of a JSON, JSONL or Parquet file; parsed JSON is returned unchanged."""
    if not isinstance(source, str | Path):
        return source
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return read_records(path, _columns_without_times)
    if suffix not in (".jsonl", ".ndjson"):
        return read_json(path, math.inf)
    return [record for _, record in read_json_lines(check_file(path))]


def _columns_without_times(schema: pa.Schema) -> list[str]:
    """The columns other than times, which are not used; some times lack a Python equivalent."""
    return [part.name for part in schema if not pa.types.is_temporal(part.type)]


def as_records(
    source: object, content: object, model: type[Model], title: str, hint: str
) -> list[Model]:
    """The records of an export as models; a single record counts as a list of one.

    ``title`` and ``hint`` are those of `to_model`.
    """
    path = "this"
    if isinstance(source, str | Path):
        path = str(source)
    records = content
    if isinstance(content, dict):
        records = [content]
    return to_model(records, list[model], path, title=title, hint=hint)  # type: ignore[valid-type]
