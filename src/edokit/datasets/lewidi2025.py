"""The LeWiDi 2025 datasets (third edition), from their JSON files as published."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from edokit._errors import HAVE, InputError, are, counted, errors_in, examples, option, warn
from edokit._io import parse_json, read_json, read_text
from edokit._names import as_name, as_names
from edokit.annotations import Annotations, Duplicates
from edokit.annotations.labels import MultiChoice
from edokit.annotations.long_table import ROLES, from_long_table
from edokit.datasets.lewidi import (
    FILE_NAME,
    check_unicode,
    columns_of,
    read_split,
    split_files,
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
_ROUNDED = 0.0101
"""How far a published soft label may be off: it has two digits."""
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])')
"""A text, or a comma after the last entry of an object or a list."""
_GAPS = ("nan", "DATA_EXPIRED", "CONSENT_REVOKED")
"""What the metadata hold where an annotator's attribute is not known, or may not be used."""


class _Item(NamedTuple):
    name: str
    split: str
    context: str
    text: str
    annotators: list[str]
    labels: dict[str, list[str]]
    """The labels of each annotator; empty where they are held out."""
    blank: set[str]
    """Annotators whose id has blanks around it."""
    rounded: bool
    """Whether the published soft label is that of the annotations."""
    columns: dict[str, str]


def read_lewidi2025(
    path: str | Path,
    *,
    split: str | None = None,
    classes: Sequence[object] | None = None,
    duplicates: Duplicates = "all",
    scale: ScaleLike | None = None,
    multi_choice: MultiChoice = "error",
) -> Annotations:
    """Read one JSON file (``CSC_dev.json``) or a folder of splits (``CSC/``).

    Items are named ``<split>-<key>``, with the split in the name of the file. The text is the
    response, reply, second question or statement, its context the other one. Labels are those of
    ``annotations``; ``soft_label`` is rounded and only compared with them. Items have the column
    ``lang`` and what is plain in ``other_info``, annotators the attributes in the metadata file
    beside the data. Explanations are not read. Items without annotations (a test set whose labels
    are held out) are left out with a warning; `read_lewidi2025_items` reads their texts.
    """
    items, fields = _read(path, split)
    labelled = [item for item in items if item.labels]
    if not labelled:
        splits = ", ".join(dict.fromkeys(item.split for item in items))
        raise InputError(
            f"{path}: no item of {splits} has annotations: its labels are held out",
            f"choose another {option('split')}, or read the texts alone: edo score --texts",
        )
    metadata = _metadata(Path(path))
    attributes = _attribute_names(metadata)
    rows = pd.DataFrame(
        {
            **{name: _attribute(metadata, annotator, name) for name in attributes},
            **item.columns,
            "item": item.name,
            "split": item.split,
            "text": item.text,
            "context": item.context,
            "annotator": annotator,
            "label": ",".join(labels),
        }
        for item in labelled
        for annotator, labels in item.labels.items()
    ).fillna("")
    noted = SCALES.get(fields)
    declared = Declared(scale or noted or "nominal")
    if classes is None and declared.classes is None and noted is not None:
        classes = Declared(noted).classes or BINARY
    with errors_in(path):
        annotations = from_long_table(
            rows,
            classes=classes,
            duplicates=duplicates,
            attributes=attributes,
            scale=scale or noted,
            multi_choice=multi_choice,
            place=lambda row: f"item {rows['item'][row]!r}",
        )
    _report(items, labelled)
    return annotations


