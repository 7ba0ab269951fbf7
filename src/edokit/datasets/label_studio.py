"""Label Studio exports in the format JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from edokit._io.documents import Document
from edokit.annotations.core import Annotations
from edokit.datasets.exports import (
    OPTIONS,
    ExportedAnswer,
    Item,
    Name,
    as_records,
    check_answers,
    load,
    read_export,
)
from edokit.datasets.read import Source

_REGION = frozenset(
    [
        "start",
        "end",
        "startOffset",
        "endOffset",
        "x",
        "y",
        "points",
        "vertices",
        "rle",
        "sequence",
        "ranges",
    ]
)
"""Fields in the value of a result that is about a part of the task."""

Choice = Name | Annotated[list[Name], Field(min_length=1)]
"""A label; for a nested label, the path to it from the top."""


class Value(Document):
    """The value of a control; further fields say which part of the task it is about."""

    model_config = ConfigDict(extra="allow")
    choices: list[Choice] | None = None
    taxonomy: list[Choice] | None = None
    rating: Name | None = None
    selected: Name | None = None
    number: Name | None = None


class Result(Document):
    """The answer to one control; relations between regions have no control."""

    from_name: str = ""
    value: Value | None = None
    item_index: object = None

    def labels(self) -> list[str]:
        """The labels of the whole task; none if the result is about a part of it."""
        value = self.value
        if value is None or self.item_index is not None:
            return []
        if not _REGION.isdisjoint(value.model_extra or {}):
            return []
        labels = []
        for choice in [*(value.choices or ()), *(value.taxonomy or ())]:
            if isinstance(choice, str):
                labels.append(choice)
            else:
                labels.append(" / ".join(choice))
        for label in (value.rating, value.selected, value.number):
            if label is not None:
                labels.append(label)
        return labels


class Person(Document):
    """An annotator."""

    id: Name | None = None
    email: Name | None = None


class Annotation(Document):
    """The answers of one annotator."""

    completed_by: Person | Name | None = None
    result: list[Result] | None = None
    was_cancelled: bool | None = False
    skipped: bool | None = False

    def labels(self) -> dict[str, list[str]]:
        """The labels by control."""
        labels: dict[str, list[str]] = {}
        for result in self.result or ():
            task_labels = result.labels()
            if task_labels:
                labels.setdefault(result.from_name, []).extend(task_labels)
        return labels


class Task(Document):
    """An item with its annotations."""

    id: Name | None = None
    data: dict[str, object]
    annotations: list[Annotation] | None = None

    @property
    def completed(self) -> list[Annotation]:
        """The annotations that were neither cancelled nor skipped."""
        completed = []
        for annotation in self.annotations or ():
            if not annotation.was_cancelled and not annotation.skipped:
                completed.append(annotation)
        return completed


def is_label_studio(data: object) -> bool:
    """Whether parsed JSON looks like a Label Studio export."""
    record = data
    if isinstance(data, list) and data:
        record = data[0]
    return isinstance(record, Mapping) and "data" in record and "annotations" in record


def read_label_studio(source: Any, **options: Any) -> Annotations:
    """Annotations from a Label Studio export: a file, or its parsed JSON.

    A question is a labelling control (``from_name``). Cancelled annotations, drafts and predictions
    are ignored; an annotation that is marked as ground truth counts like any other. Annotators are
    named by their ids. If only their e-mail addresses are known, they are numbered instead. Options
    are those of `read_export`.
    """
    title = "a Label Studio export"
    tasks = as_records(source, load(source), Task, title, "export the project as JSON")
    # Every annotation answers all controls: a control without a result has no chosen label.
    controls: dict[str, None] = {}
    for task in tasks:
        for annotation in task.completed:
            controls |= dict.fromkeys(annotation.labels())
    check_answers(source, sum(len(task.completed) for task in tasks), len(controls))
    addresses: dict[str, str] = {}
    items = []
    for task in tasks:
        answers: dict[str, list[ExportedAnswer]] = {control: [] for control in controls}
        for annotation in task.completed:
            annotator = _annotator_name(annotation.completed_by, addresses)
            labels = annotation.labels()
            for control in controls:
                answers[control].append(ExportedAnswer(annotator, labels.get(control, [])))
        items.append(Item([task.id], task.data, answers))
    return read_export(items, source, **options)


def _annotator_name(person: Person | str | None, addresses: dict[str, str]) -> str | None:
    """The name of an annotator, if known: the id, else a number instead of the e-mail address.

    ``addresses`` has the names of the e-mail addresses so far; a new one is added.
    """
    if isinstance(person, Person):
        name = person.id
        email = person.email
    elif person is not None and "@" in person:
        name = None
        email = person
    else:
        name = person
        email = None
    if name or not email:
        return name or None
    return addresses.setdefault(email, f"annotator-{len(addresses) + 1}")


SOURCE = Source(
    "label-studio",
    "a Label Studio JSON export",
    read_label_studio,
    lambda path, content: is_label_studio(content),
    options=OPTIONS,
)
