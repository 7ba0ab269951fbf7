"""Exports of Argilla's records, nested or flat, also as Hugging Face tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, JsonValue

from edokit._errors import InputError, counted, warn
from edokit._io.documents import Document
from edokit._names import as_name
from edokit.annotations.core import Annotations
from edokit.datasets.exports import OPTIONS, Export, Name, Response, as_records, is_plain, load
from edokit.datasets.read import Source

RESPONSES = ".responses"
"""How a flat export calls the responses to a question: ``<question>.responses``."""
_INTERNAL = re.compile(
    r"^(status|inserted_at|updated_at|vectors|suggestions)$|^vector\.|\.responses|\.suggestion"
)
"""Columns of a flat export that are neither fields nor metadata."""
_TITLE = "an Argilla export"
_HINT = "export with dataset.records.to_list(flatten=True) or to_json(path)"


class Answer(Document):
    """A response to a question."""

    user_id: Name | None = None
    status: Literal["submitted", "draft", "discarded"] | None = None
    value: JsonValue = None

    def labels(self) -> list[str] | None:
        """The labels that it gives; None where it gives something else, or nothing."""
        parts = self.value if isinstance(self.value, list) else [self.value]
        return [as_name(part) for part in parts] if all(map(is_plain, parts)) else None


class Record(Document):
    """An item."""

    id: Name | None = None
    server_id: Name | None = Field(None, alias="_server_id")
    fields: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    responses: dict[str, list[Answer] | None] | None = None


def is_argilla(data: Any) -> bool:
    """Whether parsed JSON (or a list of one row with a table's columns) looks like Argilla's."""
    record = data[0] if isinstance(data, list) and data else data
    if not isinstance(record, Mapping):
        return False
    names = [name for name in record if isinstance(name, str)]
    is_nested = "fields" in names and "responses" in names
    return is_nested or any(name.endswith(RESPONSES) for name in names)


def read_argilla(source: Any, *, question: str | None = None, **options: Any) -> Annotations:
    """Annotations from exported Argilla records: a file (JSON, JSONL, Parquet), or parsed JSON.

    ``question`` may be left out when there is one that takes a label, labels or a rating. Submitted
    responses count; drafts, discarded ones and suggestions do not. Further options are those of
    `Export`; the ``item`` may also be in the metadata.
    """
    export = Export("record", "response", "question", **options)
    content = load(source)
    if isinstance(content, dict) and all(isinstance(part, list) for part in content.values()):
        content = _rows(content, "the export")
    content = content if isinstance(content, list) else [content]
    records = as_records(source, [*map(_nested, content)], Record, _TITLE, _HINT)
    items: list[str] = []
    responses: list[Response] = []
    may_be_draft = 0
    for number, record in enumerate(records, 1):
        metadata, fields = record.metadata or {}, record.fields or {}
        ids = {"id": record.id, "_server_id": record.server_id}
        items.append(export.item_name({**fields, **metadata}, ids, number))
        for name, answers in (record.responses or {}).items():
            for answer in answers or ():
                if answer.status in (None, "submitted"):
                    # A user who is not known is written out as None.
                    user = None if answer.user_id in ("", "None") else answer.user_id
                    labels = {name: answer.labels()}
                    responses.append(Response(items[-1], fields, user, labels, metadata))
                    may_be_draft += answer.status is None
    annotations = export.annotations(responses, items, question)
    if may_be_draft:
        warn(
            f"{counted(may_be_draft, 'response')} may be drafts, and counted as if submitted:"
            " Argilla keeps drafts and discarded responses apart only in flat exports, such as"
            " dataset.records.to_list(flatten=True)"
        )
    return annotations


def _rows(columns: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    """The rows of a table that is given by its columns."""
    try:
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, values, strict=True)) for values in rows]
    except (TypeError, ValueError):
        raise InputError(f"columns of {place} differ in length", "export it again") from None


def _nested(record: Any) -> Any:
    """A record of a flat export, in which fields, metadata and responses are columns, as a nested
    one."""
    if not isinstance(record, dict) or "fields" in record:
        return record
    nested: dict[str, Any] = {"fields": {}, "metadata": {}, "responses": {}}
    for name, value in record.items():
        question = name.removesuffix(RESPONSES)
        if name in ("id", "_server_id"):
            nested[name] = value
        elif name.startswith("metadata."):
            is_single = isinstance(value, list) and len(value) == 1
            nested["metadata"][name.removeprefix("metadata.")] = value[0] if is_single else value
        elif question != name:
            sides = {"value": "", "user_id": ".users", "status": ".status"}
            columns = {side: record.get(name + end) for side, end in sides.items()}
            columns = {side: values for side, values in columns.items() if values is not None}
            nested["responses"][question] = _rows(columns, f"record {record.get('id')!r}")
        elif not _INTERNAL.search(name):
            nested["fields"][name] = value
    return nested


SOURCE = Source(
    "argilla",
    "an Argilla export",
    read_argilla,
    lambda path, content: is_argilla(content),
    options=("question", *OPTIONS),
)
