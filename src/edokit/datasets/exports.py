"""Exports of annotation tools: records read with clear errors, labels collected as annotations."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from edokit._errors import EDOWarning, InputError, examples, one_of, word
from edokit._io import check_depth, check_file, not_utf8, read_json, read_table
from edokit._names import as_name, as_names, class_order
from edokit.annotations import Annotations, Duplicates
from edokit.datasets.read import errors_in

OPTIONS = ("columns", "multi_choice", "text", "item", "unlabelled", "anonymous")
"""What every export takes."""
_POLICIES = {
    "multi_choice": ("error", "first", "split", "join"),
    "unlabelled": ("skip", "error"),
    "anonymous": ("error", "separate"),
    "annotator": ("id", "email"),
    "ground_truth": ("count", "skip", "hard_label"),
}
_LINK = re.compile(r"(https?|s3|gs|azure-blob)://|/data/|data:", re.IGNORECASE)
"""How fields begin that hold no text, but the address of an image or a recording."""


def check_policies(**policies: str) -> None:
    """Refuse a policy that does not exist."""
    for name, value in policies.items():
        one_of(name, value, _POLICIES[name])


def load(source: Any) -> Any:
    """The records of a JSON, JSONL or Parquet file; anything but a path is returned as it is."""
    if not isinstance(source, str | Path):
        return source
    path = check_file(source)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        table = read_table(path)
        # Times are of no use here, and some have no Python equivalent.
        kept = [part.name for part in table.schema if not pa.types.is_temporal(part.type)]
        return table.select(kept).to_pylist()
    if suffix not in (".jsonl", ".ndjson"):
        return read_json(path)
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    records = []
    for number, line in enumerate(content.split("\n"), 1):
        try:
            records += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path}: line {number} is not valid JSON: {error}",
                "the file may be cut off; export it again",
            ) from error
    check_depth(content.encode(), path)
    return records


def with_fields(read: Callable[..., Annotations]) -> Callable[..., Annotations]:
    """The reader of an export, which names its fields item and text, as one that takes columns."""

    def renamed(
        path: Path, *, columns: Mapping[str, str] | None = None, **options: Any
    ) -> Annotations:
        wrong = [role for role in columns or {} if role not in ("item", "text")]
        if wrong:
            raise InputError(
                f"in an export only the columns item and text can be named, not {wrong[0]!r}",
                "leave it out",
                parameters=("columns",),
            )
        with errors_in(path):
            return read(path, **options, **(columns or {}))

    return renamed


def shown(value: object) -> str:
    """A value from an export, short enough for a message."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        return word(value) if isinstance(value, str) else repr(value)[:40]
    except ValueError:  # Python refuses to write out integers of thousands of digits.
        return "a huge number"


def plain(value: object, what: str, where: str) -> str:
    """The name that text or a number stands for; anything else is refused."""
    name = ""
    try:
        if isinstance(value, str):
            name = value
        elif isinstance(value, float):
            name = as_name(value) if math.isfinite(value) else ""
        elif isinstance(value, int | np.integer | UUID) and not isinstance(value, bool):
            name = str(value)
        name.encode()
    except ValueError:  # half a surrogate pair, or thousands of digits
        name = ""
    if name:
        return name
    raise InputError(
        f"{where}: {what} should be text or a number, not {shown(value)}", "correct the export"
    )


def object_at(value: object, what: str, where: str) -> Mapping[str, Any]:
    """The value, if it is a JSON object."""
    if isinstance(value, Mapping):
        return value
    raise InputError(f"{where}: {what} should be an object, not {shown(value)}", "export it again")


