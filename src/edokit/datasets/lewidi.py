"""Reads the LeWiDi datasets of 2023 and 2025 from their published JSON files."""

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
"""The turns of a conversation in ConvAbuse; the last one, of the user, was annotated."""
SEVERITY = {"-3": "1", "-2": "1", "-1": "1", "0": "0", "1": "0"}
"""The class of each label of ConvAbuse: labels below 0 are abusive."""
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
"""A string of JSON, or a comma after the last entry of an object or a list."""
_GAPS = ("nan", "DATA_EXPIRED", "CONSENT_REVOKED")
"""Values in the metadata for an attribute that is unknown or may not be used."""
_HINT = "correct the file, or download it again"


def parse_dialogue(text: str) -> tuple[str, ...] | None:
    """The turns of a conversation in JSON; None if the text is not a conversation."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        content = parse_json(text, "the text")
    except InputError:
        return None
    turns: tuple[Any, ...] = tuple(content.get(name) for name in TURNS)
    if not all(isinstance(turn, str) for turn in turns):
        return None
    return turns


def _lines(turns: Sequence[str]) -> str:
    """The turns that are not blank, one per line."""
    return "\n".join(turn for turn in turns if turn.strip())


class PublishedItem(Document):
    """The common fields of items of 2023 and 2025.

    Attributes
    ----------
    annotators : str
        The names of the annotators, separated by commas.
    other_info : JsonValue
        Further fields that were published.
    name : str
        The id of the item: its split and its key in the file.
    fault : str
        The difference from the published format, for a message; empty if there is none.
    """

    annotators: str
    split: str | None = None
    lang: JsonValue = None
    other_info: JsonValue = None
    name: str = ""
    fault: ClassVar[Any] = ""

    @cached_property
    def annotator_names(self) -> list[str]:
        """The annotators of the item."""
        return [name.strip() for name in self.annotators.split(",")]

    @property
    def notes(self) -> dict[str, Any]:
        """Further fields of the item; none if they are not an object."""
        if isinstance(self.other_info, dict):
            return self.other_info
        return {}

    @property
    def columns(self) -> dict[str, str]:
        """The language of the item, and further fields that are text or numbers."""
        columns = {}
        for name, value in {"lang": self.lang, **self.notes}.items():
            # The explanations of annotators would reveal their labels.
            is_explanation = "explanation" in name.lower()
            if is_plain(value) and name not in COLUMNS and not is_explanation:
                columns[name] = as_name(value)
        return columns


class Item2023(PublishedItem):
    """An item of 2023.

    Attributes
    ----------
    annotations : str
        The labels of the annotators, separated by commas.
    hard_label : Name
        The published hard label: text, or a number in some rows of ConvAbuse.
    is_dialogue : bool
        Whether the items of the file are conversations.
    """

    text: str
    annotations: str
    hard_label: Name
    is_dialogue: bool = False
    scale: ClassVar[str] = "nominal"

    def texts(self, user_first: bool) -> dict[str, str]:
        """The text (a line per turn of a conversation), or the user's last turn and its context."""
        turns = None
        if self.is_dialogue:
            turns = parse_dialogue(self.text)
        if turns is None:
            return {"text": self.text}
        *earlier, user = turns
        if user_first:
            return {"text": user, "context": _lines(earlier)}
        return {"text": _lines(turns)}

    @cached_property
    def groups(self) -> list[str]:
        """The group of each annotator; empty if the item does not have them.

        HS-Brexit lists the groups in one field, ArMIS has a field per annotator.
        """
        for field, value in self.notes.items():
            if field.lower().replace("_", " ") == "annotators group":
                groups = [part.strip() for part in str(value).split(",")]
                return [str(self.notes.get(group, group)) for group in groups]
        if all(name in self.notes for name in self.annotator_names):
            return [str(self.notes[name]) for name in self.annotator_names]
        return []

    @property
    def columns(self) -> dict[str, str]:
        """The columns of any item, and the hard label."""
        columns = super().columns
        if self.groups:
            # The other fields explain the groups.
            columns = {"lang": columns["lang"]}
        columns["hard_label"] = self.hard_label.strip()
        return columns

    @cached_property
    def answers(self) -> list[dict[str, str]]:
        """Annotator, label and group of each annotation."""
        answers = []
        labels = [label.strip() for label in self.annotations.split(",")]
        for name, label, group in zip_longest(self.annotator_names, labels, self.groups):
            if self.is_dialogue:
                label = SEVERITY.get(label, label)
            answer = {"annotator": name, "label": label}
            if group:
                answer["group"] = group
            answers.append(answer)
        return answers

    @property
    def fault(self) -> str:
        """The difference from the published format, for a message; empty if there is none."""
        n_annotators = len(self.annotator_names)
        n_labels = len(self.annotations.split(","))
        n_groups = len(self.groups)
        if n_labels != n_annotators or n_groups not in (0, n_annotators):
            label_counts = counted(n_labels, "annotation")
            if n_groups:
                label_counts += f" and {counted(n_groups, 'group')}"
            return f"has {label_counts} for {counted(n_annotators, 'annotator')}"
        if self.is_dialogue and parse_dialogue(self.text) is None:
            turns = ", ".join(TURNS)
            return f"has a text that is not a conversation like others: JSON with the turns {turns}"
        return ""


