"""Label Studio exports (JSON, JSON_MIN)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from edokit._errors import InputError, are, examples, one_of, option, word
from edokit.annotations import Annotations
from edokit.annotations.labels import joined
from edokit.datasets.exports import OPTIONS, Collected, Record, list_at, load, object_at, plain
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
    record = data[0] if isinstance(data, list | tuple) and data else data
    if not isinstance(record, Mapping):
        return False
    return ("data" in record and _is_task(record)) or _is_minimal(record)


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
    `Collected`.

    - ``annotator``: annotators are named by their ``id`` or their ``email``.
    - ``ground_truth``: an annotation marked as ground truth counts like any other (``count``), is
      left out (``skip``), or is the item's published label and no annotation (``hard_label``).
    """
    one_of("annotator", annotator, ("id", "email"))
    one_of("ground_truth", ground_truth, ("count", "skip", "hard_label"))
    collected = Collected("task", "annotation", "control", **options)
    data = load(
        source,
        is_label_studio,
        "a Label Studio export: a list of tasks with data and annotations",
        "export the project as JSON or JSON_MIN",
    )
    task_annotations: list[tuple[Record, Mapping[str, Any]]] = []
    for number, raw in enumerate([data] if isinstance(data, Mapping) else data, 1):
        task_annotations += _read_task(collected, raw, f"task number {number}", control)
    control = _choose_control(
        collected, [annotation for _, annotation in task_annotations], control
    )
    addresses: dict[str, str] = {}
    for record, annotation in task_annotations:
        title = collected.where(record.item)
        labels = [
            label
            for result in annotation.get("result") or ()
            if result.get("from_name") == control
            for label in _labels_of(result, title)
        ]
        if not annotation.get("ground_truth") or ground_truth == "count":
            name = _annotator_name(annotation.get("completed_by"), annotator, addresses, title)
            collected.add(record, name, labels)
        elif labels and ground_truth == "hard_label":
            label = _one_label(labels, collected.multi_choice, title)
            if collected.hard_labels.setdefault(record.item, label) != label:
                raise InputError(
                    f"{title} has two hard labels: {word(collected.hard_labels[record.item])} and"
                    f" {word(label)}",
                    "keep one of them",
                )
    if addresses:
        collected.notes.append(
            f"{are(len(addresses), noun='annotator')} known by email alone, called"
            f" {examples(addresses.values())}; choose {option('annotator', 'email')} to keep the"
            " addresses"
        )
    return collected.annotations()


def _is_task(task: Mapping[str, Any]) -> bool:
    return "annotations" in task or "completions" in task


def _is_minimal(row: Mapping[str, Any]) -> bool:
    return all(name in row for name in _MINIMAL) and not _is_task(row)


def _read_task(
    collected: Collected, raw: Any, place: str, control: str | None
) -> list[tuple[Record, Mapping[str, Any]]]:
    """The item's name with each of its annotations; the item itself is added to those collected."""
    task = object_at(raw, "a task", place)
    if _is_minimal(task):
        task = _unfold(task, control)
    fields = object_at(task.get("data"), "the data of a task", place)
    if collected.item is not None and collected.item not in fields:
        raise InputError(
            f"{place} has no field {collected.item!r} with its id; its fields are"
            f" {examples(fields, 10) or '(none)'}",
            "check the spelling",
        )
    value = task.get("id") if collected.item is None else fields[collected.item]
    item = plain(value, "the id of a task", place)
    item_fields = {key: value for key, value in fields.items() if key != collected.item}
    record = Record(item, item_fields, item_fields)
    collected.records.append(record)
    title = collected.where(item)
    key = "annotations" if "annotations" in task else "completions"
    annotations = []
    for raw in list_at(task.get(key), f"{key} of a task", title):
        annotation = object_at(raw, "an annotation", title)
        if not annotation.get("was_cancelled") and not annotation.get("skipped"):
            for result in list_at(annotation.get("result"), "the result of an annotation", title):
                object_at(result, "a result of an annotation", title)
            annotations.append((record, annotation))
    return annotations


