"""doccano's exports of text classification: a folder with a file per annotator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue

from edokit._errors import InputError
from edokit._io.documents import Document
from edokit.annotations.core import Annotations
from edokit.datasets.exports import (
    OPTIONS,
    ExportedAnswer,
    Item,
    Name,
    as_records,
    load,
    read_export,
)
from edokit.datasets.read import Source, first_record

_SUFFIXES = (".jsonl", ".json")
_TOGETHER = "all"
"""Name of the exported file, without its suffix, of a project whose members annotate together."""
_QUESTION = "label"
_NOT_FIELDS = {"id", "label", "Comments", "annotations", "annotation_approver", "meta"}


class OldAnnotation(Document):
    """A label in exports before version 1.1, which name users and labels by numbers."""

    label: Name
    user: Name | None = None


class DoccanoItem(Document):
    """An item."""

    id: Name
    label: list[Name] = Field(default_factory=list)
    annotations: list[OldAnnotation] | None = None
    fields: dict[str, JsonValue] = Field(default_factory=dict)


def read_doccano(source: str | Path, **options: Any) -> Annotations:
    """Annotations from an unpacked doccano export: the folder, or the file of one annotator.

    Each file is named after its annotator. An empty list of labels means that the annotator has not
    answered. Options are those of `read_export`.
    """
    path = Path(source)
    files = _files(path)
    if not files:
        raise InputError(
            f"{source}: no file in it is a text classification export of doccano",
            "unpack the export (JSONL or JSON) and name its folder",
            code="wrong-folder",
        )
    items: list[Item] = []
    for file in files:
        records = load(file)
        if isinstance(records, list):
            records = [_with_fields(record) for record in records]
        hint = "export the dataset as JSONL"
        examples = as_records(file, records, DoccanoItem, "an export of doccano", hint)
        for example in examples:
            items.append(_item(example, file))
    return read_export(items, source, **options)


def _files(path: Path) -> list[Path]:
    """The file itself, or the exported files in a folder; none if it has other JSON files, too."""
    if not path.is_dir():
        return [path]
    files = []
    for file in sorted(path.iterdir()):
        if file.suffix.lower() in _SUFFIXES and not file.name.startswith("."):
            if not is_doccano_record(first_record(file)):
                return []
            files.append(file)
    return files


def _with_fields(record: object) -> object:
    """A record whose text and metadata are moved into the object ``fields``."""
    if not isinstance(record, dict):
        return record
    fields = {name: value for name, value in record.items() if name not in _NOT_FIELDS}
    metadata = record.get("meta")
    if isinstance(metadata, dict):
        fields = metadata | fields
    label_fields = {name: record[name] for name in ("id", "label", "annotations") if name in record}
    return label_fields | {"fields": fields}


def _item(example: DoccanoItem, file: Path) -> Item:
    """An item with the answers in this file."""
    answers: list[ExportedAnswer] = []
    if example.annotations is not None:
        labels: dict[str | None, list[str]] = {}
        for annotation in example.annotations:
            labels.setdefault(annotation.user, []).append(annotation.label)
        answers.extend(ExportedAnswer(user, user_labels) for user, user_labels in labels.items())
    elif file.stem == _TOGETHER and example.label:
        raise InputError(
            f"{file} is the export of a project whose members annotate together: it does not say"
            " who chose a label",
            "let each member of the project annotate alone (a setting of the project)",
            code="missing-people",
        )
    elif example.label:
        answers.append(ExportedAnswer(file.stem, example.label))
    return Item([example.id], example.fields, {_QUESTION: answers})


def is_doccano_record(record: object) -> bool:
    """Whether a parsed record is one of doccano's text classification."""
    if not isinstance(record, Mapping) or "id" not in record or "text" not in record:
        return False
    if isinstance(record.get("label"), list) and "Comments" in record:
        return True
    annotations = record.get("annotations")
    return isinstance(annotations, list) and "annotation_approver" in record


def is_doccano(path: Path, content: object) -> bool:
    """Whether all JSON files of a folder are exports of doccano, or a file is one."""
    if path.is_dir():
        return bool(_files(path))
    if isinstance(content, list) and content:
        return is_doccano_record(content[0])
    return is_doccano_record(content)


SOURCE = Source(
    "doccano",
    "a doccano export",
    read_doccano,
    is_doccano,
    options=OPTIONS,
)
