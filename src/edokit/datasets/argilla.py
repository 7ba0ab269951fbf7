"""Flat exports of Argilla's records, including those as Parquet tables of Hugging Face."""

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
"""Suffix of the column with the responses to a question: ``<question>.responses``."""
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
        """The submitted responses."""
        answers = []
        for value, user, status in zip(self.values, self.users, self.status, strict=True):
            if status != "submitted":
                continue
            if user == "None":  # so Argilla exports an unknown user
                user = None
            answers.append(ExportedAnswer(user, _labels(value)))
        return answers


class Record(Document):
    """An item."""

    id: Name | None = None
    server_id: Name | None = Field(None, alias="_server_id")
    fields: dict[str, object]
    metadata: dict[str, object]
    responses: dict[str, Responses]


def is_argilla(data: object) -> bool:
    """Whether parsed JSON, or a list of one record with a table's columns, looks like Argilla's."""
    record = data
    if isinstance(data, list) and data:
        record = data[0]
    return isinstance(record, Mapping) and any(str(name).endswith("responses") for name in record)


def read_argilla(source: Any, **options: Any) -> Annotations:
    """Annotations from exported Argilla records: a file (JSON, JSONL, Parquet), or parsed JSON.

    Questions ask for a label, several labels or a rating. Only submitted responses count, not
    drafts, discarded responses and suggestions; since only flat exports distinguish them, nested
    exports are refused. Options are those of `read_export`.
    """
    content = load(source)
    if not isinstance(content, list):
        content = [content]
    title = "an Argilla export"
    hint = "export with dataset.records.to_list(flatten=True)"
    items = []
    for record in as_records(source, list(map(_nested, content)), Record, title, hint):
        answers = {question: columns.answers() for question, columns in record.responses.items()}
        items.append(Item([record.id, record.server_id], record.fields, answers, record.metadata))
    return read_export(items, source, **options)


def _nested(record: Any) -> Any:
    """A flat record with its fields, metadata and responses in objects of their own."""
    if not isinstance(record, dict) or "fields" in record:
        return record  # of a nested export, which the model `Record` refuses
    nested: dict[str, Any] = {"fields": {}, "metadata": {}, "responses": {}}
    for name, value in record.items():
        question = name.removesuffix(RESPONSES)
        if name in ("id", "_server_id"):
            nested[name] = value
        elif name.startswith("metadata."):
            if isinstance(value, list) and len(value) == 1:
                value = value[0]
            nested["metadata"][name.removeprefix("metadata.")] = value
        elif question != name:
            nested["responses"][question] = {
                "values": value or [],
                "users": record.get(f"{name}.users") or [],
                "status": record.get(f"{name}.status") or [],
            }
        elif not _INTERNAL.search(name):
            nested["fields"][name] = value
    return nested


def _labels(value: JsonValue) -> list[str] | None:
    """The labels of a response; None if it is not a label or a list of labels."""
    parts = [value]
    if isinstance(value, list):
        parts = value
    if not all(map(is_plain, parts)):
        return None
    return [as_name(part) for part in parts]


SOURCE = Source(
    "argilla",
    "an Argilla export",
    read_argilla,
    lambda path, content: is_argilla(content),
    options=OPTIONS,
)
