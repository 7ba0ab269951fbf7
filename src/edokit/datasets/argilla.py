"""Argilla record exports: version 2 (nested or flat), version 1, and their Hugging Face tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edokit._errors import InputError, examples
from edokit.annotations import Annotations, Duplicates
from edokit.datasets.exports import (
    OPTIONS,
    Collected,
    check_policies,
    choose,
    list_at,
    load,
    object_at,
    plain,
    shown,
    with_fields,
)
from edokit.datasets.read import Source

RESPONSES = ".responses"
"""How a flat export calls the responses to a question: ``<question>.responses``."""
_SUGGESTION = "-suggestion"
_UNFINISHED = ("draft", "discarded")
_IDS = ("external_id", "id", "_server_id")
_NO_FIELDS = {*_IDS, "status", "inserted_at", "updated_at", "metadata", "vectors", "fields"}
_NO_FIELDS |= {"responses", "suggestions"}


def is_argilla(data: Any) -> bool:
    """Whether parsed JSON (or a list of one row with a table's columns) looks like Argilla's."""
    if isinstance(data, Mapping) and not _is_record(data):
        items = data.get("items")
        data = items if isinstance(items, list | tuple) else next(iter(data.values()), None)
    first = data[0] if isinstance(data, list | tuple) and data else data
    return isinstance(first, Mapping) and _is_record(first)


def read_argilla(
    source: Any,
    *,
    question: str | None = None,
    multi_choice: str = "error",
    text: str | None = None,
    item: str | None = None,
    unlabelled: str = "skip",
    anonymous: str = "error",
    classes: Sequence[object] | None = None,
    duplicates: Duplicates = "error",
    split: str | None = None,
) -> Annotations:
    """Annotations from exported Argilla records: a file (JSON, JSONL, Parquet), or parsed JSON.

    ``question`` may be left out when there is one that takes a label, labels or a rating;
    ``text`` names the field with the text, ``item`` a field or metadata with the id (else the
    record's own id). Submitted responses count; drafts, discarded ones and suggestions do not.
    ``multi_choice``, ``unlabelled`` and ``anonymous`` are those of ``read_label_studio``.
    """
    check_policies(multi_choice=multi_choice, unlabelled=unlabelled, anonymous=anonymous)
    data = load(source)
    if not is_argilla(data):
        raise InputError(
            f"this is {shown(data) if data else 'empty'}, not an Argilla export: a list of records"
            " with fields and responses",
            "export with dataset.records.to_list(flatten=True) or to_json(path)",
        )
    read = [_read(raw, f"record number {k}", item) for k, raw in enumerate(_records(data), 1)]
    question = _choose_question(read, question)
    collected = Collected("record", "response", question, anonymous)
    open_status = 0
    for record in read:
        collected.about.append((record.item, record.fields, record.metadata))
        for response in record.responses:
            if response.question == question:
                labels = _labels_of(response.value, record.where)
                collected.add(record.item, _user(response.user, record.where), labels)
                open_status += bool(labels) and response.status is None
    if open_status:
        collected.notes.append(
            f"{open_status} responses do not say whether they were submitted and are counted:"
            " Argilla keeps drafts and discarded responses apart only in flat exports, such as"
            " dataset.records.to_list(flatten=True)"
        )
    return collected.annotations(
        text=text,
        multi_choice=multi_choice,
        unlabelled=unlabelled,
        classes=classes,
        duplicates=duplicates,
        split=split,
    )


@dataclass(frozen=True)
class _Response:
    question: str
    user: Any
    value: Any
    status: Any


@dataclass(frozen=True)
class _Record:
    item: str
    where: str
    fields: Mapping[str, Any]
    metadata: Mapping[str, Any]
    responses: Sequence[_Response]


def _records(data: Any) -> Sequence[Any]:
    """The records of any of Argilla's exports."""
    if _is_columns(data):
        return _rows(data)
    if isinstance(data, Mapping) and not _is_record(data):
        items = data.get("items")  # what the server returns
        if isinstance(items, list | tuple):
            return items
        # Records by id; an id that the record itself doesn't hold is added.
        return [
            {"id": key, **value} if isinstance(value, Mapping) else value
            for key, value in data.items()
        ]
    return [data] if isinstance(data, Mapping) else data


def _is_columns(data: Any) -> bool:
    return (
        isinstance(data, Mapping)
        and _is_record(data)
        and all(isinstance(values, list | tuple) for values in data.values())
    )


def _is_record(record: Mapping[str, Any]) -> bool:
    names = [name for name in record if isinstance(name, str)]
    return (
        ("fields" in names and "responses" in names)
        or any(name.endswith(RESPONSES) and name != RESPONSES for name in names)
        or ("external_id" in names and any(name + _SUGGESTION in record for name in names))
    )


def _rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InputError(
            f"the columns of the Argilla export differ in length: {examples(sorted(lengths))}",
            "export it again",
        )
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _read(raw: Any, place: str, item: str | None) -> _Record:
    record = object_at(raw, "a record", place)
    metadata = _metadata(record, place)
    fields: Mapping[str, Any]
    if "fields" in record:
        fields = object_at(record["fields"] or {}, "the fields of a record", place)
    else:
        fields = {name: value for name, value in record.items() if _is_field(name, record)}
    if item is None:
        value = next((record[name] for name in _IDS if record.get(name) is not None), None)
        if value is None:
            raise InputError(
                f"{place} has no id",
                "choose item=NAME to take it from a field or from the metadata",
                parameters=("item",),
            )
    elif item in metadata or item in fields:
        value = metadata[item] if item in metadata else fields[item]
    else:
        raise InputError(
            f"{place} has no field or metadata {item!r} with its id; it has"
            f" {examples([*fields, *metadata], 10) or 'neither'}",
            "check the spelling",
            parameters=("item",),
        )
    name = plain(value, "the id of a record", place)
    where = f"record {examples([name])}"
    own = {name: value for name, value in fields.items() if name != item}
    responses = [
        response for response in _responses(record, where) if _is_submitted(response, where)
    ]
    return _Record(name, where, own, metadata, responses)


def _metadata(record: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """The metadata of a record, wherever this export puts it."""
    given = record.get("metadata")
    if isinstance(given, str):  # Version 1 writes it into tables as JSON.
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            given = None
    nested = object_at(given or {}, "the metadata of a record", place)
    flat = {} if "fields" in record else record
    prefixed = {
        name.removeprefix("metadata."): value[0]
        if isinstance(value, list | tuple) and len(value) == 1
        else value
        for name, value in flat.items()
        if isinstance(name, str) and name.startswith("metadata.")
    }
    return {**flat, **prefixed, **nested}


def _is_field(name: object, record: Mapping[str, Any]) -> bool:
    """Whether a column of a flat export may be a field."""
    if not isinstance(name, str) or name in _NO_FIELDS or name + _SUGGESTION in record:
        return False
    if name.startswith(("metadata.", "vector.")) or RESPONSES in name or ".suggestion" in name:
        return False
    return not name.removesuffix("-metadata").endswith(_SUGGESTION)


def _responses(record: Mapping[str, Any], where: str) -> Iterator[_Response]:
    given = record.get("responses")
    if isinstance(given, Mapping):
        for question, responses in given.items():
            yield from _to_question(question, responses, where)
    else:
        for raw in list_at(given, "the responses of a record", where):
            yield from _of_user(object_at(raw, "a response", where), where)
    for name in record:
        if not isinstance(name, str):
            continue
        if name.endswith(RESPONSES) and name != RESPONSES:
            yield from _columns(record, name, where)
        elif name + _SUGGESTION in record:
            yield from _to_question(name, record[name], where)


def _to_question(question: object, responses: Any, where: str) -> Iterator[_Response]:
    """Responses to one question: ``[{"user_id": …, "value": …}]``."""
    for raw in list_at(responses, f"the responses to {shown(question)}", where):
        response = object_at(raw, "a response", where)
        name = plain(question, "the question of a response", where)
        yield _Response(
            name, response.get("user_id"), response.get("value"), response.get("status")
        )


def _of_user(raw: Mapping[str, Any], where: str) -> Iterator[_Response]:
    """One user's responses: ``{"user_id": …, "values": {question: {"value": …}}}``."""
    user, status = raw.get("user_id"), raw.get("status")
    values = raw.get("values") or {}
    for part in values if isinstance(values, list | tuple) else [values]:
        for question, value in object_at(part, "the values of a response", where).items():
            held = object_at(value, f"the response to {shown(question)}", where)
            name = plain(question, "the question of a response", where)
            yield _Response(name, user, held.get("value"), status)


def _columns(record: Mapping[str, Any], name: str, where: str) -> Iterator[_Response]:
    """Responses side by side in ``q.responses``, ``q.responses.users``, ``q.responses.status``."""
    values = list_at(record[name], f"the column {name!r}", where)
    sides = []
    for side in (f"{name}.users", f"{name}.status"):
        given = record.get(side)
        column = [None] * len(values) if given is None else list_at(given, f"{side!r}", where)
        if len(column) != len(values):
            raise InputError(
                f"{where} has {len(column)} entries in {side!r} for {len(values)} responses",
                "export it again",
            )
        sides.append(column)
    for value, user, status in zip(values, *sides, strict=True):
        yield _Response(name.removesuffix(RESPONSES), user, value, status)


def _is_submitted(response: _Response, where: str) -> bool:
    if response.status in (None, "submitted"):
        return True
    if response.status in _UNFINISHED:
        return False
    raise InputError(
        f"{where} has a response of status {shown(response.status)}, which is not 'submitted',"
        " 'draft' or 'discarded'",
        "correct the export",
    )


def _user(user: Any, where: str) -> str | None:
    # A user who is not known is written out as None.
    return None if user in (None, "", "None") else plain(user, "the user of a response", where)


def _is_label(value: Any) -> bool:
    """Whether a value may be a label, several labels or a rating, and no span or ranking."""
    parts = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(part, str | int | float) for part in parts)


def _choose_question(records: Sequence[_Record], wanted: str | None) -> str:
    counts: Counter[str] = Counter()
    others: set[str] = set()
    for record in records:
        for response in record.responses:
            counts[response.question] += response.value is not None
            if response.value is not None and not _is_label(response.value):
                others.add(response.question)
    labels = [name for name in counts if name not in others]
    return choose(
        "question",
        wanted,
        counts,
        found=[name for name in labels if counts[name]],
        labels=labels,
        unit="record",
        total=len(records),
        otherwise="takes spans or ranks",
    )


def _labels_of(value: Any, where: str) -> list[str]:
    if value is None:
        return []
    parts = value if isinstance(value, list | tuple) else [value]
    return [plain(part, "a label", where) for part in parts]


SOURCE = Source(
    "argilla",
    "an Argilla export",
    with_fields(read_argilla),
    lambda candidate: is_argilla(candidate.content),
    options=("question", *OPTIONS),
)
