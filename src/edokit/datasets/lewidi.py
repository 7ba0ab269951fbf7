"""The LeWiDi 2023 datasets (SemEval-2023 Task 11), from their JSON files as published."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from edokit._errors import InputError, counted, errors_in, examples, one_of, option, word
from edokit._io import parse_json, read_json
from edokit._names import as_name
from edokit.annotations import Annotations, Duplicates
from edokit.annotations.long_table import ROLES
from edokit.datasets.read import Source
from edokit.scales import ScaleLike

DIALOGUE_TEXTS = ("user-last", "user-first", "user-only")
"""How a conversation becomes a text: as it ran, the annotated utterance first, or it alone."""


TURNS = ("prev_agent", "prev_user", "agent", "user")
"""The turns of a conversation in ConvAbuse, of which the user's last one was annotated."""


def parse_dialogue(text: str) -> tuple[str, ...] | None:
    """The turns of the conversation that a text holds as JSON; none where it is no conversation."""
    try:
        content = parse_json(text, "the text") if text.lstrip().startswith("{") else {}
    except InputError:
        return None
    turns: tuple[Any, ...] = tuple(content.get(name) for name in TURNS)
    return turns if all(isinstance(turn, str) for turn in turns) else None


def dialogue_text(turns: Sequence[str], dialogue: str = "user-last") -> str:
    """A conversation as one text, a line per turn."""
    *context, user = turns
    if dialogue == "user-only":
        return user
    ordered = [user, *context] if dialogue == "user-first" else turns
    return "\n".join(turn for turn in ordered if turn.strip())


CLASSES = ("0", "1")
SPLITS = ("train", "dev", "test")
BINARY = {"0": "0", "1": "1"}
"""The labels of all datasets but ConvAbuse, and their classes."""
SEVERITY = {"-3": "1", "-2": "1", "-1": "1", "0": "0", "1": "0"}
"""The labels of ConvAbuse and their classes: below 0 is abusive."""
FILE_NAME = re.compile(rf"(?P<dataset>.+)_(?P<split>{'|'.join(SPLITS)})")
_FIELDS = ("text", "annotators", "annotations", "hard_label")


def read_lewidi(
    path: str | Path,
    *,
    split: str | None = None,
    classes: Sequence[object] | None = None,
    duplicates: Duplicates = "all",
    dialogue: str = "user-last",
    scale: ScaleLike | None = None,
) -> Annotations:
    """Read one JSON file (``HS-Brexit_dev.json``) or a folder of splits (``HS-Brexit/``).

    Items are named ``<split>-<key>``, classes are "0" and "1", hard labels are the published
    ones. The annotators of HS-Brexit and ArMIS have the attribute ``group``; items have the columns
    ``lang`` and, in the other datasets, what is plain in ``other_info`` (``domain``, ``bot``).
    Soft labels follow from the annotations, not from the rounded ones in the file. ``duplicates``
    is "all" because one item of MD-Agreement lists an annotator twice. ``dialogue`` is one of
    `DIALOGUE_TEXTS`.
    """
    one_of("dialogue", dialogue, DIALOGUE_TEXTS)
    rows: list[dict[str, str]] = []
    for file in split_files(Path(path)):
        file_rows = _rows(file, dialogue)
        if repeated := {row["item"] for row in rows} & {row["item"] for row in file_rows}:
            raise wrong(f"{file} has {examples(sorted(repeated))}, as another file has")
        rows += file_rows
    table = pd.DataFrame(rows)
    if "group" in table:
        # Not every item names the groups of its annotators.
        table["group"] = table["group"].fillna(
            table.groupby("annotator")["group"].transform("first")
        )
    table = table.fillna("")
    with errors_in(path):
        return Annotations.from_table(
            table,
            classes=CLASSES if classes is None else classes,
            duplicates=duplicates,
            split=split,
            attributes=["group"] if "group" in table else [],
            scale=scale,
        )


def is_lewidi(data: Any) -> bool:
    """Whether a JSON document looks like a LeWiDi file: items by key, with annotators."""
    return isinstance(data, dict) and any(
        isinstance(item, dict) and "annotators" in item and "annotations" in item
        for item in data.values()
    )


def _rows(file: Path, dialogue: str) -> list[dict[str, str]]:
    """A row per annotation."""
    data = read_split(file)
    match = FILE_NAME.fullmatch(file.stem)
    # One file holds conversations throughout, or none.
    conversations = any(
        isinstance(raw, dict) and parse_dialogue(str(raw.get("text"))) for raw in data.values()
    )
    return [
        row
        for key, raw in data.items()
        for row in _item_rows(
            key,
            raw,
            match["split"] if match else "",
            dialogue if conversations else None,
            f"item {key!r} of {file}",
        )
    ]


def read_split(file: Path) -> dict[str, Any]:
    """The items of a file by key."""
    data = read_json(file)
    if not isinstance(data, dict) or not data:
        raise InputError(
            f"{file} is {'empty' if data in ({}, []) else 'something else'}, not a LeWiDi file:"
            " a JSON object of items",
            "check that it is the right file",
        )
    return data