def _unfold(row: Mapping[str, Any], control: str | None) -> Mapping[str, Any]:
    """A row of a JSON_MIN export (one annotation) as a task."""
    # The export writes the task's data, then id, then the controls, then annotator.
    keys = [*row]
    start = keys.index("id") + 1 if "id" in keys else len(keys)
    controls = [key for key in keys[start : keys.index("annotator")] if key not in _NOT_DATA]
    if control is not None and control in row and control not in controls:
        controls.append(control)
    results = [
        {
            "from_name": name,
            "value": value if isinstance(value, Mapping) else {"choices": [value]},
        }
        for name in controls
        for value in _parts(row[name])
    ]
    # An unknown annotator is written out as None.
    annotation = {
        "completed_by": None if row["annotator"] == "None" else row["annotator"],
        "result": results,
    }
    is_annotated = row["annotation_id"] not in (None, "") or results
    data = {key: row[key] for key in keys if key not in _NOT_DATA and key not in controls}
    return {"id": row.get("id"), "data": data, "annotations": [annotation] if is_annotated else []}


def _parts(content: Any) -> list[Any]:
    """The values of a control: none, one or several."""
    values = content if isinstance(content, list | tuple) else [content]
    return [value for value in values if value is not None]


def _kind(result: Mapping[str, Any]) -> str:
    """Which kind of label of the whole task a result holds; empty where it holds none."""
    value = result.get("value")
    if not isinstance(value, Mapping) or "item_index" in result or not _REGION.isdisjoint(value):
        return ""
    return next((kind for kind in ANSWERS if kind in value), "")


def _choose_control(
    collected: Collected, annotations: Sequence[Mapping[str, Any]], wanted: str | None
) -> str:
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for annotation in annotations:
        for result in annotation.get("result") or ():
            # Relations between regions belong to no control.
            if isinstance(result.get("from_name"), str):
                kinds[result["from_name"]][_kind(result)] += 1
    closed = {n: c.total() for n, c in kinds.items() if not c.keys().isdisjoint(CLOSED)}
    labels = {name for name, counts in kinds.items() if not counts.keys().isdisjoint(ANSWERS)}
    return collected.choose(wanted, closed, labels)


def _labels_of(result: Mapping[str, Any], where: str) -> list[str]:
    """The labels that a result gives to the whole task."""
    kind = _kind(result)
    if not kind or result["value"][kind] is None:
        return []
    content = result["value"][kind]
    if kind not in ("choices", "taxonomy"):
        return [plain(content, f"the {kind} of a result", where)]
    labels = []
    for label in list_at(content, f"the {kind} of a result", where):
        # A nested choice is the path to it from the top.
        path = label if isinstance(label, list | tuple) and label else [label]
        labels.append(_PATH.join(plain(part, "a label", where) for part in path))
    return labels


def _one_label(labels: Sequence[str], multi_choice: str, where: str) -> str:
    distinct = [*dict.fromkeys(labels)]
    if len(distinct) > 1 and multi_choice not in ("first", "join"):
        raise InputError(
            f"{where} has several labels as its ground truth: {examples(distinct)}",
            f"choose {option('multi_choice', 'first')} or {option('multi_choice', 'join')}, or"
            f" {option('ground_truth', 'count')}",
        )
    return joined(distinct, multi_choice)


def _annotator_name(
    annotator: Any, wanted: str, addresses: dict[str, str], where: str
) -> str | None:
    """What an annotator is called, if known; e-mail addresses only where they are asked for.

    ``addresses`` maps those of annotators without an id to names in their place.
    """
    details = annotator if isinstance(annotator, Mapping) else {"id": annotator}
    number, email = details.get("id"), details.get("email")
    if isinstance(number, str) and "@" in number:
        number, email = None, number
    number, email = (None if value == "" else value for value in (number, email))
    if number is None and email is None:
        return None
    if wanted == "email" and email is None:
        raise InputError(
            f"{where} has an annotator without an email",
            f"choose {option('annotator', 'id')}",
        )
    if wanted == "id" and number is not None:
        return plain(number, "the annotator", where)
    address = plain(email, "the email of an annotator", where)
    if wanted == "email":
        return address
    return addresses.setdefault(address, f"annotator-{len(addresses) + 1}")


SOURCE = Source(
    "label-studio",
    "a Label Studio JSON export",
    read_label_studio,
    lambda path, content: is_label_studio(content),
    options=("control", "annotator", "ground_truth", *OPTIONS),
)