def read_lewidi2025_items(path: str | Path, *, split: str | None = None) -> Items:
    """The texts of one file or a folder and who annotated them, with labels or without."""
    items, _ = _read(path, split)
    metadata = _metadata(Path(path))
    names = _attribute_names(metadata)
    people = dict.fromkeys(name for item in items for name in item.annotators)
    return Items(
        items=as_names(item.name for item in items),
        texts=as_names(item.text for item in items),
        contexts=as_names(item.context for item in items),
        annotators=[tuple(dict.fromkeys(item.annotators)) for item in items],
        attributes={
            person: {name: _attribute(metadata, person, name) for name in names}
            for person in people
        },
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


def _read(path: str | Path, split: str | None) -> tuple[list[_Item], tuple[str, str]]:
    """The items of a split, or all, and the names of their two texts."""
    items: list[_Item] = []
    fields: dict[tuple[str, str], None] = {}
    splits: dict[str, None] = {}
    for file in split_files(Path(path)):
        match = FILE_NAME.fullmatch(file.stem)
        of_file = match["split"] if match else ""
        other_splits: Counter[str] = Counter()
        for key, raw in _raw_items(file, of_file, split, splits):
            place = f"item {key!r} of {file}"
            item, text_names = _item(key, raw, of_file, place)
            fields[text_names] = None
            if len(fields) > 1:
                raise wrong(f"{place} has texts of other names than the items before it")
            item_split = str(raw.get("split") or item.split).strip()
            other_splits[item_split] += item_split != item.split
            items.append(item)
        if other_splits.total():
            warn(
                f"the items of {file.name} are in split {of_file!r}, as the file is named, though"
                f" the field 'split' of {other_splits.total()} of them is {examples(+other_splits)}"
            )
    if not items:
        raise InputError(
            f"there is no {option('split', split)}; {path} has {examples(splits, 10)}",
            "choose one of these",
        )
    return items, next(iter(fields))


def _raw_items(
    file: Path, of_file: str, wanted: str | None, splits: dict[str, None]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Key and content of the items of the wanted split; the splits that occur are noted."""
    if of_file:
        splits[of_file] = None
        if wanted not in (None, of_file):
            return
    for key, raw in read_split(file).items():
        if not isinstance(raw, dict):
            raise wrong(f"item {key!r} of {file} is not a JSON object")
        split = of_file or str(raw.get("split") or "").strip()
        if not split:
            raise wrong(f"item {key!r} of {file} does not name its split")
        splits[split] = None
        if wanted in (None, split):
            yield key, raw


def _item(
    key: str, raw: Mapping[str, Any], of_file: str, where: str
) -> tuple[_Item, tuple[str, str]]:
    """One item of a file, and the names of its context and its text."""
    text_names, context, text = _texts(raw.get("text"), where)
    listed, annotations = raw.get("annotators"), raw.get("annotations")
    if not isinstance(listed, str) or not listed.strip():
        raise wrong(f"{where} has no annotators")
    if annotations is not None and not isinstance(annotations, dict):
        raise wrong(f"{where}: 'annotations' is {type(annotations).__name__}, not an object")
    annotators = [part.strip() for part in listed.split(",")]
    labels = _labels_by_annotator(annotations or {}, where)
    if labels and {*labels} != {*annotators}:
        odd = sorted({*labels} ^ {*annotators})
        raise wrong(f"{where} lists other annotators than those who labelled it: {examples(odd)}")
    split = of_file or str(raw["split"]).strip()
    check_unicode([key, split, context, text, *annotators], where)
    item = _Item(
        name=f"{split}-{key}",
        split=split,
        context=context,
        text=text,
        annotators=annotators,
        labels=labels,
        blank={name.strip() for name in annotations or () if name != name.strip()},
        rounded=_is_rounded(raw.get("soft_label"), labels),
        columns=columns_of(raw),
    )
    return item, text_names


def _labels_by_annotator(annotations: Mapping[str, Any], where: str) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for name, label in annotations.items():
        if not isinstance(label, str | int | float) or not as_name(label).strip():
            raise wrong(f"{where}: the label of annotator {name.strip()!r} is missing")
        if name.strip() in labels:
            raise wrong(f"{where} has two labels of annotator {name.strip()!r}")
        labels[name.strip()] = [part.strip() for part in as_name(label).split(",")]
    return labels


def _texts(text: Any, where: str) -> tuple[tuple[str, str], str, str]:
    """The names of context and text, which come in this order, and both."""
    parts = list(text.items()) if isinstance(text, dict) else []
    if len(parts) != 2 or not all(isinstance(part, str) for _, part in parts):
        raise wrong(f"{where}: 'text' is not an object with two texts")
    names = (parts[0][0], parts[1][0])
    if names not in SCALES and names[::-1] in SCALES:
        names = names[::-1]
    return names, text[names[0]], text[names[1]]


def _is_rounded(soft: Any, labels: Mapping[str, Sequence[str]]) -> bool:
    """Whether published shares are those of the labels; a share that is not there is not wrong."""
    if not isinstance(soft, dict) or not labels:
        return True
    counts = Counter(label for label_set in labels.values() for label in label_set)
    for name, value in soft.items():
        share = value.get("1") if isinstance(value, dict) else value
        # MP writes its classes as 0.0 and 1.0.
        with suppress(ValueError):
            name = as_name(float(name))
        expected = counts.pop(name, 0) / len(labels)
        if not isinstance(share, int | float) or not abs(share - expected) <= _ROUNDED:
            return False
    return not counts


def _metadata(path: Path) -> dict[str, dict[str, str]]:
    """Attributes of the annotators by their id, from the file beside the data."""
    match = FILE_NAME.fullmatch(split_files(path)[0].stem)
    folder = path if path.is_dir() else path.parent
    file = folder / f"{match['dataset']}{METADATA}" if match else folder
    if not file.is_file():
        return {}
    # Two of the files have a comma after the last entry.
    data = parse_json(_COMMA.sub(lambda match: match[0].rstrip(","), read_text(file)), str(file))
    if not isinstance(data, dict) or not all(isinstance(entry, dict) for entry in data.values()):
        raise wrong(f"{file} is not a JSON object with an object per annotator")
    return {
        annotator: {
            name: "" if value in (None, *_GAPS) or value != value else as_name(value)  # no NaN
            for name, value in attributes.items()
            if name not in ROLES and (value is None or isinstance(value, str | int | float))
        }
        for annotator, attributes in data.items()
    }


def _attribute_names(metadata: Mapping[str, Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for attributes in metadata.values() for name in attributes))


def _attribute(known: Mapping[str, Mapping[str, str]], annotator: str, name: str) -> str:
    """An annotator's attribute; the keys of MP's metadata lack the prefix Ann."""
    attributes = known.get(annotator) or known.get(annotator.removeprefix("Ann")) or {}
    return attributes.get(name, "")


def _report(items: Sequence[_Item], labelled: Sequence[_Item]) -> None:
    """What was left out or differs, in warnings."""
    if without := len(items) - len(labelled):
        splits = ", ".join(dict.fromkeys(item.split for item in items if not item.labels))
        warn(
            f"{are(without, len(items), HAVE, 'item')} no annotations and"
            f" {'is' if without == 1 else 'are'} left out: the labels of {splits} are held out"
        )
    blank = set().union(*(item.blank for item in labelled))
    if blank:
        annotators = {name for item in labelled for name in item.labels}
        warn(
            f"blanks around the ids of {len(blank)} of {counted(len(annotators), 'annotator')} are"
            f" left out: {examples(sorted(blank))}"
        )
    differ = [item.name for item in labelled if not item.rounded]
    if differ:
        warn(
            f"soft_label of {are(len(differ), len(labelled), noun='item')} not that of its"
            f" annotations, which count: {examples(differ)}"
        )


SOURCE = Source(
    "lewidi2025",
    "a LeWiDi 2025 JSON file or a folder of its splits",
    read_lewidi2025,
    _is_ours,
    options=("multi_choice",),
    items=read_lewidi2025_items,
)
