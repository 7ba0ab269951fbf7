"""Exports of annotation tools: records read with clear errors, labels collected as annotations."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from edokit._errors import EDOWarning, InputError, examples, word
from edokit._io import check_depth, check_file, not_utf8, read_json, read_table
from edokit._names import as_name, as_names, class_order
from edokit.annotations import Annotations
from edokit.datasets.read import errors_in


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
    lines = enumerate(content.split("\n"), 1)
    records = [_line(path, k, text) for k, text in lines if text.strip()]
    check_depth(content.encode(), path)
    return records


def _line(path: Path, number: int, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"every line of {path} must be valid JSON, but line {number} is not: {error}",
            "the file may be cut off; export it again",
        ) from error


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
        f"{what} must be text or a number, but {where} has {shown(value)}",
        "correct the export",
    )


def object_at(value: object, what: str, where: str) -> Mapping[str, Any]:
    """The value, if it is a JSON object."""
    if isinstance(value, Mapping):
        return value
    raise InputError(f"{what} must be an object, but {where} has {shown(value)}", "export it again")


def list_at(value: object, what: str, where: str) -> Sequence[Any]:
    """The value, if it is a JSON list; null is an empty one."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise InputError(f"{what} must be a list, but {where} has {shown(value)}", "export it again")


_LINK = re.compile(r"(https?|s3|gs|azure-blob)://|/data/|data:", re.IGNORECASE)
"""How the fields begin that hold no text, but where an image or a recording lies."""


class MultiChoice(str, Enum):
    """What becomes of an answer with several labels."""

    ERROR = "error"
    FIRST = "first"
    SPLIT = "split"
    JOIN = "join"


class Unlabelled(str, Enum):
    """What happens to an item that nobody answered for."""

    SKIP = "skip"
    ERROR = "error"


class Anonymous(str, Enum):
    """Whose an answer is that names no annotator."""

    ERROR = "error"
    SEPARATE = "separate"