def split_files(path: Path) -> list[Path]:
    """The file itself, or the splits in a folder in the order train, dev, test."""
    if not path.is_dir():
        return [path]
    splits = [
        (match["dataset"], SPLITS.index(match["split"]), file)
        for file in path.glob("*.json")
        if (match := FILE_NAME.fullmatch(file.stem))
    ]
    if not splits:
        inside = sorted(folder.name for folder in path.iterdir() if folder.is_dir())
        raise InputError(
            f"{path} holds neither tables nor splits of a LeWiDi dataset (NAME_train.json,"
            " NAME_dev.json, NAME_test.json)",
            f"name one of the folders in it: {examples(inside, 4)}" if inside else "name a file",
        )
    datasets = sorted({dataset for dataset, _, _ in splits})
    if len(datasets) > 1:
        raise InputError(
            f"{path} holds several LeWiDi datasets: {examples(datasets, 4)}",
            "name one file, or put each dataset into its own folder",
        )
    return [file for _, _, file in sorted(splits)]


def _item_rows(
    key: str, item: Any, file_split: str, dialogue: str | None, where: str
) -> list[dict[str, str]]:
    """The annotations of an item; its text is a conversation where ``dialogue`` says how to join
    its turns."""
    _check_fields(item, where)
    split = str(item.get("split") or file_split).strip()
    if not split:
        raise wrong(f"{where} does not name its split")
    labels = [part.strip() for part in item["annotations"].split(",")]
    annotators = [part.strip() for part in item["annotators"].split(",")]
    # Text in most places, a number in some rows of ConvAbuse.
    hard_label = as_name(item["hard_label"]).strip()
    classes = SEVERITY if dialogue else BINARY
    if not any(labels):
        raise wrong(f"{where} has no annotation")
    _check_labels(labels, classes, "annotation", where)
    _check_labels([hard_label], BINARY, "hard label", where)
    if len(annotators) != len(labels) or not all(annotators):
        raise wrong(
            f"{where} has {counted(len(labels), 'annotation')} by"
            f" {counted(sum(map(bool, annotators)), 'annotator')}"
        )
    turns = parse_dialogue(item["text"]) if dialogue else (item["text"],)
    if turns is None:
        raise wrong(
            f"the text of {where} is not a conversation like others: JSON with the turns"
            f" {', '.join(TURNS)}"
        )
    check_unicode([key, split, *turns, *annotators], where)
    groups = _groups(item.get("other_info"), annotators, where)
    shared = {
        # Where it has the groups of the annotators, the rest explains these.
        **columns_of({"lang": item.get("lang")} if groups else item),
        "item": f"{split}-{key}",
        "split": split,
        "text": dialogue_text(turns, dialogue) if dialogue else turns[0],
        "hard_label": hard_label,
    }
    rows = [
        {**shared, "annotator": annotator, "label": classes[label]}
        for annotator, label in zip(annotators, labels, strict=True)
    ]
    for row, group in zip(rows, groups, strict=False):
        row["group"] = group
    return rows


def _check_fields(item: Any, where: str) -> None:
    """Refuse an item without the fields of LeWiDi 2023."""
    if not isinstance(item, dict):
        raise wrong(f"{where} is not a JSON object")
    if isinstance(item.get("annotations"), dict):
        raise InputError(
            f"{where} has an object of annotations, as in LeWiDi 2025",
            f"choose {option('format', 'lewidi2025')}",
        )
    missing = [name for name in _FIELDS if item.get(name) is None]
    if missing:
        raise wrong(f"{where} has no {examples(missing, 4)}")
    for name in ("annotations", "annotators", "text"):
        if not isinstance(item[name], str):
            kind = "text" if name == "text" else "text with commas between its parts"
            raise wrong(f"{where}: {name!r} is {type(item[name]).__name__}, not {kind}")


def _check_labels(labels: list[str], allowed: Mapping[str, str], noun: str, where: str) -> None:
    unknown = [label for label in labels if label not in allowed]
    if unknown:
        choices = ", ".join(allowed)
        raise wrong(f"{where} has the {noun} {word(unknown[0])}, which is none of {choices}")


def _groups(other: Any, annotators: list[str], where: str) -> list[str]:
    """The group of each annotator, as HS-Brexit lists them or ArMIS names them; else none."""
    if not isinstance(other, dict):
        return []
    for field, value in other.items():
        if field.lower().replace("_", " ") == "annotators group":
            groups = [part.strip() for part in str(value).split(",")]
            if len(groups) != len(annotators):
                groups_text = counted(len(groups), "group")
                raise wrong(
                    f"{where} has {groups_text} for {counted(len(annotators), 'annotator')}"
                )
            return [str(other.get(group, group)) for group in groups]
    if all(annotator in other for annotator in annotators):
        return [str(other[annotator]) for annotator in annotators]
    return []


def columns_of(item: Mapping[str, Any]) -> dict[str, str]:
    """What else is known of an item: its language, and plain values such as its domain."""
    extra_fields = item.get("other_info")
    fields = {"lang": item.get("lang"), **(extra_fields if isinstance(extra_fields, dict) else {})}
    return {
        name: as_name(value)
        for name, value in fields.items()
        # Annotators' own reasons give the answer away.
        if isinstance(value, str | int | float)
        and name not in ROLES
        and "explanation" not in name.lower()
    }


def check_unicode(parts: Iterable[str], where: str) -> None:
    """JSON can write one half of a pair of surrogates, which is no character."""
    try:
        "".join(parts).encode()
    except UnicodeEncodeError as error:
        raise wrong(f"{where} has half a character, which is not valid Unicode") from error


def wrong(message: str) -> InputError:
    """A published file that is not as published."""
    return InputError(message, "correct the file, or download it again")


SOURCE = Source(
    "lewidi",
    "a LeWiDi 2023 JSON file or a folder of its splits",
    read_lewidi,
    # A folder that holds no tables is taken for one of LeWiDi's, whose reader says what it needs.
    lambda path, content: path.is_dir() or is_lewidi(content),
    options=("dialogue",),
)
