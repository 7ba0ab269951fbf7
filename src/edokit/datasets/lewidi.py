"""The LeWiDi datasets of 2023 and 2025, from their JSON files as published."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pandas as pd
from pydantic import Field, JsonValue

from edokit._errors import HAVE, InputError, are, counted, errors_in, examples, option, warn
from edokit._io.documents import (
    Document,
    parse_json,
    parsed_size,
    read_json,
    read_text,
    to_model,
)
from edokit._io.memory import check_memory
from edokit._names import as_name, as_names
from edokit.annotations.core import Annotations, no_split
from edokit.annotations.long_table import COLUMNS, STRICT, Policies, from_long_table
from edokit.datasets.exports import Name, is_plain
from edokit.datasets.read import Source, SourceItems
from edokit.scales import DeclaredScale, ScaleLike

TURNS = ("prev_agent", "prev_user", "agent", "user")
"""The turns of a conversation in ConvAbuse, of which the user's last one was annotated."""
SEVERITY = {"-3": "1", "-2": "1", "-1": "1", "0": "0", "1": "0"}
"""The labels of ConvAbuse and their classes: below 0 is abusive."""
BINARY = ("0", "1")
"""The classes of 2023, and of MP in 2025."""
SCALES = {
    ("context", "response"): "ordinal:1,2,3,4,5,6",
    ("post", "reply"): "nominal",
    ("Question1", "Question2"): "ordinal:-5,-4,-3,-2,-1,0,1,2,3,4,5",
    ("context", "statement"): "multi-label:contradiction,entailment,neutral",
}
"""Context and text of CSC, MP, Paraphrase and VariErrNLI, and the answer scale of each."""
SPLITS = ("train", "dev", "test")
FILE_NAME = re.compile(rf"(?P<dataset>.+)_(?P<split>{'|'.join(SPLITS)})")
METADATA = "_annotators_meta.json"
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])')
"""A text, or a comma after the last entry of an object or a list."""
_GAPS = ("nan", "DATA_EXPIRED", "CONSENT_REVOKED")
"""What the metadata hold where an annotator's attribute is not known, or may not be used."""
_HINT = "correct the file, or download it again"


def parse_dialogue(text: str) -> tuple[str, ...] | None:
    """The turns of a conversation in JSON; None if the text is not a conversation."""
    try:
        content = parse_json(text, "the text") if text.lstrip().startswith("{") else {}
    except InputError:
        return None
    turns: tuple[Any, ...] = tuple(content.get(name) for name in TURNS)
    return turns if all(isinstance(turn, str) for turn in turns) else None


def _lines(turns: Sequence[str]) -> str:
    return "\n".join(turn for turn in turns if turn.strip())


class PublishedItem(Document):
    """What items of 2023 and 2025 have in common.

    Attributes
    ----------
    name : str
        With its split in front.
    """

    annotators: str
    split: str | None = None
    lang: JsonValue = None
    other_info: JsonValue = None
    name: str = ""
    fault: ClassVar[Any] = ""

    @cached_property
    def annotator_names(self) -> list[str]:
        """Those who annotated the item."""
        return [name.strip() for name in self.annotators.split(",")]

    @property
    def notes(self) -> dict[str, Any]:
        """What else was published of the item."""
        return self.other_info if isinstance(self.other_info, dict) else {}

    @property
    def columns(self) -> dict[str, str]:
        """What else is known of an item: its language, and plain values such as its domain."""
        return {
            name: as_name(value)
            for name, value in {"lang": self.lang, **self.notes}.items()
            # Annotators' own reasons give the answer away.
            if is_plain(value) and name not in COLUMNS and "explanation" not in name.lower()
        }


