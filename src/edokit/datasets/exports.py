"""Exports of annotation tools: what people answered, brought into a long table."""

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
"""What every export takes; see `read_export`."""
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
    """What one annotator, if known, answered to a question.

    Attributes
    ----------
    labels : Sequence[str] or None
        An empty list if none was chosen, None if the answer is not a label.
    """

    annotator: str | None
    labels: Sequence[str] | None


class Item(NamedTuple):
    """An item of an export.

    Attributes
    ----------
    ids : Sequence[str or None]
        What the tool calls it; the first that is not None counts.
    fields : Mapping[str, Any]
        What annotators see, one of them the text.
    answers : Mapping[str, Sequence[ExportedAnswer]]
        The answers to each question.
    metadata : Mapping[str, Any]
        Further values.
    """

    ids: Sequence[str | None]
    fields: Mapping[str, object]
    answers: Mapping[str, Sequence[ExportedAnswer]]
    metadata: Mapping[str, object] = {}

    def name(self, number: int, field: str | None) -> str:
        """The item's name: in this field, else the first id that there is."""
        values = {**self.fields, **self.metadata}
        for value in self.ids if field is None else [values.get(field)]:
            if is_plain(value):
                return as_name(value)
        raise InputError(
            f"item number {number} has no {'id' if field is None else repr(field)}; its fields are"
            f" {examples(values, 10) or '(none)'}",
            f"name the field with its id: {option('columns', {'item': 'NAME'})}",
            code="missing-value",
        )


def check_answers(source: object, annotations: int, questions: int) -> None:
    """Refuse an export whose answers, one for each annotation and question, take too much memory.

    ``source`` is the path of the export; memory that parsed JSON takes is taken already.
    """
    _check_size(source, _ANSWER_BYTES * annotations * questions)


def _check_size(source: object, needed: float) -> None:
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
        Where the items were read from.
    question : str, optional
        The question that labels answer; may be left out where there is one.
    columns : mapping of str to str, optional
        The fields with the ``item`` (by default the tool's own id), the ``text`` (by default the
        only one), the ``context``, the other text of a pair, and the ``group`` of the item.
    scale : Scale or str, optional
        The answer scale.
    **options
        How labels are read, as by `from_long_table`.
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
    names = [item.name(number, columns.get("item")) for number, item in enumerate(items, 1)]
    if "group" in columns:
        _check_group_field(items, columns["group"])
    question = _choose(question, items)
    is_set = DeclaredScale(scale or NOMINAL).kind == "multi-label"
    rows, without_label, unnamed = _answered(names, items, question, columns, is_set)
    column_names: dict[str, None] = {}
    for row in rows:
        column_names |= dict.fromkeys(row)
    _check_size(source, _CELL_BYTES * len(rows) * len(column_names))
    # Where some have several labels all are lists, as in a table: a choice called calm/heated is
    # one label.
    is_list = is_set or any(len(row["label"]) > 1 for row in rows)
    for row in rows:
        row["label"] = json.dumps(row["label"]) if is_list else row["label"][0]
    annotations = from_long_table(
        pd.DataFrame(rows).fillna(""),
        attributes=[],
        scale=scale,
        place=lambda number: f"item {examples([rows[number]['item']])}",
        **options,
    )
    labelled = {row["item"] for row in rows}
    if unlabelled := [name for name in dict.fromkeys(names) if name not in labelled]:
        total = len(labelled) + len(unlabelled)
        note = f"no annotation and are left out: {examples(unlabelled)}"
        warn(f"{are(len(unlabelled), total, HAVE, 'item')} {note}")
    empty = sum(row["label"] == "[]" for row in rows)
    _note(without_label, f"without a label for {question!r} left out")
    _note(empty, "without a choice counted as the empty set")
    _note(unnamed, "without an annotator counted as one annotator each")
    return annotations


def _answered(
    names: Sequence[str],
    items: Sequence[Item],
    question: str,
    columns: Mapping[str, str],
    is_set: bool,
) -> tuple[list[dict[str, Any]], int, int]:
    """A row per answer to the question, and how many answers lack a label or an annotator."""
    fields = {"text": _text_field(items, columns), "context": "context", **columns}
    rows: list[dict[str, Any]] = []
    without_label = unnamed = 0
    for name, item in zip(names, items, strict=True):
        for annotator, labels in item.answers.get(question, ()):
            # An empty list is an empty set of labels; None is a missing answer.
            if labels is None or not (labels or is_set):
                without_label += 1
                continue
            unnamed += not annotator
            annotation = {
                "item": name,
                "annotator": annotator or f"unknown-{unnamed}",
                "label": [*dict.fromkeys(labels)],
            }
            rows.append(_columns(item, name, fields, columns) | annotation)
    return rows, without_label, unnamed


def _note(number: int, what: str) -> None:
    if number:
        warn(f"{counted(number, 'annotation')} {what}")


def _choose(name: str | None, items: Sequence[Item]) -> str:
    """The question that labels come from; it must be named if there are several."""
    counts: dict[str, int] = {}
    for item in items:
        for question, answers in item.answers.items():
            if labelled := sum(bool(answer.labels) for answer in answers):
                counts[question] = counts.get(question, 0) + labelled
    if name in counts or (name is None and len(counts) == 1):
        return name or next(iter(counts))
    listed = ", ".join(f"{k!r} ({counted(n, 'annotation')})" for k, n in counts.items())
    hint = f"name one with {option('question', next(iter(counts), 'NAME'))}"
    if name is not None:
        raise InputError(
            f"no annotation labels a whole item as an answer to {name!r}; those with labels are"
            f" {listed or 'none'}",
            hint,
            code="ambiguous-question",
        )
    names = {tuple(item.ids) for item in items}
    problem = f"{counted(len(counts), 'question')} have labels of the {counted(len(names), 'item')}"
    if not counts:
        raise InputError(f"{problem}; those with labels are none", hint, code="ambiguous-question")
    decision = Decision(
        f"{problem}; those with labels are {listed}",
        hint,
        {"question": next(iter(counts))},
        can_be_tried=False,  # other decisions follow from the question
        code="ambiguous-question",
    )
    raise OpenDecisionsError([decision])


def _columns(
    item: Item, name: str, fields: Mapping[str, str | None], named: Mapping[str, str]
) -> dict[str, str]:
    """What is known of an item, by column: texts and plain fields."""
    not_columns = {"item", "annotator", "label", *TEXTS, *fields.values()}
    columns = {
        str(field): as_name(value)
        for field, value in {**item.metadata, **item.fields}.items()
        if is_plain(value) and field not in not_columns
    }
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
        columns[ITEM_GROUP] = "" if group is None else as_name(group)
    return columns


def _check_group_field(items: Sequence[Item], field: str) -> None:
    """Refuse a field of groups that no item has."""
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
    """The field that holds the text: the only one, or the one called text."""
    reserved = {"split", "hard_label", "context", ITEM_GROUP, *named.values()}
    candidates = dict.fromkeys(
        str(field)
        for item in items
        for field, value in item.fields.items()
        if isinstance(value, str) and value and field not in reserved and not _LINK.match(value)
    )
    if "text" in candidates or len(candidates) == 1:
        return "text" if "text" in candidates else next(iter(candidates))
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
    """The records of an export as models; a single record is one of a list."""
    path = source if isinstance(source, str | Path) else "this"
    records = [content] if isinstance(content, dict) else content
    return to_model(records, list[model], path, title=title, hint=hint)  # type: ignore[valid-type]
