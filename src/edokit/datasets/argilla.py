"""Argilla record exports: version 2 (nested or flat), version 1, and their Hugging Face tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from edokit._errors import InputError, counted, examples, option
from edokit._io import parse_json
from edokit._io.documents import show_value
from edokit.annotations import Annotations
from edokit.datasets.exports import OPTIONS, Collected, Record, list_at, load, object_at, plain
from edokit.datasets.read import Source

RESPONSES = ".responses"
"""How a flat export calls the responses to a question: ``<question>.responses``."""
_SUGGESTION = "-suggestion"
_IDS = ("external_id", "id", "_server_id")
_NO_FIELDS = {*_IDS, "status", "inserted_at", "updated_at", "metadata", "vectors", "fields"}
_NO_FIELDS |= {"responses", "suggestions"}

_Response = tuple[Record, str, Any, Any, Any]
"""Record, question, user, value and status."""


def is_argilla(data: Any) -> bool:
    """Whether parsed JSON (or a list of one row with a table's columns) looks like Argilla's."""
    if isinstance(data, Mapping) and not _is_record(data):
        items = data.get("items")
        data = items if isinstance(items, list | tuple) else next(iter(data.values()), None)
    record = data[0] if isinstance(data, list | tuple) and data else data
    return isinstance(record, Mapping) and _is_record(record)


def read_argilla(source: Any, *, question: str | None = None, **options: Any) -> Annotations:
    """Annotations from exported Argilla records: a file (JSON, JSONL, Parquet), or parsed JSON.

    ``question`` may be left out when there is one that takes a label, labels or a rating. Submitted
    responses count; drafts, discarded ones and suggestions do not. Further options are those of
    `Collected`; the ``item`` may also be in the metadata.
    """
    collected = Collected("record", "response", "question", **options)
    data = load(
        source,
        is_argilla,
        "an Argilla export: a list of records with fields and responses",
        "export with dataset.records.to_list(flatten=True) or to_json(path)",
    )
    responses: list[_Response] = []
    for number, record in enumerate(_records(data), 1):
        responses += _read(collected, record, f"record number {number}")
    counts: Counter[str] = Counter()
    other_questions: set[str] = set()
    for _, name, _, value, _ in responses:
        counts[name] += value is not None
        if not all(isinstance(part, str | int | float) for part in _parts(value)):
            other_questions.add(name)
    labels = [name for name in counts if name not in other_questions]
    question = collected.choose(question, {q: counts[q] for q in labels if counts[q]}, labels)
    open_status = 0
    for record, name, user, value, status in responses:
        if name == question:
            title = collected.where(record.item)
            labels = [plain(part, "a label", title) for part in _parts(value)]
            # A user who is not known is written out as None.
            unknown = user in (None, "", "None")
            annotator = None if unknown else plain(user, "the user of a response", title)
            collected.add(record, annotator, None if value is None else labels)
            open_status += bool(labels) and status is None
    if open_status:
        collected.notes.append(
            f"{counted(open_status, 'response')} may be drafts, and counted as if submitted:"
            " Argilla keeps drafts and discarded responses apart only in flat exports, such as"
            " dataset.records.to_list(flatten=True)"
        )
    return collected.annotations()


def _records(data: Any) -> Sequence[Any]:
    """The records of any of Argilla's exports."""
    if not isinstance(data, Mapping):
        return data  # type: ignore[no-any-return]
    if not _is_record(data):
        items = data.get("items")  # what the server returns
        if isinstance(items, list | tuple):
            return items
        # Records by id; an id that the record itself doesn't hold is added.
        return [
            {"id": key, **value} if isinstance(value, Mapping) else value
            for key, value in data.items()
        ]
    if not all(isinstance(values, list | tuple) for values in data.values()):
        return [data]
    # The columns of a table.
    lengths = {len(values) for values in data.values()}
    if len(lengths) > 1:
        raise InputError(
            f"the columns of the Argilla export differ in length: {examples(sorted(lengths))}",
            "export it again",
        )
    return [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]


def _is_record(record: Mapping[str, Any]) -> bool:
    names = [name for name in record if isinstance(name, str)]
    return (
        ("fields" in names and "responses" in names)
        or any(map(_is_column, names))
        or ("external_id" in names and any(name + _SUGGESTION in record for name in names))
    )


def _is_column(name: str) -> bool:
    return name.endswith(RESPONSES) and name != RESPONSES


def _read(collected: Collected, raw: Any, place: str) -> Iterator[_Response]:
    """The responses of a record that count; the record itself is added to those collected."""
    record = object_at(raw, "a record", place)
    metadata, item = _metadata(record, place), collected.item
    fields: Mapping[str, Any]
    if "fields" in record:
        fields = object_at(record["fields"] or {}, "the fields of a record", place)
    else:
        fields = {name: value for name, value in record.items() if _is_field(name, record)}
    values = record if item is None else {**fields, **metadata}
    name = plain(_record_id(values, item, place), "the id of a record", place)
    item_fields = {field: value for field, value in fields.items() if field != item}
    # A flat export has everything in one place; its metadata are those with this prefix.
    roles = ("split", "hard_label")
    item_metadata = {key: metadata[key] for key in metadata if key not in record or key in roles}
    item_record = Record(name, item_fields, item_metadata)
    collected.records.append(item_record)
    title = collected.where(name)
    for question, user, value, status in _responses(record, title):
        question = plain(question, "the question of a response", title)
        if status in (None, "submitted"):
            yield item_record, question, user, value, status
        elif status not in ("draft", "discarded"):
            raise InputError(
                f"{title} has a response of status {show_value(status)}, which is not 'submitted',"
                " 'draft' or 'discarded'",
                "correct the export",
            )


def _record_id(record: Mapping[str, Any], item: str | None, place: str) -> Any:
    """The id of a record: Argilla's own, or the field or metadata of this name."""
    names = _IDS if item is None else (item,)
    for name in names:
        if record.get(name) is not None:
            return record[name]
    raise InputError(
        f"{place} has no {' or '.join(map(repr, names))} with its id; it has"
        f" {examples(record, 10)}",
        f"name a field or metadata with {option('columns', {'item': 'NAME'})}",
    )


def _metadata(record: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """The metadata of a record, wherever this export puts it."""
    content = record.get("metadata")
    if isinstance(content, str):  # Version 1 writes it into tables as JSON.
        content = parse_json(content, f"the metadata of {place}")
    nested = object_at(content or {}, "the metadata of a record", place)
    if "fields" in record:
        return nested
    flat = dict(record)
    for name, value in record.items():
        if isinstance(name, str) and name.startswith("metadata."):
            is_single = isinstance(value, list | tuple) and len(value) == 1
            flat[name.removeprefix("metadata.")] = value[0] if is_single else value
    return {**flat, **nested}


def _is_field(name: object, record: Mapping[str, Any]) -> bool:
    """Whether a column of a flat export may be a field."""
    if not isinstance(name, str) or name in _NO_FIELDS or name + _SUGGESTION in record:
        return False
    if name.startswith(("metadata.", "vector.")) or RESPONSES in name or ".suggestion" in name:
        return False
    return not name.removesuffix("-metadata").endswith(_SUGGESTION)


def _responses(record: Mapping[str, Any], where: str) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Question, user, value and status of each response, wherever this export puts them."""
    content = record.get("responses")
    by_question: list[tuple[Any, Any]] = []
    if isinstance(content, Mapping):
        by_question += content.items()
    else:
        for raw in list_at(content, "the responses of a record", where):
            response = object_at(raw, "a response", where)
            user, status = response.get("user_id"), response.get("status")
            values = response.get("values") or {}
            for part in values if isinstance(values, list | tuple) else [values]:
                for question, value in object_at(part, "the values of a response", where).items():
                    response_value = object_at(
                        value, f"the response to {show_value(question)}", where
                    )
                    yield question, user, response_value.get("value"), status
    names = [name for name in record if isinstance(name, str)]
    by_question += [(name, record[name]) for name in names if name + _SUGGESTION in record]
    for question, responses in by_question:
        for raw in list_at(responses, f"the responses to {show_value(question)}", where):
            response = object_at(raw, "a response", where)
            yield question, response.get("user_id"), response.get("value"), response.get("status")
    for name in filter(_is_column, names):
        yield from _column_responses(record, name, where)


def _column_responses(
    record: Mapping[str, Any], name: str, where: str
) -> Iterator[tuple[Any, Any, Any, Any]]:
    """The responses side by side in q.responses, q.responses.users and q.responses.status."""
    names = (name, f"{name}.users", f"{name}.status")
    columns = [list_at(record.get(side), f"the column {side!r}", where) for side in names]
    for side, column in zip(names, columns, strict=True):
        if record.get(side) is not None and len(column) != len(columns[0]):
            raise InputError(
                f"{where} has {counted(len(column), 'entry')} in {side!r} for"
                f" {counted(len(columns[0]), 'response')}",
                "export it again",
            )
    for value, user, status in zip_longest(*columns):
        yield name.removesuffix(RESPONSES), user, value, status


def _parts(value: Any) -> Sequence[Any]:
    """The labels in a value: none, one or several."""
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else [value]


SOURCE = Source(
    "argilla",
    "an Argilla export",
    read_argilla,
    lambda path, content: is_argilla(content),
    options=("question", *OPTIONS),
)
