"""The LeWiDi 2025 datasets (third edition), from their JSON files as published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import Field

from edokit._errors import HAVE, InputError, are, counted, errors_in, examples, option, warn
from edokit._io import parse_json, read_json, read_text
from edokit._names import as_name, as_names
from edokit.annotations import Annotations
from edokit.annotations.labels import MultiChoice
from edokit.annotations.long_table import ROLES, STRICT, Policies, from_long_table
from edokit.datasets.exports import Name, is_plain
from edokit.datasets.lewidi import (
    FILE_NAME,
    Published,
    read_split,
    split_files,
    split_of_file,
    wrong,
)
from edokit.datasets.read import Items, Source
from edokit.scales import Declared, ScaleLike

SCALES = {
    ("context", "response"): "ordinal:1,2,3,4,5,6",
    ("post", "reply"): "nominal",
    ("Question1", "Question2"): "ordinal:-5,-4,-3,-2,-1,0,1,2,3,4,5",
    ("context", "statement"): "multi-label:contradiction,entailment,neutral",
}
"""Context and text of CSC, MP, Paraphrase and VariErrNLI, and the answer scale of each."""
BINARY = ("0", "1")
"""The classes of MP."""
METADATA = "_annotators_meta.json"
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])')
"""A text, or a comma after the last entry of an object or a list."""
_GAPS = ("nan", "DATA_EXPIRED", "CONSENT_REVOKED")
"""What the metadata hold where an annotator's attribute is not known, or may not be used."""


class Item2025(Published):
    """An item of 2025.

    Attributes
    ----------
    name : str
        With its split in front.
    """

    text: Annotated[dict[str, str], Field(min_length=2, max_length=2)]
    annotations: dict[str, Name] | None = None
    name: str = ""

    @property
    def text_names(self) -> tuple[str, str]:
        """The names of context and text, which come in this order."""
        first, second = self.text
        return (second, first) if (second, first) in SCALES else (first, second)

    @property
    def texts(self) -> dict[str, str]:
        """Context and text."""
        context, text = (self.text[name] for name in self.text_names)
        return {"text": text, "context": context}

    @property
    def labels(self) -> dict[str, str]:
        """The labels of each annotator; empty where they are held out."""
        annotations = self.annotations or {}
        return {annotator.strip(): label for annotator, label in annotations.items()}


def read_lewidi2025(
    path: str | Path,
    *,
    split: str | None = None,
    classes: Sequence[object] | None = None,
    policies: Policies = STRICT,
    scale: ScaleLike | None = None,
    multi_choice: MultiChoice = "error",
) -> Annotations:
    """Read one JSON file (``CSC_dev.json``) or a folder of splits (``CSC/``).

    Items are named ``<split>-<key>``, with the split in the name of the file. The text is the
    response, reply, second question or statement, its context the other one. Labels are those of
    ``annotations``, not the rounded shares of ``soft_label``. Items have the column
    ``lang`` and what is plain in ``other_info``, annotators the attributes in the metadata file
    beside the data. Explanations are not read. Items without annotations (a test set whose labels
    are held out) are left out with a warning; `read_lewidi2025_items` reads their texts.
    """
    items = _read(path, split)
    labelled = [item for item in items if item.labels]
    if not labelled:
        splits = ", ".join(dict.fromkeys(str(item.split) for item in items))
        raise InputError(
            f"{path}: no item of {splits} has annotations: its labels are held out",
            f"choose another {option('split')}, or read the texts alone: edo score --texts",
        )
    attributes = _Attributes(Path(path))
    rows = pd.DataFrame(
        {
            **attributes.of(annotator),
            **item.columns,
            **item.texts,
            "item": item.name,
            "split": item.split,
            "annotator": annotator,
            "label": label,
        }
        for item in labelled
        for annotator, label in item.labels.items()
    ).fillna("")
    noted = SCALES.get(items[0].text_names)
    declared = Declared(scale or noted or "nominal")
    if classes is None and declared.classes is None and noted is not None:
        classes = Declared(noted).classes or BINARY
    with errors_in(path):
        annotations = from_long_table(
            rows,
            classes=classes,
            policies=replace(policies, duplicates=policies.duplicates or "all"),
            attributes=attributes.names,
            scale=scale or noted,
            multi_choice=multi_choice,
            place=lambda row: f"item {rows['item'][row]!r}",
        )
    _report(items, labelled)
    return annotations


def read_lewidi2025_items(path: str | Path, *, split: str | None = None) -> Items:
    """The texts of one file or a folder and who annotated them, with labels or without."""
    items = _read(path, split)
    return Items(
        items=as_names(item.name for item in items),
        texts=as_names(item.texts["text"] for item in items),
        contexts=as_names(item.texts["context"] for item in items),
        annotators=[tuple(dict.fromkeys(item.annotator_names)) for item in items],
    )


def is_lewidi2025(data: Any) -> bool:
    """Whether a JSON document looks like a file of 2025: items by key, with a text in parts."""
    return isinstance(data, dict) and any(
        isinstance(item, dict) and "annotators" in item and isinstance(item.get("text"), dict)
        for item in data.values()
    )