class Item2025(PublishedItem):
    """An item of 2025.

    Attributes
    ----------
    text : dict of str to str
        The two texts by name.
    annotations : dict of str to str or None
        The label of each annotator; None if labels are held out.
    """

    text: Annotated[dict[str, str], Field(min_length=2, max_length=2)]
    annotations: dict[str, Name] | None = None

    @property
    def text_names(self) -> tuple[str, str]:
        """The names of the context and of the text; in the file, they may be in any order."""
        first_name, second_name = self.text
        if (second_name, first_name) in SCALES:
            return second_name, first_name
        return first_name, second_name

    @property
    def scale(self) -> str | None:
        """The answer scale of the dataset; None for an unknown dataset."""
        return SCALES.get(self.text_names)

    def texts(self, user_first: bool) -> dict[str, str]:
        """The text and its context."""
        context_name, text_name = self.text_names
        return {"text": self.text[text_name], "context": self.text[context_name]}

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

    Items are named ``<split>-<key>``; the split is in the name of the file. Soft labels are
    computed from the annotations; the rounded soft labels in the file are not used. Items have the
    column ``lang`` and the fields of ``other_info`` that are text or numbers (``domain``, ``bot``),
    without explanations. ``duplicates`` is "all" by default, because one item of MD-Agreement lists
    an annotator twice. With ``user_first``, the texts of ConvAbuse are the annotated utterances,
    and the turns before them are contexts. ``columns`` may name the groups of items: with
    ``{"group": "context"}``, the replies to a post are one group.

    2023: the classes are "0" and "1", the hard labels are the published ones, and the annotators of
    HS-Brexit and ArMIS have the attribute ``group``. 2025: the text is the response, the reply, the
    second question or the statement, and the other text is its context; annotators have the
    attributes in the metadata file beside the data. Items without annotations, such as a test set
    whose labels are held out, are left out with a warning; `read_lewidi_items` reads their texts.
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
    table, attribute_names = _table(labelled, user_first, _metadata(Path(path)))
    known_scale = items[0].scale
    if classes is None and known_scale is not None:
        is_declared = DeclaredScale(scale or known_scale).classes is not None
        if not is_declared:
            classes = DeclaredScale(known_scale).classes or BINARY
    with errors_in(path):
        annotations = from_long_table(
            table,
            columns=columns,
            classes=classes,
            policies=replace(policies, duplicates=policies.duplicates or "all"),
            attributes=attribute_names,
            scale=scale or known_scale,
            place=lambda row: f"item {table['item'][row]!r}",
        )
    unlabelled = [item for item in items if not item.answers]
    if unlabelled:
        verb = "are"
        if len(unlabelled) == 1:
            verb = "is"
        warn(
            f"{are(len(unlabelled), len(items), HAVE, 'item')} no annotations and {verb} left out:"
            f" the labels of {_splits(unlabelled)} are held out"
        )
    return annotations


def _table(
    labelled: Sequence[Item2023 | Item2025], user_first: bool, attributes: pd.DataFrame
) -> tuple[pd.DataFrame, list[str]]:
    """A row per annotation, and the names of the columns that describe annotators.

    ``attributes`` has a row per annotator.
    """
    rows: list[dict[str, Any]] = []
    for item in labelled:
        shared = {**item.columns, **item.texts(user_first), "item": item.name, "split": item.split}
        rows += [shared | answer for answer in item.answers]
    table = pd.DataFrame(rows)
    annotators = table["annotator"]
    # The keys of MP's metadata lack the prefix Ann.
    has_key = annotators.isin(attributes.index)
    keys = annotators.where(has_key, annotators.str.removeprefix("Ann"))
    names = list(map(str, attributes))
    table[names] = attributes.reindex(keys).to_numpy()
    if "group" in table:
        # Not every item names the groups of its annotators.
        groups = table.groupby("annotator")["group"].transform("first")
        table["group"] = table["group"].fillna(groups)
        names = ["group"]
    return table.fillna(""), names


