"""Label Studio exports (JSON, JSON_MIN)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edokit._errors import InputError, examples
from edokit._names import class_order
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

CLOSED = ("choices", "taxonomy", "rating", "selected")
"""Values out of a closed list: such a control need not be named."""
ANSWERS = (*CLOSED, "number")
"""Every value that can be a label; a control for numbers must be named."""
_REGION = {"start", "end", "startOffset", "endOffset", "x", "y", "points", "vertices", "rle"}
_REGION |= {"sequence", "ranges"}
"""What the value of a result holds when it is about a part of the task."""
_MINIMAL = ("annotator", "annotation_id", "lead_time")
_NOT_DATA = {*_MINIMAL, "id", "created_at", "updated_at", "agreement", "history"}
_PATH = " / "


def is_label_studio(data: Any) -> bool:
    """Whether parsed JSON looks like a Label Studio export (JSON or JSON_MIN)."""
    first = data[0] if isinstance(data, list | tuple) and data else data
    if not isinstance(first, Mapping):
        return False
    return ("data" in first and _is_task(first)) or _is_minimal(first)


def read_label_studio(
    source: Any,
    *,
    control: str | None = None,
    multi_choice: str = "error",
    text: str | None = None,
    item: str | None = None,
    annotator: str = "id",
    ground_truth: str = "count",
    unlabelled: str = "skip",
    anonymous: str = "error",
    classes: Sequence[object] | None = None,
    duplicates: Duplicates = "error",
    split: str | None = None,
) -> Annotations:
    """Annotations from a Label Studio export: a file, or its parsed JSON.

    ``control`` names the labelling control (``from_name``) and may be left out when there is one;
    ``text`` and ``item`` name the fields of a task's data with its text and its id (else the
    task's own id). Cancelled annotations, drafts and predictions are no annotations.

    - ``multi_choice``: several labels in one answer are refused (``error``), cut to the ``first``,
      shared out evenly as probabilities (``split``) or made a class of their own (``join``).
    - ``annotator``: annotators are named by their ``id`` or their ``email``.
    - ``ground_truth``: an annotation marked as ground truth counts like any other (``count``), is
      left out (``skip``), or is the item's published label and no annotation (``hard_label``).
    - ``unlabelled``: tasks without an annotation are left out (``skip``) or refused (``error``).
    - ``anonymous``: annotations that name nobody are refused (``error``) or each counted as one
      more annotator (``separate``).
    """
    check_policies(
        multi_choice=multi_choice,
        annotator=annotator,
        ground_truth=ground_truth,
        unlabelled=unlabelled,
        anonymous=anonymous,
    )
    tasks = [*_tasks(load(source), control, item)]
    control = _choose_control(tasks, control)
    collected = Collected("task", "annotation", control, anonymous)
    names = _AnnotatorNames(annotator)
    for task in tasks:
        collected.about.append((task.item, task.data, task.data))
        for annotation in task.annotations:
            labels = [
                label
                for result in annotation.results
                if result.get("from_name") == control
                for label in _labels_of(result, task.where)
            ]
            if annotation.ground_truth and labels and ground_truth == "hard_label":
                collected.publish(task.item, _one_label(labels, multi_choice, task.where))
            elif not annotation.ground_truth or ground_truth == "count":
                collected.add(task.item, names.name(annotation.annotator, task.where), labels)
    collected.notes += names.notes()
    return collected.annotations(
        text=text,
        multi_choice=multi_choice,
        unlabelled=unlabelled,
        classes=classes,
        duplicates=duplicates,
        split=split,
    )


def _is_task(task: Mapping[str, Any]) -> bool:
    return "annotations" in task or "completions" in task


def _is_minimal(row: Mapping[str, Any]) -> bool:
    return all(name in row for name in _MINIMAL) and not _is_task(row)


@dataclass(frozen=True)
class _Annotation:
    annotator: Any
    results: Sequence[Mapping[str, Any]]
    ground_truth: bool


@dataclass(frozen=True)
class _Task:
    item: str
    where: str
    data: Mapping[str, Any]
    annotations: Sequence[_Annotation]


def _tasks(data: Any, control: str | None, item: str | None) -> Iterator[_Task]:
    if not is_label_studio(data):
        raise InputError(
            f"this is {shown(data) if data else 'empty'}, not a Label Studio export: a list of"
            " tasks with data and annotations",
            "export the project as JSON or JSON_MIN",
        )
    for number, raw in enumerate([data] if isinstance(data, Mapping) else data, 1):
        place = f"task number {number}"
        task = object_at(raw, "a task", place)
        if _is_minimal(task):
            task = _unfold(task, control)
        fields = object_at(task.get("data"), "the data of a task", place)
        if item is not None and item not in fields:
            raise InputError(
                f"{place} has no field {item!r} with its id; its fields are"
                f" {examples(fields, 10) or '(none)'}",
                "check the spelling",
                parameters=("item",),
            )
        value = fields[item] if item is not None else task.get("id")
        name = plain(value, "the id of a task", place)
        where = f"task {examples([name])}"
        own = {key: value for key, value in fields.items() if key != item}
        yield _Task(name, where, own, [*_annotations(task, where)])


def _annotations(task: Mapping[str, Any], where: str) -> Iterator[_Annotation]:
    key = "annotations" if "annotations" in task else "completions"
    for raw in list_at(task.get(key), f"{key} of a task", where):
        annotation = object_at(raw, "an annotation", where)
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            continue
        results = [
            object_at(result, "a result of an annotation", where)
            for result in list_at(annotation.get("result"), "the result of an annotation", where)
        ]
        yield _Annotation(
            annotation.get("completed_by"), results, bool(annotation.get("ground_truth"))
        )


def _unfold(row: Mapping[str, Any], control: str | None) -> Mapping[str, Any]:
    """A row of a JSON_MIN export (one annotation) as a task."""
    # The export writes the task's data, then id, then the controls, then annotator.
    keys = [*row]
    first = keys.index("id") + 1 if "id" in keys else len(keys)
    controls = [key for key in keys[first : keys.index("annotator")] if key not in _NOT_DATA]
    if control is not None and control in row and control not in controls:
        controls.append(control)
    results = []
    for name in controls:
        given = row[name]
        for value in given if isinstance(given, list | tuple) else [given]:
            whole = value if isinstance(value, Mapping) else {"choices": [value]}
            if value is not None:
                results.append({"from_name": name, "value": whole})
    # An unknown annotator is written out as None.
    annotation = {
        "completed_by": None if row["annotator"] == "None" else row["annotator"],
        "result": results,
    }
    known = row["annotation_id"] not in (None, "") or results
    data = {key: row[key] for key in keys if key not in _NOT_DATA and key not in controls}
    return {"id": row.get("id"), "data": data, "annotations": [annotation] if known else []}


def _kind(result: Mapping[str, Any]) -> str:
    """Which kind of label of the whole task a result holds; empty where it holds none."""
    value = result.get("value")
    if not isinstance(value, Mapping) or "item_index" in result or not _REGION.isdisjoint(value):
        return ""
    return next((kind for kind in ANSWERS if kind in value), "")


def _choose_control(tasks: Sequence[_Task], wanted: str | None) -> str:
    counts: Counter[str] = Counter()
    kinds: dict[str, set[str]] = {}
    for task in tasks:
        for annotation in task.annotations:
            for result in annotation.results:
                # Relations between regions belong to no control.
                if isinstance(result.get("from_name"), str):
                    name = result["from_name"]
                    kinds.setdefault(name, set()).add(_kind(result))
                    counts[name] += 1
    return choose(
        "control",
        wanted,
        counts,
        found=[name for name in kinds if kinds[name] & {*CLOSED}],
        labels={name for name in kinds if kinds[name] & {*ANSWERS}},
        unit="task",
        total=len(tasks),
        otherwise="marks regions or takes free text",
    )


def _labels_of(result: Mapping[str, Any], where: str) -> list[str]:
    """The labels that a result gives to the whole task."""
    kind = _kind(result)
    if not kind or result["value"][kind] is None:
        return []
    given = result["value"][kind]
    if kind not in ("choices", "taxonomy"):
        return [plain(given, f"the {kind} of a result", where)]
    labels = []
    for label in list_at(given, f"the {kind} of a result", where):
        # A nested choice is the path to it from the top.
        path = label if isinstance(label, list | tuple) and label else [label]
        labels.append(_PATH.join(plain(part, "a label", where) for part in path))
    return labels


def _one_label(labels: Sequence[str], multi_choice: str, where: str) -> str:
    distinct = [*dict.fromkeys(labels)]
    if len(distinct) > 1 and multi_choice not in ("first", "join"):
        raise InputError(
            f"{where} has several labels as its ground truth: {examples(distinct)}",
            "choose multi_choice='first' or 'join', or ground_truth='count'",
            parameters=("multi_choice", "ground_truth"),
        )
    return distinct[0] if multi_choice == "first" else "|".join(class_order(distinct))


class _AnnotatorNames:
    """Names of annotators; e-mail addresses only where they are asked for."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.hidden: dict[str, str] = {}

    def name(self, annotator: Any, where: str) -> str | None:
        """What this annotator is called; none where the export doesn't say who it was."""
        known = annotator if isinstance(annotator, Mapping) else {"id": annotator}
        number, email = known.get("id"), known.get("email")
        if isinstance(number, str) and "@" in number:
            number, email = None, number
        number, email = (None if value == "" else value for value in (number, email))
        if number is None and email is None:
            return None
        if self.wanted == "email":
            if email is None:
                raise InputError(
                    f"{where} has an annotator without an email",
                    "choose annotator='id'",
                    parameters=("annotator",),
                )
            return plain(email, "the email of an annotator", where)
        if number is not None:
            return plain(number, "the annotator", where)
        address = plain(email, "the email of an annotator", where)
        return self.hidden.setdefault(address, f"annotator-{len(self.hidden) + 1}")

    def notes(self) -> list[str]:
        """A sentence for the warning, where addresses were replaced."""
        if not self.hidden:
            return []
        return [
            f"{len(self.hidden)} annotators are known by email alone and are called"
            f" {examples(self.hidden.values())}; choose annotator='email' to keep the addresses"
        ]


SOURCE = Source(
    "label-studio",
    "a Label Studio JSON export",
    with_fields(read_label_studio),
    lambda candidate: is_label_studio(candidate.content),
    options=("control", "annotator", "ground_truth", *OPTIONS),
)
