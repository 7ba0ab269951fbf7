"""Exports of annotation tools: records read with clear errors, labels collected as annotations."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa

from edokit._errors import InputError, counted, examples, one_of, option, warn
from edokit._io import parse_json, read_json, read_text
from edokit._io.documents import show_value
from edokit._io.tables import read_table
from edokit._names import as_name
from edokit.annotations import Annotations, Duplicates
from edokit.annotations.labels import MultiChoice
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


class Record(NamedTuple):
    """An item of an export; an export may hold several records of one item."""

    item: str
    fields: Mapping[str, Any]
    """Its fields, one of them the text."""
    metadata: Mapping[str, Any]
    """Further values (split, hard label)."""


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
    rows: list[tuple[Record, str, Sequence[str]]] = field(default_factory=list)
    """Item, annotator and labels of each annotation."""
    records: list[Record] = field(default_factory=list)
    """Every item, with annotations or without."""
    hard_labels: dict[str, str] = field(default_factory=dict)
    """Published hard label of an item, where an annotation gives it."""
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

    def choose(self, name: str | None, counts: Mapping[str, int], labels: Collection[str]) -> str:
        """The control or question that the labels come from; it must be named if there are several.

        ``labels`` are those that label whole items, ``counts`` has the annotations of those that
        need not be named.
        """
        if name in labels or (name is None and len(counts) == 1):
            self.asked = next(iter(counts)) if name is None else name
            return self.asked
        listed = ", ".join(f"{k!r} ({counted(n, 'annotation')})" for k, n in counts.items())
        if name is not None:
            problem = f"no annotation labels a whole {self.unit} with the {self.asker} {name!r}"
        elif counts:
            problem = f"several {self.asker}s give labels"
        else:
            problem = f"no {self.asker} gives labels to the {len(self.records)} {self.unit}s"
        raise InputError(
            f"{problem}; those with labels are {listed or 'none'}",
            f"name one with {option(self.asker, next(iter(counts), 'NAME'))}",
        )

    def add(self, record: Record, annotator: str | None, labels: Sequence[str] | None) -> None:
        """One annotation of an item; None where it holds no label, an empty list is a set."""
        if labels is None or not (labels or self.sets):
            self.without_label += 1
            return
        if annotator is None:
            self.without_annotator += 1
            annotator = f"unknown-{self.without_annotator}"
            if self.anonymous == "error":
                raise InputError(
                    f"{self.where(record.item)} has a labelled {self.answer} that names no"
                    " annotator",
                    f"choose {option('anonymous', 'separate')} to count each as another annotator",
                )
        self.rows.append((record, annotator, [*dict.fromkeys(labels)]))

    def annotations(self) -> Annotations:
        """All of it as annotations; what was decided on the way is given in warnings."""
        items = [record.item for record, _, _ in self.rows]
        labelled = {*items}
        unlabelled = {record.item: None for record in self.records if record.item not in labelled}
        if not labelled:
            raise InputError(
                f"none of the {len(unlabelled)} {self.unit}s has a label for {self.asked!r}",
                f"export {self.unit}s that are labelled",
            )
        if unlabelled:
            self.notes.append(
                f"{len(unlabelled)} of {len(labelled) + len(unlabelled)} {self.unit}s have no"
                f" annotation and are left out: {examples(unlabelled)}"
            )
        text = self.text or self._text_field([record.fields for record, _, _ in self.rows])
        # A field called context goes with the text, as in a table.
        context = self.context or ("context" if text not in (None, "context") else None)
        several = self.sets or any(len(labels) > 1 for _, _, labels in self.rows)
        table = pd.DataFrame(
            {
                **self._columns(record, text, context),
                "item": record.item,
                "annotator": annotator,
                # Where some have several labels all are lists, as in a table: a choice called
                # calm/heated is one label.
                "label": json.dumps(labels) if several else labels[0],
            }
            for record, annotator, labels in self.rows
        )
        annotations = from_long_table(
            table.fillna(""),
            classes=self.classes,
            duplicates=self.duplicates,
            split=self.split,
            attributes=[],
            label_map=self.label_map,
            multi_choice=self.multi_choice,
            scale=self.scale,
            place=lambda row: self.where(items[row]),
        )
        self._warn()
        return annotations

    def _columns(self, record: Record, text: str | None, context: str | None) -> dict[str, str]:
        """What is known of an item, by column: texts, split, hard label and plain fields."""
        columns: dict[str, str] = {}
        place = self.where(record.item)
        for name, value in {**record.metadata, **record.fields}.items():
            if name not in {*ROLES, text, context, self.item} and not isinstance(value, bool):
                with suppress(InputError):
                    columns[str(name)] = plain(value, "", "")
        for role in ("split", "hard_label"):
            if record.metadata.get(role) not in (None, ""):
                columns[role] = plain(record.metadata[role], f"the {role}", place)
        if record.item in self.hard_labels:
            columns["hard_label"] = self.hard_labels[record.item]
        for role, field_name in (("text", text), ("context", context)):
            value = record.fields.get(field_name or "")
            if isinstance(value, str):
                # Half a surrogate pair, as a cut-off emoji leaves it, can't be stored.
                value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                columns[role] = value
            elif (self.columns or {}).get(role):
                raise InputError(
                    f"{place} has {show_value(value)} in the field {field_name!r}, not a text",
                    f"its fields are {examples(record.fields, 10) or '(none)'}",
                )
        return columns

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