@dataclass
class Gathered:
    """Answers of people, gathered item by item from the export of an annotation tool."""

    unit: str
    """What the tool calls an item."""
    answer: str
    """What the tool calls an answer."""
    asked: str
    """The control or question that is answered."""
    anonymous: str
    """Policy for answers that name no annotator."""
    items: list[str] = field(default_factory=list)
    """The item of each answer [M]."""
    annotators: list[str] = field(default_factory=list)
    """The annotator of each answer [M]."""
    chosen: list[tuple[str, ...]] = field(default_factory=list)
    """The labels of each answer [M]."""
    about: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=list)
    """Every item with its fields (one of them the text) and its metadata (split, hard label)."""
    hard_labels: dict[str, str] = field(default_factory=dict)
    """Published hard label of an item."""
    silent: int = 0
    """Answers that leave the question open."""
    strangers: int = 0
    """Answers that name no annotator."""
    notes: list[str] = field(default_factory=list)
    """What the reader decided, for warnings."""

    def where(self, item: str) -> str:
        """The item, for a message."""
        return f"{self.unit} {examples([item])}"

    def add(self, item: str, annotator: str | None, labels: Sequence[str]) -> None:
        """One person's answer about an item."""
        if not labels:
            self.silent += 1
            return
        if annotator is None:
            self.strangers += 1
            annotator = f"unknown-{self.strangers}"
            if self.anonymous == Anonymous.ERROR:
                raise InputError(
                    f"every {self.answer} must name its annotator, but {self.where(item)} has one"
                    " that does not",
                    "choose anonymous='separate' to count each as another person",
                )
        self.items.append(item)
        self.annotators.append(annotator)
        self.chosen.append(tuple(dict.fromkeys(labels)))

    def publish(self, item: str, label: str) -> None:
        """The hard label of an item."""
        if self.hard_labels.setdefault(item, label) != label:
            raise InputError(
                f"every {self.unit} has one hard label, but {self.where(item)} has"
                f" {self.hard_labels[item]!r} and {label!r}",
                "keep one of them",
            )

    def annotations(
        self,
        *,
        text: str | None,
        multi_choice: str,
        unlabelled: str,
        classes: Sequence[object] | None,
        duplicates: str,
        split: str | None,
    ) -> Annotations:
        """The answers as annotations; what was decided on the way is told in warnings."""
        self._unlabelled(unlabelled)
        answered = set(self.items)
        texts = self._texts(text, answered)
        splits: dict[str, str] = {}
        for item, _, metadata in self.about:
            if metadata.get("split") not in (None, ""):
                name = plain(metadata["split"], "a split", self.where(item))
                self._once(splits, item, name, "split")
            if metadata.get("hard_label") not in (None, ""):
                self.publish(item, plain(metadata["hard_label"], "a hard label", self.where(item)))
        if split is not None:
            self._only(split, splits)
        kept = set(self.items)
        self.hard_labels = {k: label for k, label in self.hard_labels.items() if k in kept}
        table: dict[str, Any] = {"item": self.items, "annotator": self.annotators}
        table |= self._labels(MultiChoice(multi_choice), classes)
        roles = {"text": texts, "split": splits, "hard_label": self.hard_labels}
        for role, known in roles.items():
            if known:
                table[role] = [known.get(item, "") for item in self.items]
        if self.silent:
            self.notes.append(
                f"{self.silent} {self.answer}s do not answer {self.asked!r} and are left out"
            )
        if self.strangers:
            self.notes.append(
                f"{self.strangers} {self.answer}s name no annotator and count as one person each"
                " (anonymous='separate')"
            )
        for note in self.notes:
            warnings.warn(note, EDOWarning, stacklevel=3)
        return Annotations.from_table(table, classes=classes, duplicates=duplicates)

    def _unlabelled(self, policy: str) -> None:
        answered = set(self.items)
        everything = dict.fromkeys(item for item, _, _ in self.about)
        empty = [item for item in everything if item not in answered]
        if not answered:
            raise InputError(
                f"an export must hold at least one answer to {self.asked!r}, but none of its"
                f" {len(everything)} {self.unit}s has one",
                f"export {self.unit}s that people have labelled",
            )
        if empty and policy == Unlabelled.ERROR:
            raise InputError(
                f"every {self.unit} needs an annotation, but {len(empty)} of {len(everything)} have"
                f" none: {examples(empty)}",
                "choose unlabelled='skip' to leave them out",
            )
        if empty:
            self.notes.append(
                f"{len(empty)} of {len(everything)} {self.unit}s have no annotation and are left"
                f" out: {examples(empty)} (unlabelled='error' refuses them)"
            )

    def _only(self, split: str, splits: Mapping[str, str]) -> None:
        """Keep the answers of one split."""
        rows = [row for row, item in enumerate(self.items) if splits.get(item) == split]
        if not rows:
            known = examples(dict.fromkeys(splits.values()), 10)
            raise InputError(
                f"the split must be one that labelled {self.unit}s have"
                f" ({known or 'there is none'}), but got {split!r}",
                "choose one of these"
                if splits
                else "write it into a field called split, or leave the split out",
            )
        self.items = [self.items[row] for row in rows]
        self.annotators = [self.annotators[row] for row in rows]
        self.chosen = [self.chosen[row] for row in rows]

    def _texts(self, wanted: str | None, answered: set[str]) -> dict[str, str]:
        about = [(item, fields) for item, fields, _ in self.about if item in answered]
        name = self._text_field([fields for _, fields in about]) if wanted is None else wanted
        texts: dict[str, str] = {}
        if name is None:
            return texts
        for item, fields in about:
            value = fields.get(name)
            if wanted is not None and not isinstance(value, str):
                raise InputError(
                    f"the text must stand in the field {name!r}, but {self.where(item)} has"
                    f" {shown(value)} there",
                    f"its fields are {examples(fields, 10)}" if fields else "it has no fields",
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
                f"every {self.unit} has one {what}, but {self.where(item)} stands in the export"
                f" with two{both}",
                f"give each {self.unit} its own id",
            )

    def _labels(self, policy: MultiChoice, classes: Sequence[object] | None) -> dict[str, Any]:
        """The label column, or the p_<class> columns where answers are shared out."""
        several = [row for row, labels in enumerate(self.chosen) if len(labels) > 1]
        if several and policy is MultiChoice.ERROR:
            row = several[0]
            raise InputError(
                f"an annotator gives a {self.unit} one label, but annotator"
                f" {self.annotators[row]!r} gives {self.where(self.items[row])}"
                f" {len(self.chosen[row])}: {examples(self.chosen[row])}"
                f" ({len(several)} such {self.answer}s)",
                "choose multi_choice='split' to share the answer between its labels, 'first' to"
                " keep the first, 'join' to make each combination a class",
            )
        if policy is MultiChoice.JOIN:
            self.chosen = [("|".join(class_order(labels)),) for labels in self.chosen]
        elif policy is MultiChoice.FIRST:
            self.chosen = [labels[:1] for labels in self.chosen]
        published = dict.fromkeys(self.hard_labels.values())
        names = class_order({*(label for labels in self.chosen for label in labels), *published})
        if classes is not None:
            names = tuple(as_names(classes))
            self._check_declared(names)
        if not several or policy is not MultiChoice.SPLIT:
            return {"label": [labels[0] for labels in self.chosen]}
        sizes = np.array([len(labels) for labels in self.chosen])
        position = {name: k for k, name in enumerate(names)}
        rows = np.repeat(np.arange(len(sizes)), sizes)
        columns = [position[label] for labels in self.chosen for label in labels]
        shares = np.zeros((len(sizes), len(names)))
        shares[rows, columns] = 1 / sizes[rows]
        return {f"p_{name}": shares[:, k] for name, k in position.items()}

    def _check_declared(self, names: tuple[str, ...]) -> None:
        known = set(names)
        given = [*zip(self.items, self.chosen, strict=True)]
        given += [(item, (label,)) for item, label in self.hard_labels.items()]
        for item, labels in given:
            for label in labels:
                if label not in known:
                    raise InputError(
                        f"every label must be one of the declared classes"
                        f" {', '.join(map(repr, names))}, but {self.where(item)} has {label!r}",
                        "declare it among the classes, or correct the label",
                    )


OPTIONS = ("columns", "multi_choice", "text", "item", "unlabelled", "anonymous")
"""What can be said about every export."""


def with_fields(read: Callable[..., Annotations]) -> Callable[..., Annotations]:
    """The reader of an export, which names its fields item and text, as one that takes columns."""

    def renamed(
        path: Path, *, columns: Mapping[str, str] | None = None, **options: Any
    ) -> Annotations:
        wrong = [role for role in columns or {} if role not in ("item", "text")]
        if wrong:
            raise InputError(
                f"in an export the columns item and text can be named, but got {wrong[0]!r}",
                "leave it out",
            )
        with errors_in(path):
            return read(path, **options, **(columns or {}))

    return renamed
