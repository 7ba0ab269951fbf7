"""Exports of annotation tools: what people answered, brought into a long table."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import pandas as pd
import pyarrow as pa
from pydantic import BeforeValidator

from edokit._errors import InputError, counted, examples, option, warn
from edokit._io.documents import parse_json, read_json, read_text, show_value, to_model
from edokit._io.tables import read_table
from edokit._names import as_name
from edokit.annotations.core import Annotations
from edokit.annotations.long_table import TEXTS, from_long_table
from edokit.scales import NOMINAL, DeclaredScale, ScaleLike

OPTIONS = ("columns", "label_map")
"""What every export takes; see `Export`."""
_LINK = re.compile(r"(https?|s3|gs|azure-blob)://|/data/|data:", re.IGNORECASE)
"""How fields begin that hold no text, but the address of an image or a recording."""
_NOT_COLUMNS = {"item", "annotator", "label", *TEXTS}
Model = TypeVar("Model")


def is_plain(value: object) -> bool:
    """Whether a value is text or a number."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int) and not isinstance(value, bool)


def _plain_name(value: object) -> str:
    if not is_plain(value):
        raise ValueError(f"should be text or a number, not {show_value(value)}")
    return as_name(value)


Name = Annotated[str, BeforeValidator(_plain_name)]
"""Text, or a number as text."""


class Response(NamedTuple):
    """What one annotator answered about an item.

    Attributes
    ----------
    fields : Mapping[str, Any]
        The fields of the item, one of them the text.
    labels : Mapping[str, Sequence[str] or None]
        The labels that answer each question that was asked: an empty list where none was chosen,
        None where the answer is no label.
    metadata : Mapping[str, Any]
        Further values of the item.
    """

    item: str
    fields: Mapping[str, Any]
    annotator: str | None
    labels: Mapping[str, Sequence[str] | None]
    metadata: Mapping[str, Any] = {}