def _is_ours(path: Path, content: Any) -> bool:
    if not path.is_dir():
        return is_lewidi2025(content)
    files = [file for file in path.glob("*.json") if FILE_NAME.fullmatch(file.stem)]
    with suppress(InputError, OSError):
        smallest = min(files, key=lambda file: file.stat().st_size, default=None)
        return smallest is not None and is_lewidi2025(read_json(smallest))
    return False


def _read(path: str | Path, split: str | None) -> list[Item2025]:
    """The items of a split, or of all."""
    items: list[Item2025] = []
    splits: dict[str, None] = {}
    for file in split_files(Path(path)):
        of_file = split_of_file(file)
        splits |= dict.fromkeys([of_file] if of_file else [])
        if of_file and split not in (None, of_file):
            continue
        of_split = list(_items(file, of_file))
        splits |= dict.fromkeys(str(item.split) for item in of_split)
        items += [item for item in of_split if split in (None, item.split)]
    if not items:
        raise InputError(
            f"there is no {option('split', split)}; {path} has {examples(splits, 10)}",
            "choose one of these",
        )
    if len({item.text_names for item in items}) > 1:
        raise wrong(f"{path} holds items whose texts have different names")
    return items


def _items(file: Path, of_file: str) -> Iterator[Item2025]:
    """The items of a file; its name says which split they are in, or they do themselves."""
    other_splits = []
    for key, item in read_split(file, Item2025).items():
        own_split = (item.split or of_file).strip()
        if not own_split:
            raise wrong(f"item {key!r} of {file} does not name its split")
        if of_file and own_split != of_file:
            other_splits.append(own_split)
        if item.labels and {*item.labels} != {*item.annotator_names}:
            odd = examples(sorted({*item.labels} ^ {*item.annotator_names}))
            raise wrong(
                f"item {key!r} of {file} lists other annotators than those who labelled it: {odd}"
            )
        split = of_file or own_split
        yield item.model_copy(update={"name": f"{split}-{key}", "split": split})
    if other_splits:
        warn(
            f"the items of {file.name} are in split {of_file!r}, as the file is named, though the"
            f" field 'split' of {len(other_splits)} of them is"
            f" {examples(dict.fromkeys(other_splits))}"
        )


class _Attributes:
    """Attributes of the annotators, from the metadata file beside the data."""

    def __init__(self, path: Path) -> None:
        self._known: dict[str, dict[str, str]] = {}
        match = FILE_NAME.fullmatch(split_files(path)[0].stem)
        folder = path if path.is_dir() else path.parent
        file = folder / f"{match['dataset']}{METADATA}" if match else folder
        if file.is_file():
            # Two of the files have a comma after the last entry.
            text = _COMMA.sub(lambda match: match[0].rstrip(","), read_text(file))
            content = parse_json(text, str(file))
            if not isinstance(content, dict) or not all(
                isinstance(entry, dict) for entry in content.values()
            ):
                raise wrong(f"{file} is not a JSON object with an object per annotator")
            self._known = {name: _plain_entries(entry) for name, entry in content.items()}
        entries = self._known.values()
        self.names = list(dict.fromkeys(name for entry in entries for name in entry))

    def of(self, annotator: str) -> dict[str, str]:
        """The attributes of an annotator, empty where unknown."""
        # The keys of MP's metadata lack the prefix Ann.
        keys = (annotator, annotator.removeprefix("Ann"))
        entry: Mapping[str, str] = next(filter(None, map(self._known.get, keys)), {})
        return {name: entry.get(name, "") for name in self.names}


def _plain_entries(entry: Mapping[str, Any]) -> dict[str, str]:
    """The values of an entry that are plain, or gaps."""
    return {
        name: as_name(value) if is_plain(value) and value not in _GAPS else ""
        for name, value in entry.items()
        if name not in ROLES and not isinstance(value, dict | list | bool)
    }


def _report(items: Sequence[Item2025], labelled: Sequence[Item2025]) -> None:
    """What was left out or differs, in warnings."""
    if without := len(items) - len(labelled):
        splits = ", ".join(dict.fromkeys(str(item.split) for item in items if not item.labels))
        warn(
            f"{are(without, len(items), HAVE, 'item')} no annotations and"
            f" {'is' if without == 1 else 'are'} left out: the labels of {splits} are held out"
        )
    names = {name for item in labelled for name in item.annotations or ()}
    blank = {name.strip() for name in names if name != name.strip()}
    if blank:
        annotators = counted(len({name.strip() for name in names}), "annotator")
        warn(
            f"blanks around the ids of {len(blank)} of {annotators} are left out:"
            f" {examples(sorted(blank))}"
        )


SOURCE = Source(
    "lewidi2025",
    "a LeWiDi 2025 JSON file or a folder of its splits",
    read_lewidi2025,
    _is_ours,
    options=("multi_choice",),
    items=read_lewidi2025_items,
)