def list_at(value: object, what: str, where: str) -> Sequence[Any]:
    """The value, if it is a JSON list; null is an empty one."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise InputError(f"{where}: {what} should be a list, not {shown(value)}", "export it again")


def choose(
    what: str,
    wanted: str | None,
    counts: Mapping[str, int],
    *,
    found: Sequence[str],
    labels: Collection[str],
    unit: str,
    total: int,
    otherwise: str,
) -> str:
    """The control or question that the labels come from; it must be named if there are several.

    ``counts`` has the annotations of each one, ``labels`` those that label whole records,
    ``found`` those that need not be named. ``otherwise`` says what the others do.
    """
    listed = ", ".join(f"{name!r} ({counts[name]} annotations)" for name in found)
    if wanted is None and len(found) == 1:
        return found[0]
    if wanted is None:
        raise InputError(
            f"several {what}s give labels: {listed}"
            if found
            else f"no {what} gives labels to the {total} {unit}s",
            f"choose one with {what}={found[0]!r}"
            if found
            else f"name it with {what}=NAME, or export {unit}s with labels",
            parameters=(what,),
        )
    if wanted not in counts:
        raise InputError(
            f"no annotation is about the {what} {wanted!r}; those with labels are"
            f" {listed or 'none'}",
            "check the spelling",
            parameters=(what,),
        )
    if wanted not in labels:
        raise InputError(
            f"the {what} {wanted!r} does not label whole {unit}s: it {otherwise}",
            f"choose one of {listed}" if found else f"export {unit}s with labels",
            parameters=(what,),
        )
    return wanted


@dataclass
class Collected:
    """Annotations from the export of an annotation tool, collected record by record."""

    unit: str
    """What the tool calls an item."""
    answer: str
    """What the tool calls an annotation."""
    asked: str
    """The control or question that the labels come from."""
    anonymous: str
    """Policy for annotations that name no annotator."""
    items: list[str] = field(default_factory=list)
    """The item of each annotation [M]."""
    annotators: list[str] = field(default_factory=list)
    """The annotator of each annotation [M]."""
    chosen: list[tuple[str, ...]] = field(default_factory=list)
    """The labels of each annotation [M]."""
    about: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=list)
    """Every item with its fields (one of them the text) and its metadata (split, hard label)."""
    hard_labels: dict[str, str] = field(default_factory=dict)
    """Published hard label of an item."""
    without_label: int = 0
    """Annotations that have no label."""
    without_annotator: int = 0
    """Annotations that name no annotator."""
    notes: list[str] = field(default_factory=list)
    """What the reader decided, for warnings."""

    def where(self, item: str) -> str:
        """The item, for a message."""
        return f"{self.unit} {examples([item])}"

    def add(self, item: str, annotator: str | None, labels: Sequence[str]) -> None:
        """One annotation of an item."""
        if not labels:
            self.without_label += 1
            return
        if annotator is None:
            self.without_annotator += 1
            annotator = f"unknown-{self.without_annotator}"
            if self.anonymous == "error":
                raise InputError(
                    f"{self.where(item)} has a labelled {self.answer} that names no annotator",
                    "choose anonymous='separate' to count each as another annotator",
                    parameters=("anonymous",),
                )
        self.items.append(item)
        self.annotators.append(annotator)
        self.chosen.append(tuple(dict.fromkeys(labels)))

    def publish(self, item: str, label: str) -> None:
        """The hard label of an item."""
        self._once(self.hard_labels, item, label, "hard label")

    def annotations(
        self,
        *,
        text: str | None,
        multi_choice: str,
        unlabelled: str,
        classes: Sequence[object] | None,
        duplicates: Duplicates,
        split: str | None,
    ) -> Annotations:
        """All of it as annotations; what was decided on the way is given in warnings."""
        self._check_unlabelled(unlabelled)
        texts = self._texts(text, set(self.items))
        splits: dict[str, str] = {}
        for item, _, metadata in self.about:
            if metadata.get("split") not in (None, ""):
                name = plain(metadata["split"], "the split", self.where(item))
                self._once(splits, item, name, "split")
            if metadata.get("hard_label") not in (None, ""):
                self.publish(
                    item, plain(metadata["hard_label"], "the hard label", self.where(item))
                )
        if split is not None:
            self._keep_split(split, splits)
        kept = set(self.items)
        self.hard_labels = {k: label for k, label in self.hard_labels.items() if k in kept}
        table: dict[str, Any] = {"item": self.items, "annotator": self.annotators}
        table |= self._labels(multi_choice, classes)
        roles = {"text": texts, "split": splits, "hard_label": self.hard_labels}
        for role, known in roles.items():
            if known:
                table[role] = [known.get(item, "") for item in self.items]
        if self.without_label:
            self.notes.append(
                f"{self.without_label} {self.answer}s have no label for {self.asked!r} and are"
                " left out"
            )
        if self.without_annotator:
            self.notes.append(
                f"{self.without_annotator} {self.answer}s name no annotator and count as one"
                " annotator each (anonymous='separate')"
            )
        for note in self.notes:
            warnings.warn(note, EDOWarning, stacklevel=3)
        return Annotations.from_table(table, classes=classes, duplicates=duplicates)

    def _check_unlabelled(self, policy: str) -> None:
        labelled = set(self.items)
        everything = dict.fromkeys(item for item, _, _ in self.about)
        empty = [item for item in everything if item not in labelled]
        if not labelled:
            raise InputError(
                f"none of the {len(everything)} {self.unit}s has a label for {self.asked!r}",
                f"export {self.unit}s that are labelled",
            )
        if empty and policy == "error":
            raise InputError(
                f"{len(empty)} of {len(everything)} {self.unit}s have no annotation:"
                f" {examples(empty)}",
                "choose unlabelled='skip' to leave them out",
                parameters=("unlabelled",),
            )
        if empty:
            self.notes.append(
                f"{len(empty)} of {len(everything)} {self.unit}s have no annotation and are left"
                f" out: {examples(empty)} (unlabelled='error' refuses them)"
            )

    def _keep_split(self, split: str, splits: Mapping[str, str]) -> None:
        rows = [row for row, item in enumerate(self.items) if splits.get(item) == split]
        if not rows:
            known = examples(dict.fromkeys(splits.values()), 10)
            raise InputError(
                f"no labelled {self.unit} is in the split {split!r}; there are the splits"
                f" {known or '(none)'}",
                "choose one of these"
                if splits
                else "write it into a field called split, or leave the split out",
                parameters=("split",),
            )
        self.items = [self.items[row] for row in rows]
        self.annotators = [self.annotators[row] for row in rows]
        self.chosen = [self.chosen[row] for row in rows]

    def _texts(self, wanted: str | None, labelled: set[str]) -> dict[str, str]:
        about = [(item, fields) for item, fields, _ in self.about if item in labelled]
        name = self._text_field([fields for _, fields in about]) if wanted is None else wanted
        texts: dict[str, str] = {}
        if name is None:
            return texts
        for item, fields in about:
            value = fields.get(name)
            if wanted is not None and not isinstance(value, str):
                raise InputError(
                    f"{self.where(item)} has {shown(value)} in the field {name!r}, not a text",
                    f"its fields are {examples(fields, 10)}" if fields else "it has no fields",
                    parameters=("text",),
                )
            if isinstance(value, str):
                # Half a surrogate pair, as a cut-off emoji leaves it, can't be stored.
                value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                self._once(texts, item, value, "text")
        return texts

    def _text_field(self, rows: list[Mapping[str, Any]]) -> str | None:
        found: dict[str, bool] = {}
        for fields in rows:
            for name, value in fields.items():
                if isinstance(value, str) and value and name not in ("split", "hard_label"):
                    found[name] = found.get(name, False) or not _LINK.match(value)
        names = [str(name) for name, readable in found.items() if readable]
        if "text" in names or len(names) == 1:
            return "text" if "text" in names else names[0]
        if names:
            self.notes.append(
                f"the {self.unit}s have several fields of text ({examples(names, 6)}), so none was"
                f" taken; choose one with text={names[0]!r}"
            )
        return None

    def _once(self, known: dict[str, str], item: str, value: str, what: str) -> None:
        if known.setdefault(item, value) != value:
            # Somebody's text is not shown in messages.
            both = "" if what == "text" else f": {word(known[item])} and {word(value)}"
            raise InputError(
                f"{self.where(item)} has two {what}s{both}",
                f"keep one of them, or give each {self.unit} its own id",
            )

    def _labels(self, policy: str, classes: Sequence[object] | None) -> dict[str, Any]:
        """The label column, or the p_<class> columns where labels share an annotation."""
        several = [row for row, labels in enumerate(self.chosen) if len(labels) > 1]
        if several and policy == "error":
            row = several[0]
            raise InputError(
                f"{self.where(self.items[row])} has {len(self.chosen[row])} labels of annotator"
                f" {self.annotators[row]!r}: {examples(self.chosen[row])}"
                f" ({len(several)} such {self.answer}s)",
                "choose multi_choice='split' to share the annotation between its labels, 'first'"
                " to keep the first, 'join' to make each combination a class",
                parameters=("multi_choice",),
            )
        if policy == "join":
            self.chosen = [("|".join(class_order(labels)),) for labels in self.chosen]
        elif policy == "first":
            self.chosen = [labels[:1] for labels in self.chosen]
        published = dict.fromkeys(self.hard_labels.values())
        names = class_order({*(label for labels in self.chosen for label in labels), *published})
        if classes is not None:
            names = tuple(as_names(classes))
            self._check_declared(names)
        if not several or policy != "split":
            return {"label": [labels[0] for labels in self.chosen]}
        sizes = np.array([len(labels) for labels in self.chosen])
        position = {name: k for k, name in enumerate(names)}
        rows = np.repeat(np.arange(len(sizes)), sizes)
        columns = [position[label] for labels in self.chosen for label in labels]
        shares = np.zeros((len(sizes), len(names)))
        shares[rows, columns] = 1 / sizes[rows]
        return {f"p_{name}": shares[:, k] for name, k in position.items()}

    def _check_declared(self, names: tuple[str, ...]) -> None:
        given = [*zip(self.items, self.chosen, strict=True)]
        given += [(item, (label,)) for item, label in self.hard_labels.items()]
        for item, labels in given:
            for label in labels:
                if label not in names:
                    raise InputError(
                        f"{self.where(item)} has label {label!r}, which is not among the classes"
                        f" {', '.join(map(repr, names))}",
                        "declare it among the classes, or correct the label",
                        parameters=("classes",),
                    )
