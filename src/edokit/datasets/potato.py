"""Potato's output folder: a folder per annotator with this person's answers.

Potato 2 writes ``user_state.json`` and keeps the texts in the data files of the project; earlier
versions wrote ``annotated_instances.jsonl``, with the texts in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue

from edokit._errors import InputError, counted, examples, warn
from edokit._io.documents import Document, read_json, to_model
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
from edokit.datasets.potato_project import (
    ItemProperties,
    Project,
    as_text,
    find_project,
    projects_in,
    read_project_items,
)
from edokit.datasets.read import Source

STATE = "user_state.json"
INSTANCES = "annotated_instances.jsonl"
_POINT = "scale_"
"""Prefix of the points of a Likert scale: ``scale_3``."""
_ANSWERS = "instance_id_to_label_to_value"
"""The field of `STATE` with the answers."""
_HINT = "name the folder annotation_output of a project"
_TITLE = "output of Potato"
_VALUE_NAMES = ("select-one", "slider", "number")
"""Names of inputs whose value, not whose name, is the answer."""
_OPTION_TYPES = ("radio", "likert", "confidence", "multiselect")
"""Types of annotation schemes whose answers are the names of the chosen options."""


class Instance(Document):
    """The answers of one annotator about an item, as Potato 1 wrote them."""

    id: Name | None = None
    instance_id: Name | None = None
    displayed_text: str = ""
    label_annotations: dict[str, dict[str, object]] = Field(default_factory=dict)

    def labels(self) -> dict[str, list[str]]:
        """The chosen labels by annotation scheme."""
        labels: dict[str, list[str]] = {}
        for scheme, values in self.label_annotations.items():
            labels[scheme] = []
            for label, value in values.items():
                if value and str(value).lower() != "false":
                    labels[scheme].append(label.removeprefix(_POINT))
        return labels


class FormInput(Document):
    """An input of the page, such as an option, a text box or a slider."""

    scheme: str = Field(alias="schema")
    name: Name

    def label(self, value: JsonValue, kind: str | None) -> str | None:
        """The label that this value gives to the whole item, or None.

        ``kind`` is the type of the annotation scheme, if known.
        """
        # The value of a ticked box is its own name, or in older versions a truth value.
        is_ticked = value is True or as_text(value) in (self.name, "true", "True")
        if is_ticked or (kind in _OPTION_TYPES and self.name != "free_response"):
            return self.name.removeprefix(_POINT)
        if self.name in _VALUE_NAMES:
            return as_text(value)
        return None


class UserState(Document):
    """The record of Potato 2 about one annotator."""

    user_id: Name
    answers: dict[str, list[tuple[FormInput, JsonValue]]] = Field(
        alias="instance_id_to_label_to_value"
    )
    origin: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def is_machine(self) -> bool:
        """Whether the project declares this annotator as a model or a program."""
        return bool(self.origin) and self.origin.get("kind") != "human"


# --- Files ---------------------------------------------------------------------------------------


def find_files(path: Path) -> list[Path]:
    """The files with answers; the path is an output folder, a project's folder or one file."""
    if not path.is_dir():
        return [path]
    files = _files_in(path)
    if files:
        return files
    for project in projects_in(path):
        files.extend(_files_in(project.output))
    return sorted(set(files))


def _files_in(output: Path) -> list[Path]:
    """The file of each annotator in an output folder, or in the folder of one annotator."""
    files = {file.parent: file for file in output.glob(f"*/{INSTANCES}")}
    for pattern in (STATE, f"*/{STATE}"):
        files |= {file.parent: file for file in output.glob(pattern)}
    return sorted(files.values())


# --- Answers --------------------------------------------------------------------------------------


def read_potato(source: str | Path, **options: Any) -> Annotations:
    """Annotations from the folder ``annotation_output`` of a Potato project.

    The folder of the project, and the folder or file of one annotator, are read as well. A question
    is an annotation scheme. Annotators have the names that Potato gives them; spans and free texts
    are not labels. Options are those of `read_export`.
    """
    files = find_files(Path(source))
    if not files:
        raise InputError(
            f"{source}: no folder in it contains {STATE} or {INSTANCES}",
            _HINT,
            code="wrong-folder",
        )
    items: list[Item] = []
    states: list[UserState] = []
    for file in files:
        if file.name == INSTANCES:
            items.extend(_read_instances(file))
        else:
            states.append(_read_state(file))
    if states:
        project = find_project(files[-1].parent.parent)
        items.extend(_state_items(source, states, project, options.get("columns") or {}))
    return read_export(items, source, **options)