class Export:
    """The words of an annotation tool, and how its exports are read.

    Parameters
    ----------
    unit : str
        What the tool calls an item.
    answer : str
        What the tool calls an annotation.
    asker : str
        What the tool calls that which labels answer; also the option that names it.
    columns : mapping of str to str, optional
        The fields with the ``item`` (by default the tool's own id), the ``text`` (by default the
        only one) and the ``context``, the other text of a pair.
    scale : Scale or str, optional
        The answer scale.
    **options
        How labels are read, as by `from_long_table`.
    """

    def __init__(
        self,
        unit: str,
        answer: str,
        asker: str,
        *,
        columns: Mapping[str, str] | None = None,
        scale: ScaleLike | None = None,
        **options: Any,
    ) -> None:
        self.unit, self.answer, self.asker = unit, answer, asker
        self.columns, self.scale, self.options = dict(columns or {}), scale, options
        for role in self.columns:
            if role not in ("item", *TEXTS):
                raise InputError(
                    f"{option('columns')}: in an export only item, text and context can be named,"
                    f" not {role!r}",
                    "leave it out",
                )

    def place(self, item: str) -> str:
        """The item, for a message."""
        return f"{self.unit} {examples([item])}"

    def item_name(
        self, fields: Mapping[str, Any], ids: Mapping[str, str | None], number: int
    ) -> str:
        """The item's name: in the field that was named, else the first id that there is."""
        name = self.columns.get("item")
        values = ids.values() if name is None else [fields.get(name)]
        for value in values:
            if is_plain(value):
                return as_name(value)
        raise InputError(
            f"{self.unit} number {number} has no {' or '.join(map(repr, [name] if name else ids))}"
            f" with its id; its fields are {examples(fields, 10) or '(none)'}",
            f"name a field with {option('columns', {'item': 'NAME'})}",
        )

    def annotations(
        self,
        responses: Sequence[Response],
        items: Collection[str],
        question: str | None,
    ) -> Annotations:
        """The responses to a question as annotations.

        ``items`` are all that the export holds. What is left out or decided is given in warnings.
        """
        question = self._choose(question, responses, items)
        relevant = [response for response in responses if question in response.labels]
        is_set = DeclaredScale(self.scale or NOMINAL).kind == "multi-label"
        # An empty list is a set of labels; None is no answer.
        answered = [
            r for r in relevant if r.labels[question] or (is_set and r.labels[question] == [])
        ]
        labels = [[*dict.fromkeys(response.labels[question] or ())] for response in answered]
        annotations = from_long_table(
            self._table(answered, labels, is_set),
            attributes=[],
            scale=self.scale,
            place=lambda row: self.place(answered[row].item),
            **self.options,
        )
        self._warn_of_unlabelled(items, {response.item for response in answered})
        for number, note in (
            (len(relevant) - len(answered), f"without a label for {question!r} left out"),
            (labels.count([]), "without a choice counted as the empty set"),
            (
                sum(not response.annotator for response in answered),
                "without an annotator counted as one annotator each",
            ),
        ):
            if number:
                warn(f"{counted(number, self.answer)} {note}")
        return annotations

    def _table(
        self, answered: Sequence[Response], labels: Sequence[list[str]], is_set: bool
    ) -> pd.DataFrame:
        """A row for each response, with its labels."""
        # Where some have several labels all are lists, as in a table: a choice called calm/heated
        # is one label.
        is_list = is_set or any(len(names) > 1 for names in labels)
        texts = {"text": self._text_field(answered), "context": "context"} | self.columns
        unnamed = count(1)
        rows = [
            self._columns(response, texts)
            | {
                "item": response.item,
                "annotator": response.annotator or f"unknown-{next(unnamed)}",
                "label": json.dumps(names) if is_list else names[0],
            }
            for response, names in zip(answered, labels, strict=True)
        ]
        return pd.DataFrame(rows).fillna("")

    def _warn_of_unlabelled(self, items: Collection[str], labelled: Collection[str]) -> None:
        """Name items that nobody labelled."""
        if unlabelled := [item for item in dict.fromkeys(items) if item not in labelled]:
            warn(
                f"{len(unlabelled)} of {len(labelled) + len(unlabelled)} {self.unit}s have no"
                f" annotation and are left out: {examples(unlabelled)}"
            )

    def _choose(
        self, name: str | None, responses: Sequence[Response], items: Collection[str]
    ) -> str:
        """The question that labels come from; it must be named if there are several."""
        counts = Counter(
            question
            for response in responses
            for question, labels in response.labels.items()
            if labels
        )
        if name in counts or (name is None and len(counts) == 1):
            return name or next(iter(counts))
        listed = ", ".join(f"{k!r} ({counted(n, 'annotation')})" for k, n in counts.items())
        if name is not None:
            problem = f"no annotation labels a whole {self.unit} with the {self.asker} {name!r}"
        elif counts:
            problem = f"several {self.asker}s give labels"
        else:
            problem = f"no {self.asker} gives labels to the {len(items)} {self.unit}s"
        raise InputError(
            f"{problem}; those with labels are {listed or 'none'}",
            f"name one with {option(self.asker, next(iter(counts), 'NAME'))}",
        )

    def _columns(self, response: Response, texts: Mapping[str, str | None]) -> dict[str, str]:
        """What is known of an item, by column: texts and plain fields."""
        columns = {
            str(name): as_name(value)
            for name, value in {**response.metadata, **response.fields}.items()
            if is_plain(value) and name not in {*_NOT_COLUMNS, *texts.values()}
        }
        for role in TEXTS:
            text = response.fields.get(texts[role] or "")
            # A field called context goes with a text.
            if isinstance(text, str) and (role == "text" or texts["text"] not in (None, "context")):
                columns[role] = text
            elif role in self.columns:
                raise InputError(
                    f"{self.place(response.item)} has {show_value(text)} in the field"
                    f" {texts[role]!r}, not a text",
                    f"its fields are {examples(response.fields, 10) or '(none)'}",
                )
        return columns

    def _text_field(self, answered: Sequence[Response]) -> str | None:
        """The field that holds the text: the only one, or the one called text."""
        reserved = {"split", "hard_label", *self.columns.values()}
        names = dict.fromkeys(
            str(name)
            for response in answered
            for name, value in response.fields.items()
            if isinstance(value, str) and value and not _LINK.match(value)
        )
        readable = [name for name in names if name not in reserved]
        candidates = [name for name in readable if name != "context"] or readable
        if "text" in candidates or len(candidates) == 1:
            return "text" if "text" in candidates else candidates[0]
        if candidates and "text" not in self.columns:
            warn(
                f"the {self.unit}s have several fields of text ({examples(candidates, 6)}), so none"
                f" was taken; choose one with {option('columns', {'text': candidates[0]})}"
            )
        return None


def load(source: Any) -> Any:
    """The records of a JSON, JSONL or Parquet file, or parsed JSON as it is."""
    if not isinstance(source, str | Path):
        return source
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        table = read_table(path)
        # Times are of no use here, and some have no Python equivalent.
        names = [part.name for part in table.schema if not pa.types.is_temporal(part.type)]
        return table.select(names).to_pylist()
    if suffix not in (".jsonl", ".ndjson"):
        return read_json(path, math.inf)
    lines = enumerate(read_text(path).split("\n"), 1)
    return [parse_json(line, f"line {number} of {path}") for number, line in lines if line.strip()]


def as_records(source: Any, content: Any, model: type[Model], title: str, hint: str) -> list[Model]:
    """The records of an export as models; a single record is one of a list."""
    path = source if isinstance(source, str | Path) else "this"
    records = [content] if isinstance(content, dict) else content
    return to_model(records, list[model], path, title=title, hint=hint)  # type: ignore[valid-type]
