"""Exports of annotation tools: records read with clear errors, labels collected as annotations."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import numpy as np

from edokit._errors import InputError, counted, examples, one_of, option, warn, word
from edokit._io import parse_json, read_json, read_text
from edokit._io.documents import show_value
from edokit._io.tables import read_table
from edokit._lazy import pa
from edokit._names import as_name
from edokit.annotations import Annotations, Duplicates
from edokit.annotations.labels import MULTI_CHOICE_HINT, MultiChoice, as_label_map
from edokit.annotations.long_table import ROLES, TEXTS, from_long_table
from edokit.scales import NOMINAL, Declared, ScaleLike

OPTIONS = ("columns", "label_map", "multi_choice", "anonymous")
"""What every export takes; see `Collected`."""
_POLICIES = {
    "multi_choice": get_args(MultiChoice),
    "anonymous": ("error", "separate"),
}
_LINK = re.compile(r"(https?|s3|gs|azure-blob)://|/data/|data:", re.IGNORECASE)
"""How fields begin that hold no text, but the address of an image or a recording."""


def load(source: Any, recognises: Callable[[Any], bool], wanted: str, hint: str) -> Any:
    """The records of a JSON, JSONL or Parquet file, or parsed JSON as it is; refused if no such."""
    data = _read(Path(source)) if isinstance(source, str | Path) else source
    if not recognises(data):
        raise InputError(f"this is {show_value(data) if data else 'empty'}, not {wanted}", hint)
    return data


def _read(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        table = read_table(path)
        # Times are of no use here, and some have no Python equivalent.
        names = [part.name for part in table.schema if not pa.types.is_temporal(part.type)]
        return table.select(names).to_pylist()
    if suffix not in (".jsonl", ".ndjson"):
        return read_json(path)
    lines = enumerate(read_text(path).split("\n"), 1)
    return [parse_json(line, f"line {number} of {path}") for number, line in lines if line.strip()]


def plain(value: object, what: str, where: str) -> str:
    """Text or a number as a name; anything else is refused."""
    usable = isinstance(value, str | int | float | np.integer | UUID)
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        usable = False
    # Half a surrogate pair can't be encoded, thousands of digits can't be written out.
    with suppress(ValueError):
        if usable and as_name(value).encode():
            return as_name(value)
    raise InputError(
        f"{where}: {what} should be text or a number, not {show_value(value)}", "correct the export"
    )


def object_at(value: object, what: str, where: str) -> Mapping[str, Any]:
    """The value, if it is a JSON object."""
    if isinstance(value, Mapping):
        return value
    raise InputError(
        f"{where}: {what} should be an object, not {show_value(value)}", "export it again"
    )


def list_at(value: object, what: str, where: str) -> Sequence[Any]:
    """The value, if it is a JSON list; null is an empty one."""
    if value is None or isinstance(value, list | tuple):
        return value or ()
    raise InputError(
        f"{where}: {what} should be a list, not {show_value(value)}", "export it again"
    )


@dataclass
class Collected:
    """Annotations from the export of an annotation tool, collected record by record."""

    unit: str
    """What the tool calls an item."""
    answer: str
    """What the tool calls an annotation."""
    asker: str
    """What the tool calls that which labels answer; also the option that names it."""
    columns: Mapping[str, str] | None = None
    """The fields with the ``item`` (by default the tool's own id), the ``text`` (by default the
    only one) and the ``context``, the other text of a pair."""
    multi_choice: MultiChoice = "error"
    """Several labels in one annotation are refused (``error``), cut to the ``first``, shared out
    evenly as probabilities (``split``) or made a class of their own (``join``)."""
    anonymous: str = "error"
    """Annotations that name nobody are refused (``error``) or each counted as one more annotator
    (``separate``)."""
    label_map: Mapping[str, str] | None = None
    """Labels to read as others."""
    classes: Sequence[object] | None = None
    duplicates: Duplicates = "error"
    split: str | None = None
    scale: ScaleLike | None = None
    asked: str = ""
    """The control or question that the labels come from."""
    rows: list[tuple[str, str, Sequence[str]]] = field(default_factory=list)
    """Item, annotator and labels of each annotation."""
    about: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=list)
    """Every item with its fields (one of them the text) and its metadata (split, hard label)."""
    hard_labels: dict[str, str] = field(default_factory=dict)
    """Published hard label of an item."""
    without_label: int = 0
    without_annotator: int = 0
    notes: list[str] = field(default_factory=list)
    """What the reader decided, for warnings."""

    def __post_init__(self) -> None:
        for name, allowed in _POLICIES.items():
            one_of(name, getattr(self, name), allowed)
        self.sets = Declared(self.scale or NOMINAL).kind == "multi-label"
        names = self.columns or {}
        self.item, self.text, self.context = map(names.get, ("item", *TEXTS))
        for role in names:
            if role not in ("item", *TEXTS):
                raise InputError(
                    f"{option('columns')}: in an export only item, text and context can be named,"
                    f" not {role!r}",
                    "leave it out",
                )

    def where(self, item: str) -> str:
        """The item, for a message."""
        return f"{self.unit} {examples([item])}"

    def choose(
        self,
        wanted: str | None,
        counts: Mapping[str, int],
        *,
        found: Sequence[str],
        labels: Collection[str],
        otherwise: str,
    ) -> str:
        """The control or question that the labels come from; it must be named if there are several.

        ``counts`` has the annotations of each one, ``labels`` those that label whole items,
        ``found`` those that need not be named. ``otherwise`` says what the others do.
        """
        if wanted in labels or (wanted is None and len(found) == 1):
            self.asked = found[0] if wanted is None else wanted
            return self.asked
        asker, units = self.asker, f"{self.unit}s"
        listed = ", ".join(f"{name!r} ({counted(counts[name], 'annotation')})" for name in found)
        if wanted is None and found:
            problem = f"several {asker}s give labels: {listed}"
            hint = f"choose one with {option(asker, found[0])}"
        elif wanted is None:
            problem = f"no {asker} gives labels to the {len(self.about)} {units}"
            hint = f"name it with {option(asker)}, or export {units} with labels"
        elif wanted not in counts:
            problem = f"no annotation is about the {asker} {wanted!r}; those with labels are"
            problem, hint = f"{problem} {listed or 'none'}", "check the spelling"
        else:
            problem = f"the {asker} {wanted!r} does not label whole {units}: it {otherwise}"
            hint = f"choose one of {listed}" if found else f"export {units} with labels"
        raise InputError(problem, hint)

    def add(self, item: str, annotator: str | None, labels: Sequence[str] | None) -> None:
        """One annotation of an item; None where it holds no label, an empty list is a set."""
        if labels is None or not (labels or self.sets):
            self.without_label += 1
            return
        if annotator is None:
            self.without_annotator += 1
            annotator = f"unknown-{self.without_annotator}"
            if self.anonymous == "error":
                raise InputError(
                    f"{self.where(item)} has a labelled {self.answer} that names no annotator",
                    f"choose {option('anonymous', 'separate')} to count each as another annotator",
                )
        self.rows.append((item, annotator, [*dict.fromkeys(labels)]))

    def once(self, known: dict[str, str], item: str, value: str, what: str) -> None:
        """Set what is known about an item; two values that differ are refused."""
        if known.setdefault(item, value) != value:
            # Somebody's text is not shown in messages.
            values_text = "" if what == "text" else f": {word(known[item])} and {word(value)}"
            raise InputError(
                f"{self.where(item)} has two {what}s{values_text}",
                f"keep one of them, or give each {self.unit} its own id",
            )

    def annotations(self) -> Annotations:
        """All of it as annotations; what was decided on the way is given in warnings."""
        labelled = {item for item, _, _ in self.rows}
        self._note_unlabelled(labelled)
        texts, contexts = self._item_texts(labelled)
        splits = self._splits()
        self._map_labels()
        self._select_split(splits)
        items = [item for item, _, _ in self.rows]
        kept_items = set(items)
        hard_labels = {i: label for i, label in self.hard_labels.items() if i in kept_items}
        table: dict[str, Any] = {"item": items, "annotator": [name for _, name, _ in self.rows]}
        table["label"] = self._labels()
        roles = {"text": texts, "context": contexts, "split": splits, "hard_label": hard_labels}
        columns = {role: values for role, values in roles.items() if values}
        used_names = {*ROLES, *table, *columns, self.text, self.context, self.item}
        for name, values in {**columns, **self._columns(kept_items, used_names)}.items():
            table[name] = [values.get(item, "") for item in items]
        self._warn()
        return from_long_table(
            table,
            classes=self.classes,
            duplicates=self.duplicates,
            attributes=[],
            multi_choice=self.multi_choice,
            scale=self.scale,
            place=lambda row: self.where(items[row]),
        )

    def _item_texts(self, labelled: set[str]) -> tuple[dict[str, str], dict[str, str]]:
        """The texts of labelled items, and their contexts."""
        about = [(item, fields) for item, fields, _ in self.about if item in labelled]
        text_named, context_named = self.text is not None, self.context is not None
        self.text = self.text or self._text_field([fields for _, fields in about])
        texts = self._texts(about, self.text, text_named)
        # A field of this name goes with the text, as in a table.
        if self.text not in (None, "context"):
            self.context = self.context or "context"
        return texts, self._texts(about, self.context, context_named)

    def _splits(self) -> dict[str, str]:
        """The split of each item; hard labels in the metadata are noted, too."""
        splits: dict[str, str] = {}
        for item, _, metadata in self.about:
            for role, values in (("split", splits), ("hard_label", self.hard_labels)):
                if metadata.get(role) not in (None, ""):
                    noun = role.replace("_", " ")
                    value = plain(metadata[role], f"the {noun}", self.where(item))
                    self.once(values, item, value, noun)
        return splits

    def _select_split(self, splits: Mapping[str, str]) -> None:
        if self.split is not None:
            self.rows = [row for row in self.rows if splits.get(row[0]) == self.split]
        if not self.rows:
            raise InputError(
                f"no labelled {self.unit} is in the split {self.split!r}; there are the splits"
                f" {examples(dict.fromkeys(splits.values()), 10) or '(none)'}",
                "choose one of these"
                if splits
                else f"write it into a field called split, or leave {option('split')} out",
            )

    def _warn(self) -> None:
        """Say what was decided on the way."""
        for note in self.notes:
            warn(note)
        if self.without_label:
            problem = f"have no label for {self.asked!r} and are left out"
            warn(f"{self.without_label} {self.answer}s {problem}")
        if empty := sum(not labels for _, _, labels in self.rows):
            warn(f"{counted(empty, self.answer)} without a choice counted as the empty set")
        if self.without_annotator:
            choice = option("anonymous", "separate")
            problem = f"name no annotator and count as one annotator each ({choice})"
            warn(f"{self.without_annotator} {self.answer}s {problem}")

    def _map_labels(self) -> None:
        labels_used = {label for _, _, labels in self.rows for label in labels}
        mapping = as_label_map(self.label_map, labels_used.union(self.hard_labels.values()))
        self.rows = [
            (item, name, [*dict.fromkeys(mapping.get(label, label) for label in labels)])
            for item, name, labels in self.rows
        ]
        hard = self.hard_labels.items()
        self.hard_labels = {item: mapping.get(label, label) for item, label in hard}

    def _columns(self, kept: set[str], taken: Collection[object]) -> dict[str, dict[str, str]]:
        """Other fields and metadata of the items that are text or numbers, by name."""
        columns: dict[str, dict[str, str]] = {}
        differing = dict[str, None]()
        for item, fields, metadata in self.about:
            for name, value in {**metadata, **fields}.items():
                if item not in kept or name in taken or isinstance(value, bool):
                    continue
                with suppress(InputError):
                    text = plain(value, "", "")
                    if columns.setdefault(str(name), {}).setdefault(item, text) != text:
                        differing[str(name)] = None
        if differing:
            self.notes.append(
                f"{examples(differing, 6)}: a {self.unit} has several values, so the field is left"
                " out"
            )
        return {name: values for name, values in columns.items() if name not in differing}

    def _note_unlabelled(self, labelled: set[str]) -> None:
        everything = dict.fromkeys(item for item, _, _ in self.about)
        empty = [item for item in everything if item not in labelled]
        if not labelled:
            raise InputError(
                f"none of the {len(everything)} {self.unit}s has a label for {self.asked!r}",
                f"export {self.unit}s that are labelled",
            )
        if empty:
            self.notes.append(
                f"{len(empty)} of {len(everything)} {self.unit}s have no annotation and are left"
                f" out: {examples(empty)}"
            )

    def _texts(
        self, about: Sequence[tuple[str, Mapping[str, Any]]], name: str | None, named: bool
    ) -> dict[str, str]:
        """The text of each item in a field, which every item has if the user named it."""
        texts: dict[str, str] = {}
        if name is None:
            return texts
        for item, fields in about:
            value = fields.get(name)
            if isinstance(value, str):
                # Half a surrogate pair, as a cut-off emoji leaves it, can't be stored.
                value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                self.once(texts, item, value, "text")
            elif named:
                raise InputError(
                    f"{self.where(item)} has {show_value(value)} in the field {name!r}, not a text",
                    f"its fields are {examples(fields, 10)}" if fields else "it has no fields",
                )
        return texts

    def _text_field(self, rows: list[Mapping[str, Any]]) -> str | None:
        is_text: dict[str, bool] = {}
        for fields in rows:
            for name, value in fields.items():
                if isinstance(value, str) and value and name not in ("split", "hard_label"):
                    is_text[name] = is_text.get(name, False) or not _LINK.match(value)
        names = [str(name) for name, readable in is_text.items() if readable]
        names = [name for name in names if name != "context"] or names
        if "text" in names or len(names) == 1:
            return "text" if "text" in names else names[0]
        if names:
            self.notes.append(
                f"the {self.unit}s have several fields of text ({examples(names, 6)}), so none was"
                f" taken; choose one with {option('columns', {'text': names[0]})}"
            )
        return None

    def _labels(self) -> list[str]:
        """The label of each annotation; where some have several, all are lists, as in a table: a
        choice called calm/heated is one label."""
        several = [] if self.sets else [row for row in self.rows if len(row[2]) > 1]
        if several and self.multi_choice == "error":
            item, annotator, labels = several[0]
            raise InputError(
                f"{self.where(item)} has {counted(len(labels), 'label')} of annotator"
                f" {annotator!r}:"
                f" {examples(labels)} ({len(several)} such {self.answer}s)",
                MULTI_CHOICE_HINT,
            )
        return [
            json.dumps(labels) if self.sets or several else labels[0] for _, _, labels in self.rows
        ]