def read_lewidi_items(
    path: str | Path,
    *,
    split: str | None = None,
    user_first: bool = False,
    columns: Mapping[str, str] | None = None,
) -> SourceItems:
    """The texts and annotators of one file or a folder of splits; labels may be held out.

    ``columns`` is accepted as by `read_lewidi`, but it names the groups of items, which are not
    used here.
    """
    items = _read(Path(path), split)
    texts = pd.DataFrame([item.texts(user_first) for item in items])
    contexts = None
    if "context" in texts:
        contexts = as_names(texts["context"])
    return SourceItems(
        items=as_names(item.name for item in items),
        texts=as_names(texts["text"]),
        contexts=contexts,
        annotators=[tuple(dict.fromkeys(item.annotator_names)) for item in items],
    )


def split_files(path: Path) -> list[Path]:
    """The file itself, or the files of splits in a folder in the order train, dev, test."""
    if not path.is_dir():
        return [path]
    splits = []
    for file in path.glob("*.json"):
        match = FILE_NAME.fullmatch(file.stem)
        if match is not None:
            splits.append((match["dataset"], SPLITS.index(match["split"]), file))
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
    """The items of a split, or of all splits."""
    items: list[Item2023 | Item2025] = []
    splits: dict[str | None, None] = {}
    for file in split_files(path):
        match = FILE_NAME.fullmatch(file.stem)
        file_split = None
        if match is not None:
            file_split = match["split"]
        if file_split is not None and split not in (None, file_split):
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
    """The items of a file; ``file_split`` is the split in its name, else items name theirs."""
    content = read_json(file, math.inf)
    if not isinstance(content, dict) or not content:
        problem = "does not contain a JSON object of items"
        if content in ({}, []):
            problem = "is empty"
        raise InputError(
            f"{file} is not a LeWiDi file: it {problem}",
            "check that it is the right file",
            code="wrong-content",
        )
    is_2025 = any(
        isinstance(item, dict) and isinstance(item.get("text"), dict) for item in content.values()
    )
    model: Any = Item2023
    if is_2025:
        model = Item2025
    item_models: Any = dict[str, model]
    items = to_model(content, item_models, file, title="a LeWiDi file", hint=_HINT)
    # Either all items of a file are conversations, or none.
    is_dialogue = not is_2025 and any(parse_dialogue(item.text) for item in items.values())
    for key, published in items.items():
        split = file_split or (published.split or "").strip()
        fields = {"name": f"{split}-{key}", "split": split, "is_dialogue": is_dialogue}
        item = published.model_copy(update=fields)
        fault = item.fault
        if not split:
            fault = "does not name its split"
        if fault:
            raise InputError(f"item {key!r} of {file} {fault}", _HINT, code="wrong-content")
        yield item


def _metadata(path: Path) -> pd.DataFrame:
    """The attributes in the metadata file beside the data, with a row per annotator.

    The table is empty if there is no such file.
    """
    data_file = split_files(path)[0]
    match = FILE_NAME.fullmatch(data_file.stem)
    if match is None:
        return pd.DataFrame()
    file = data_file.parent / f"{match['dataset']}{METADATA}"
    if not file.is_file():
        return pd.DataFrame()
    # Two of the files have a comma after the last entry.
    text = _COMMA.sub(lambda match: match[0].rstrip(","), read_text(file))
    check_memory(file, parsed_size(text))
    content = parse_json(text, str(file))
    if not isinstance(content, dict) or not all(isinstance(e, dict) for e in content.values()):
        raise InputError(
            f"{file} is not a JSON object with an object per annotator", _HINT, code="wrong-content"
        )
    attributes: dict[str, dict[str, str]] = {}
    for annotator, entry in content.items():
        attributes[annotator] = {}
        for name, value in entry.items():
            if name in COLUMNS or isinstance(value, dict | list | bool):
                continue
            attributes[annotator][name] = ""
            if is_plain(value) and value not in _GAPS:
                attributes[annotator][name] = as_name(value)
    return pd.DataFrame.from_dict(attributes, orient="index", dtype=object)


def _splits(items: Sequence[PublishedItem]) -> str:
    """The names of the items' splits, for a message."""
    return ", ".join(dict.fromkeys(str(item.split) for item in items))


def _is_lewidi(path: Path, content: object) -> bool:
    """Whether a file is a JSON object of items with annotators, or the path is a folder.

    Folders that other kinds of sources recognise are read as such; for any other folder,
    `read_lewidi` says what is missing.
    """
    if path.is_dir():
        return True
    if not isinstance(content, dict):
        return False
    for item in content.values():
        if not isinstance(item, dict) or "annotators" not in item:
            continue
        if "annotations" in item or isinstance(item.get("text"), dict):
            return True
    return False


SOURCE = Source(
    "lewidi",
    "a LeWiDi JSON file or a folder of its splits",
    read_lewidi,
    _is_lewidi,
    options=("user_first", "columns"),
    items=read_lewidi_items,
)