def _read_instances(file: Path) -> list[Item]:
    """The answers of one annotator, as Potato 1 wrote them."""
    items = []
    for instance in as_records(file, load(file), Instance, _TITLE, _HINT):
        answers: dict[str, list[ExportedAnswer]] = {}
        for scheme, labels in instance.labels().items():
            answers[scheme] = [ExportedAnswer(file.parent.name, labels)]
        names = [instance.id, instance.instance_id]
        items.append(Item(names, {"text": instance.displayed_text}, answers))
    return items


def _read_state(file: Path) -> UserState:
    """The answers of one annotator, without the much longer record of clicks."""
    content = read_json(file, math.inf)
    if isinstance(content, dict):
        names = ("user_id", _ANSWERS, "origin")
        content = {name: content[name] for name in names if name in content}
    return to_model(content, UserState, file, title=_TITLE, hint=_HINT)


def _state_items(
    source: str | Path,
    states: Sequence[UserState],
    project: Project | None,
    columns: Mapping[str, str],
) -> list[Item]:
    """An item for each annotator and item; texts come from the data files of the project."""
    fields: dict[str, dict[str, object]] = {}
    kinds: dict[str, str] = {}
    properties = ItemProperties()
    if project is not None:
        fields = read_project_items(project)
        properties = project.configuration.item_properties
        schemes = project.configuration.annotation_schemes
        kinds = {scheme.name: scheme.annotation_type for scheme in schemes}
    people = [state for state in states if not state.is_machine]
    machines = [state.user_id for state in states if state.is_machine]
    if machines:
        warn(
            f"{counted(len(machines), 'annotator')} that the project declares as machines left out:"
            f" {examples(machines)}"
        )
    labels = [_labels(state, kinds) for state in people]
    # Every page answers all schemes: a scheme without an input has no chosen label.
    schemes_with_labels: dict[str, None] = {}
    for by_item in labels:
        for by_scheme in by_item.values():
            for scheme, scheme_labels in by_scheme.items():
                if scheme_labels:
                    schemes_with_labels[scheme] = None
    check_answers(source, sum(map(len, labels)), len(schemes_with_labels))
    items = []
    for state, by_item in zip(people, labels, strict=True):
        for name, by_scheme in by_item.items():
            answers: dict[str, list[ExportedAnswer]] = {}
            for scheme in schemes_with_labels:
                answers[scheme] = [ExportedAnswer(state.user_id, by_scheme.get(scheme, []))]
            item_fields = _item_fields(fields.get(name, {}), properties, columns)
            items.append(Item([name], item_fields, answers))
    if items and not any("text" in item.fields for item in items) and "text" not in columns:
        warn(
            "no texts were found: Potato 2 does not keep them with the answers. They are read from"
            " the project's data files if its configuration (.yaml) is beside the output folder and"
            " PyYAML is installed"
        )
    return items


def _labels(state: UserState, kinds: Mapping[str, str]) -> dict[str, dict[str, list[str] | None]]:
    """The labels of each item and annotation scheme; None if the answer is not a label."""
    labels: dict[str, dict[str, list[str] | None]] = {}
    for item, answers in state.answers.items():
        if not answers:
            continue
        by_scheme: dict[str, list[str] | None] = {}
        for page_input, value in answers:
            scheme = page_input.scheme
            label = page_input.label(value, kinds.get(scheme))
            if label is None:
                by_scheme.setdefault(scheme, None)
            else:
                by_scheme[scheme] = [*(by_scheme.get(scheme) or ()), label]
        labels[item] = by_scheme
    return labels


def _item_fields(
    row: Mapping[str, object], properties: ItemProperties, columns: Mapping[str, str]
) -> dict[str, object]:
    """The fields of an item, with its text in the field ``text`` unless another one is chosen."""
    fields = dict(row)
    if properties.id_key not in columns.values():
        fields.pop(properties.id_key, None)
    text = fields.get(properties.text_key)
    if "text" not in columns and isinstance(text, str):
        del fields[properties.text_key]
        fields["text"] = text
    return fields


def is_potato(path: Path, content: object) -> bool:
    """Whether a folder contains answers of Potato, or parsed JSON is its record of an annotator."""
    if path.is_dir():
        return bool(find_files(path))
    return isinstance(content, Mapping) and _ANSWERS in content


SOURCE = Source(
    "potato",
    "the output folder of Potato",
    read_potato,
    is_potato,
    options=OPTIONS,
)
