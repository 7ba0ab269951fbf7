"""Exports of Argilla's records, nested or flat, also as Hugging Face tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from edokit._errors import InputError, counted, warn
from edokit._io.documents import Document, to_model
from edokit._names import as_name
from edokit.annotations import Annotations
from edokit.datasets.exports import OPTIONS, Export, Name, Response, as_records, is_plain, load
from edokit.datasets.read import Source

RESPONSES = ".responses"
"""How a flat export calls the responses to a question: ``<question>.responses``."""
_NO_FIELDS = {"status", "inserted_at", "updated_at", "vectors", "suggestions"}
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
    """An item; in flat exports, fields, metadata and responses are columns of it."""

    model_config = ConfigDict(extra="allow")
    id: Name | None = None
    server_id: Name | None = Field(None, alias="_server_id")
    fields: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    responses: dict[str, list[Answer] | None] | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a flat export."""
        return self.model_extra or {}


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
    items: list[str] = []
    responses: list[Response] = []
    may_be_draft = 0
    for number, record in enumerate(as_records(source, content, Record, _TITLE, _HINT), 1):
        metadata, fields = _metadata(record), _fields(record)
        ids = {"id": record.id, "_server_id": record.server_id}
        items.append(export.item_name({**fields, **metadata}, ids, number))
        for name, answer in _answers(record, export.place(items[-1])):
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


def _metadata(record: Record) -> dict[str, Any]:
    """The metadata of a record, which are columns of a flat export."""
    metadata = dict(record.metadata or {})
    for name, value in record.columns.items():
        if name.startswith("metadata."):
            is_single = isinstance(value, list) and len(value) == 1
            metadata[name.removeprefix("metadata.")] = value[0] if is_single else value
    return metadata


def _fields(record: Record) -> dict[str, Any]:
    """The fields of a record: in a flat export, the columns that are nothing else."""
    if record.fields is not None:
        return record.fields
    return {
        name: value
        for name, value in record.columns.items()
        if name not in _NO_FIELDS
        and not name.startswith(("metadata.", "vector."))
        and RESPONSES not in name
        and ".suggestion" not in name
    }


def _answers(record: Record, place: str) -> Iterator[tuple[str, Answer]]:
    """Question and answer of each response, which are columns of a flat export."""
    for question, answers in (record.responses or {}).items():
        yield from ((question, answer) for answer in answers or ())
    for name, values in record.columns.items():
        if name.endswith(RESPONSES):
            users, status = (record.columns.get(f"{name}.{side}") for side in ("users", "status"))
            columns = {"value": values or [], "user_id": users, "status": status}
            columns = {key: column for key, column in columns.items() if column is not None}
            rows, title = _rows(columns, place), f"{place}, {name}"
            for answer in to_model(rows, list[Answer], title, title=_TITLE, hint=_HINT):
                yield name.removesuffix(RESPONSES), answer


SOURCE = Source(
    "argilla",
    "an Argilla export",
    read_argilla,
    lambda path, content: is_argilla(content),
    options=("question", *OPTIONS),
)