class Item2023(PublishedItem):
    """An item of 2023.

    Attributes
    ----------
    hard_label : Name
        Text in most places, a number in some rows of ConvAbuse.
    is_dialogue : bool
        Whether the text is a conversation, as all are in its file.
    """

    text: str
    annotations: str
    hard_label: Name
    is_dialogue: bool = False
    scale: ClassVar[str] = "nominal"

    def texts(self, user_first: bool) -> dict[str, str]:
        """The text, of a conversation a line per turn; or the annotated turn and its context."""
        turns = parse_dialogue(self.text) if self.is_dialogue else None
        if turns is None:
            return {"text": self.text}
        *earlier, user = turns
        if user_first:
            return {"text": user, "context": _lines(earlier)}
        return {"text": _lines(turns)}

    @cached_property
    def groups(self) -> list[str]:
        """The group of each annotator, as HS-Brexit lists them or ArMIS names them; else none."""
        for field, value in self.notes.items():
            if field.lower().replace("_", " ") == "annotators group":
                groups = [part.strip() for part in str(value).split(",")]
                return [str(self.notes.get(group, group)) for group in groups]
        if all(name in self.notes for name in self.annotator_names):
            return [str(self.notes[name]) for name in self.annotator_names]
        return []

    @property
    def columns(self) -> dict[str, str]:
        """As of any item; where it has the groups of the annotators, the rest explains these."""
        columns = super().columns
        columns = {"lang": columns["lang"]} if self.groups else columns
        return {**columns, "hard_label": self.hard_label.strip()}

    @cached_property
    def answers(self) -> list[dict[str, str]]:
        """Annotator, label and group of each annotation."""
        classes = SEVERITY if self.is_dialogue else {}
        labels = [label.strip() for label in self.annotations.split(",")]
        return [
            {"annotator": name, "label": classes.get(label, label)}
            | ({"group": group} if group else {})
            for name, label, group in zip_longest(self.annotator_names, labels, self.groups)
        ]

    @property
    def fault(self) -> str:
        """What is not as published, if anything."""
        labels, names, groups = self.annotations.split(","), self.annotator_names, self.groups
        if {len(labels), len(groups or names)} != {len(names)}:
            noted = f" and {counted(len(groups), 'group')}" if groups else ""
            return (
                f"has {counted(len(labels), 'annotation')}{noted} for"
                f" {counted(len(names), 'annotator')}"
            )
        if self.is_dialogue and parse_dialogue(self.text) is None:
            turns = ", ".join(TURNS)
            return f"has a text that is not a conversation like others: JSON with the turns {turns}"
        return ""


class Item2025(PublishedItem):
    """An item of 2025, whose labels may be held out."""

    text: Annotated[dict[str, str], Field(min_length=2, max_length=2)]
    annotations: dict[str, Name] | None = None

    @property
    def text_names(self) -> tuple[str, str]:
        """The names of context and text, which come in this order."""
        earlier, later = self.text
        return (later, earlier) if (later, earlier) in SCALES else (earlier, later)

    @property
    def scale(self) -> str | None:
        """The answer scale of the dataset, if it is a known one."""
        return SCALES.get(self.text_names)

    def texts(self, user_first: bool) -> dict[str, str]:
        """Context and text."""
        context, text = (self.text[name] for name in self.text_names)
        return {"text": text, "context": context}

    @cached_property
    def answers(self) -> list[dict[str, str]]:
        """Annotator and label of each annotation."""
        annotations = (self.annotations or {}).items()
        return [{"annotator": name.strip(), "label": label} for name, label in annotations]


