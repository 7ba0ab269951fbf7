"""Label Studio exports (JSON, JSON_MIN)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AliasChoices, ConfigDict, Field

from edokit._errors import InputError, are, examples, one_of, option, warn
from edokit._io.documents import Document
from edokit.annotations import Annotations
from edokit.datasets.exports import OPTIONS, Export, Name, Response, as_records, load
from edokit.datasets.read import Source

_REGION = {"start", "end", "startOffset", "endOffset", "x", "y", "points", "vertices", "rle"}
_REGION |= {"sequence", "ranges"}
"""What the value of a result holds when it is about a part of the task."""
_MINIMAL = ("annotator", "annotation_id", "lead_time")
_NOT_DATA = {*_MINIMAL, "id", "created_at", "updated_at", "agreement", "history"}

Choice = Name | Annotated[list[Name], Field(min_length=1)]
"""A label, or the path to a nested one from the top."""


class Value(Document):
    """What a control holds; other fields say which part of the task it is about."""

    model_config = ConfigDict(extra="allow")
    choices: list[Choice] | None = None
    taxonomy: list[Choice] | None = None
    rating: Name | None = None
    selected: Name | None = None
    number: Name | None = None


class Result(Document):
    """The answer of one control; relations between regions belong to none."""

    from_name: str = ""
    value: Value | None = None
    item_index: Any = None

    def labels(self) -> list[str]:
        """The labels that it gives to the whole task."""
        value = self.value
        if value is None or self.item_index is not None:
            return []
        if not _REGION.isdisjoint(value.model_extra or {}):
            return []
        choices = [*(value.choices or ()), *(value.taxonomy or ())]
        single = [value.rating, value.selected, value.number]
        labels = [choice if isinstance(choice, str) else " / ".join(choice) for choice in choices]
        return labels + [label for label in single if label is not None]


class Person(Document):
    """Who annotated."""

    id: Name | None = None
    email: Name | None = None


class Annotation(Document):
    """What one person answered."""

    completed_by: Person | Name | None = None
    result: list[Result] | None = None
    was_cancelled: bool | None = False
    skipped: bool | None = False
    ground_truth: bool | None = False

    def labels(self) -> dict[str, list[str]]:
        """The labels by control."""
        labels: dict[str, list[str]] = {}
        for result in self.result or ():
            if found := result.labels():
                labels.setdefault(result.from_name, []).extend(found)
        return labels


class Task(Document):
    """An item with its annotations."""

    id: Name | None = None
    data: dict[str, Any]
    annotations: list[Annotation] | None = Field(
        None, validation_alias=AliasChoices("annotations", "completions")
    )


def is_label_studio(data: Any) -> bool:
    """Whether parsed JSON looks like a Label Studio export (JSON or JSON_MIN)."""
    record = data[0] if isinstance(data, list) and data else data
    return _is_minimal(record) or (_is_task(record) and "data" in record)


def read_label_studio(
    source: Any,
    *,
    control: str | None = None,
    annotator: str = "id",
    ground_truth: str = "count",
    **options: Any,
) -> Annotations:
    """Annotations from a Label Studio export: a file, or its parsed JSON.

    ``control`` names the labelling control (``from_name``) and may be left out when there is one.
    Cancelled annotations, drafts and predictions are no annotations. Further options are those of
    `Export`.

    - ``annotator``: annotators are named by their ``id`` or their ``email``.
    - ``ground_truth``: an annotation marked as ground truth counts like any other (``count``), is
      left out (``skip``), or is the item's published label and no annotation (``hard_label``).
    """
    one_of("annotator", annotator, ("id", "email"))
    one_of("ground_truth", ground_truth, ("count", "skip", "hard_label"))
    export = Export("task", "annotation", "control", **options)
    content = load(source)
    if isinstance(content, list):
        content = [_unfold(row, control) if _is_minimal(row) else row for row in content]
    title, hint = "a Label Studio export", "export the project as JSON or JSON_MIN"
    items: list[str] = []
    responses: list[Response] = []
    addresses: dict[str, str] = {}
    for number, task in enumerate(as_records(source, content, Task, title, hint), 1):
        item = export.item_name(task.data, {"id": task.id}, number)
        items.append(item)
        for annotation in task.annotations or ():
            is_truth = bool(annotation.ground_truth) and ground_truth != "count"
            if (
                annotation.was_cancelled
                or annotation.skipped
                or (is_truth and ground_truth == "skip")
            ):
                continue
            person = None if is_truth else annotation.completed_by
            name = _annotator_name(person, annotator, addresses, export.place(item))
            labels = annotation.labels()
            responses.append(
                Response(item, task.data, name, labels, unanswered=[], is_truth=is_truth)
            )
    annotations = export.annotations(responses, items, control)
    if addresses:
        warn(
            f"{are(len(addresses), noun='annotator')} known by email alone, called"
            f" {examples(addresses.values())}; choose {option('annotator', 'email')} to keep the"
            " addresses"
        )
    return annotations


def _is_task(record: Any) -> bool:
    return isinstance(record, Mapping) and ("annotations" in record or "completions" in record)


def _is_minimal(row: Any) -> bool:
    return isinstance(row, Mapping) and all(name in row for name in _MINIMAL) and not _is_task(row)


def _unfold(row: Mapping[str, Any], control: str | None) -> dict[str, Any]:
    """A row of a JSON_MIN export (one annotation) as a task."""
    # The export writes the task's data, then id, then the controls, then annotator.
    keys = [*row]
    start = keys.index("id") + 1 if "id" in keys else len(keys)
    controls = [key for key in keys[start : keys.index("annotator")] if key not in _NOT_DATA]
    if control is not None and control in row and control not in controls:
        controls.append(control)
    results = [
        {"from_name": name, "value": value if isinstance(value, Mapping) else {"choices": [value]}}
        for name in controls
        for value in (row[name] if isinstance(row[name], list) else [row[name]])
        if value is not None
    ]
    # An unknown annotator is written out as None.
    person = None if row["annotator"] == "None" else row["annotator"]
    is_annotated = row["annotation_id"] not in (None, "") or results
    return {
        "id": row.get("id"),
        "data": {key: row[key] for key in keys if key not in _NOT_DATA and key not in controls},
        "annotations": [{"completed_by": person, "result": results}] if is_annotated else [],
    }


def _annotator_name(
    person: Person | str | None, wanted: str, addresses: dict[str, str], place: str
) -> str | None:
    """What an annotator is called, if known; e-mail addresses only where they are asked for.

    ``addresses`` maps those of annotators without an id to names in their place.
    """
    if not isinstance(person, Person):
        person = Person(email=person) if "@" in (person or "") else Person(id=person)
    if wanted == "email" and person.id and not person.email:
        raise InputError(
            f"{place} has an annotator without an email", f"choose {option('annotator', 'id')}"
        )
    if not person.email or (person.id and wanted == "id"):
        return person.id or None
    if wanted == "email":
        return person.email
    return addresses.setdefault(person.email, f"annotator-{len(addresses) + 1}")


SOURCE = Source(
    "label-studio",
    "a Label Studio JSON export",
    read_label_studio,
    lambda path, content: is_label_studio(content),
    options=("control", "annotator", "ground_truth", *OPTIONS),
)
