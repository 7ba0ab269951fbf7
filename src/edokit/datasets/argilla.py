"""Flat exports of Argilla's records, also as Hugging Face tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from edokit._io.documents import Document
from edokit._names import as_name
from edokit.annotations.core import Annotations
from edokit.datasets.exports import (
    OPTIONS,
    ExportedAnswer,
    Item,
    Name,
    as_records,
    is_plain,
    load,
    read_export,
)
from edokit.datasets.read import Source

RESPONSES = ".responses"
"""How a flat export calls the responses to a question: ``<question>.responses``."""
_INTERNAL = re.compile(
    r"^(status|inserted_at|updated_at|vectors|suggestions)$|^vector\.|\.responses|\.suggestion"
)
"""Columns that are neither fields nor metadata."""


class Responses(Document):
    """The columns of a question, with an entry per response."""

    values: list[JsonValue]
    users: list[Name | None]
    status: list[Literal["submitted", "draft", "discarded"]]

    @model_validator(mode="after")
    def _check_lengths(self) -> Responses:
        if not len(self.values) == len(self.users) == len(self.status):
            raise ValueError("has columns that differ in length")
        return self

    def answers(self) -> list[ExportedAnswer]:
        """Those that were submitted."""
        responses = zip(self.values, self.users, self.status, strict=True)
        return [
            # Argilla exports an unknown user as the text None.
            ExportedAnswer(None if user == "None" else user, _labels(value))
            for value, user, status in responses
            if status == "submitted"
        ]


class Record(Document):
    """An item."""

    id: Name | None = None
    server_id: Name | None = Field(None, alias="_server_id")
    fields: dict[str, object]
    metadata: dict[str, object]
    responses: dict[str, Responses]


def is_argilla(data: object) -> bool:
    """Whether parsed JSON (or a list of one row with a table's columns) looks like Argilla's."""
    record = data[0] if isinstance(data, list) and data else data
    return isinstance(record, Mapping) and any(str(name).endswith("responses") for name in record)


def read_argilla(source: Any, **options: Any) -> Annotations:
    """Annotations from exported Argilla records: a file (JSON, JSONL, Parquet), or parsed JSON.

    Questions take a label, labels or a rating. Submitted responses count; drafts, discarded ones
    and suggestions do not: only flat exports tell them apart. Options are those of `read_export`.
    """
    content = load(source)
    records = [*map(_nested, content if isinstance(content, list) else [content])]
    title, hint = "an Argilla export", "export with dataset.records.to_list(flatten=True)"
    items = []
    for record in as_records(source, records, Record, title, hint):
        answers = {question: columns.answers() for question, columns in record.responses.items()}
        items.append(Item([record.id, record.server_id], record.fields, answers, record.metadata))
    return read_export(items, source, **options)


def _nested(record: Any) -> Any:
    """A record with its fields, metadata and responses, which are columns, apart."""
    if not isinstance(record, dict) or "fields" in record:
        return record  # refused: a nested export does not tell drafts from answers
    nested: dict[str, Any] = {"fields": {}, "metadata": {}, "responses": {}}
    for name, value in record.items():
        question = name.removesuffix(RESPONSES)
        if name in ("id", "_server_id"):
            nested[name] = value
        elif name.startswith("metadata."):
            is_single = isinstance(value, list) and len(value) == 1
            nested["metadata"][name.removeprefix("metadata.")] = value[0] if is_single else value
        elif question != name:
            endings = {"values": "", "users": ".users", "status": ".status"}
            columns = {column: record.get(name + end) or [] for column, end in endings.items()}
            nested["responses"][question] = columns
        elif not _INTERNAL.search(name):
            nested["fields"][name] = value
    return nested


def _labels(value: JsonValue) -> list[str] | None:
    """The labels that a response gives; None where it gives something else, or nothing."""
    parts = value if isinstance(value, list) else [value]
    return [as_name(part) for part in parts] if all(map(is_plain, parts)) else None


SOURCE = Source(
    "argilla",
    "an Argilla export",
    read_argilla,
    lambda path, content: is_argilla(content),
    options=OPTIONS,
)