def read_lewidi(
    path: str | Path,
    *,
    split: str | None = None,
    classes: Sequence[object] | None = None,
    policies: Policies = STRICT,
    user_first: bool = False,
    columns: Mapping[str, str] | None = None,
    scale: ScaleLike | None = None,
) -> Annotations:
    """Read one JSON file (``HS-Brexit_dev.json``) or a folder of splits (``HS-Brexit/``).

    Items are named ``<split>-<key>``, with the split in the name of the file. Soft labels follow
    from the annotations, not from the rounded ones in the file. Items have the column ``lang`` and
    what is plain in ``other_info`` (``domain``, ``bot``); explanations are not read. ``duplicates``
    are "all" by default because one item of MD-Agreement lists an annotator twice. With
    ``user_first``, texts of ConvAbuse are the annotated utterances, the turns before are contexts.
    ``columns`` may name what groups items: ``{"group": "context"}`` keeps the replies to a post
    together.

    2023: classes are "0" and "1", hard labels are the published ones, and the annotators of
    HS-Brexit and ArMIS have the attribute ``group``. 2025: the text is the response, reply, second
    question or statement, its context the other one; annotators have the attributes in the metadata
    file beside the data. Items without annotations (a test set whose labels are held out) are left
    out with a warning; `read_lewidi_items` reads their texts.
    """
    for role in columns or {}:
        if role != "group":
            raise InputError(
                f"{option('columns')}: in a LeWiDi file only group can be named, not {role!r}",
                "leave it out",
                code="unknown-role",
            )
    items = _read(Path(path), split)
    labelled = [item for item in items if item.answers]
    if not labelled:
        raise InputError(
            f"{path}: no item of {_splits(items)} has annotations: its labels are held out",
            f"choose another {option('split')}, or read the texts alone: edo score --texts",
            code="missing-labels",
        )
    table, names = _table(labelled, user_first, _metadata(Path(path)))
    noted = items[0].scale
    if classes is None and noted is not None and DeclaredScale(scale or noted).classes is None:
        classes = DeclaredScale(noted).classes or BINARY
    with errors_in(path):
        annotations = from_long_table(
            table,
            columns=columns,
            classes=classes,
            policies=replace(policies, duplicates=policies.duplicates or "all"),
            attributes=names,
            scale=scale or noted,
            place=lambda row: f"item {table['item'][row]!r}",
        )
    if without := len(items) - len(labelled):
        splits = _splits([item for item in items if not item.answers])
        warn(
            f"{are(without, len(items), HAVE, 'item')} no annotations and"
            f" {'is' if without == 1 else 'are'} left out: the labels of {splits} are held out"
        )
    return annotations


def _table(
    labelled: Sequence[Item2023 | Item2025], user_first: bool, attributes: pd.DataFrame
) -> tuple[pd.DataFrame, list[str]]:
    """A row for each annotation, and the columns that describe annotators."""
    rows: list[dict[str, Any]] = []
    for item in labelled:
        shared = {**item.columns, **item.texts(user_first), "item": item.name, "split": item.split}
        rows += [shared | answer for answer in item.answers]
    table = pd.DataFrame(rows)
    # The keys of MP's metadata lack the prefix Ann.
    keys = table["annotator"].where(
        table["annotator"].isin(attributes.index), table["annotator"].str.removeprefix("Ann")
    )
    names = list(map(str, attributes))
    table[names] = attributes.reindex(keys).to_numpy()
    if "group" in table:
        # Not every item names the groups of its annotators.
        groups = table.groupby("annotator")["group"].transform("first")
        table["group"], names = table["group"].fillna(groups), ["group"]
    return table.fillna(""), names


def read_lewidi_items(
    path: str | Path,
    *,
    split: str | None = None,
    user_first: bool = False,
    columns: Mapping[str, str] | None = None,
) -> SourceItems:
    """The texts of one file or a folder and who annotated them, with labels or without.

    ``columns``, which `read_lewidi` takes, does not matter here: it names the groups of items.
    """
    items = _read(Path(path), split)
    texts = pd.DataFrame([item.texts(user_first) for item in items])
    return SourceItems(
        items=as_names(item.name for item in items),
        texts=as_names(texts["text"]),
        contexts=as_names(texts["context"]) if "context" in texts else None,
        annotators=[tuple(dict.fromkeys(item.annotator_names)) for item in items],
    )


def split_files(path: Path) -> list[Path]:
    """The file itself, or the splits in a folder in the order train, dev, test."""
    if not path.is_dir():
        return [path]
    splits = [
        (match["dataset"], SPLITS.index(match["split"]), file)
        for file in path.glob("*.json")
        if (match := FILE_NAME.fullmatch(file.stem))
    ]
    datasets = sorted({dataset for dataset, _, _ in splits})
    if len(datasets) != 1:
        folders = sorted(folder.name for folder in path.iterdir() if folder.is_dir())
        raise InputError(
            f"{path} holds {counted(len(datasets), 'LeWiDi dataset')} and not a single table"
            f" (NAME_train.json, NAME_dev.json, NAME_test.json): {examples(datasets, 4) or 'none'}",
            f"name one file, or the folder of one dataset: {examples(folders, 4) or 'none'}",
            code="ambiguous-folder",
        )
    return [file for _, _, file in sorted(splits)]


