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

_REGION = {"start", "end", "startOffset", "endOffset", "x", "y", "points", "vertices", "rle"}
_REGION |= {"sequence", "ranges"}
"""What the value of a result holds when it is about a part of the task."""

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
    item_index: object = None

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

    def labels(self) -> dict[str, list[str]]:
        """The labels by control."""
        labels: dict[str, list[str]] = {}
        for result in self.result or ():
            if task_labels := result.labels():
                labels.setdefault(result.from_name, []).extend(task_labels)
        return labels


class Task(Document):
    """An item with its annotations."""

    id: Name | None = None
    data: dict[str, object]
    annotations: list[Annotation] | None = None

    @property
    def completed(self) -> list[Annotation]:
        """The annotations that count."""
        return [
            annotation
            for annotation in self.annotations or ()
            if not annotation.was_cancelled and not annotation.skipped
        ]


def is_label_studio(data: object) -> bool:
    """Whether parsed JSON looks like a Label Studio export."""
    record = data[0] if isinstance(data, list) and data else data
    return isinstance(record, Mapping) and "data" in record and "annotations" in record


def read_label_studio(source: Any, **options: Any) -> Annotations:
    """Annotations from a Label Studio export: a file, or its parsed JSON.

    A question is a labelling control (``from_name``). Cancelled annotations, drafts and predictions
    are ignored; an annotation that is marked as ground truth counts like any other. Annotators are
    named by their ids, and by numbers where an e-mail address is all that is known. Options are
    those of `read_export`.
    """
    title, hint = "a Label Studio export", "export the project as JSON"
    tasks = as_records(source, load(source), Task, title, hint)
    # Every control is asked, also where nothing was chosen.
    controls = dict.fromkeys(
        control
        for task in tasks
        for annotation in task.completed
        for control in annotation.labels()
    )
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
    """What an annotator is called, if known; ``addresses`` maps e-mail addresses to names."""
    if not isinstance(person, Person):
        person = Person(email=person) if "@" in (person or "") else Person(id=person)
    if person.id or not person.email:
        return person.id or None
    return addresses.setdefault(person.email, f"annotator-{len(addresses) + 1}")


SOURCE = Source(
    "label-studio",
    "a Label Studio JSON export",
    read_label_studio,
    lambda path, content: is_label_studio(content),
    options=OPTIONS,
)