def _read(path: Path, split: str | None) -> list[Item2023 | Item2025]:
    """The items of a split, or of all."""
    items: list[Item2023 | Item2025] = []
    splits: dict[str | None, None] = {}
    for file in split_files(path):
        match = FILE_NAME.fullmatch(file.stem)
        file_split = match["split"] if match else None
        if file_split and split not in (None, file_split):
            splits[file_split] = None
            continue
        file_items = list(_items(file, file_split))
        splits |= dict.fromkeys(item.split for item in file_items)
        items += [item for item in file_items if split in (None, item.split)]
    if not items:
        raise no_split(split, splits)
    if len({item.scale for item in items}) > 1:
        raise InputError(f"{path} holds items of different datasets", _HINT, code="mixed-datasets")
    return items


def _items(file: Path, file_split: str | None) -> Iterator[Item2023 | Item2025]:
    """The items of a file; its name says which split they are in, or they do themselves."""
    content = read_json(file, math.inf)
    if not isinstance(content, dict) or not content:
        raise InputError(
            f"{file} is {'empty' if content in ({}, []) else 'something else'}, not a LeWiDi file:"
            " a JSON object of items",
            "check that it is the right file",
            code="wrong-content",
        )
    has_parts = any(
        isinstance(item, dict) and isinstance(item.get("text"), dict) for item in content.values()
    )
    model: Any = Item2025 if has_parts else Item2023
    kind: Any = dict[str, model]
    items = to_model(content, kind, file, title="a LeWiDi file", hint=_HINT)
    # One file holds conversations throughout, or none.
    is_dialogue = model is Item2023 and any(parse_dialogue(item.text) for item in items.values())
    for key, published in items.items():
        split = file_split or (published.split or "").strip()
        name = {"name": f"{split}-{key}", "split": split, "is_dialogue": is_dialogue}
        item = published.model_copy(update=name)
        if fault := item.fault if split else "does not name its split":
            raise InputError(f"item {key!r} of {file} {fault}", _HINT, code="wrong-content")
        yield item


def _metadata(path: Path) -> pd.DataFrame:
    """Attributes of the annotators as columns, from the metadata file beside the data."""
    match = FILE_NAME.fullmatch(split_files(path)[0].stem)
    folder = path if path.is_dir() else path.parent
    file = folder / f"{match['dataset']}{METADATA}" if match else folder
    if not file.is_file():
        return pd.DataFrame()
    # Two of the files have a comma after the last entry.
    text = _COMMA.sub(lambda match: match[0].rstrip(","), read_text(file))
    check_memory(file, parsed_size(text))
    content = parse_json(text, str(file))
    entries = content.values() if isinstance(content, dict) else [None]
    if not all(isinstance(entry, dict) for entry in entries):
        raise InputError(
            f"{file} is not a JSON object with an object per annotator", _HINT, code="wrong-content"
        )
    attributes = {
        annotator: {
            name: as_name(value) if is_plain(value) and value not in _GAPS else ""
            for name, value in entry.items()
            if name not in COLUMNS and not isinstance(value, dict | list | bool)
        }
        for annotator, entry in content.items()
    }
    return pd.DataFrame.from_dict(attributes, orient="index", dtype=object)


def _splits(items: Sequence[PublishedItem]) -> str:
    return ", ".join(dict.fromkeys(str(item.split) for item in items))


def _is_lewidi(path: Path, content: object) -> bool:
    """Whether it is a folder without tables, whose reader says what it needs, or a JSON object of
    items with annotators."""
    return path.is_dir() or (
        isinstance(content, dict)
        and any(
            isinstance(item, dict)
            and "annotators" in item
            and ("annotations" in item or isinstance(item.get("text"), dict))
            for item in content.values()
        )
    )


SOURCE = Source(
    "lewidi",
    "a LeWiDi JSON file or a folder of its splits",
    read_lewidi,
    _is_lewidi,
    options=("user_first", "columns"),
    items=read_lewidi_items,
)
