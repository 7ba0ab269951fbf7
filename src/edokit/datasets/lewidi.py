"""The LeWiDi 2023 datasets (SemEval-2023 Task 11), from their JSON files as published."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from pydantic import JsonValue

from edokit._errors import InputError, counted, errors_in, examples, one_of
from edokit._io import parse_json, read_json
from edokit._io.documents import Document, to_model
from edokit._names import as_name
from edokit.annotations import Annotations
from edokit.annotations.long_table import ROLES, STRICT, Policies, from_long_table
from edokit.datasets.exports import Name, is_plain
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
SEVERITY = {"-3": "1", "-2": "1", "-1": "1", "0": "0", "1": "0"}
"""The labels of ConvAbuse and their classes: below 0 is abusive."""
FILE_NAME = re.compile(rf"(?P<dataset>.+)_(?P<split>{'|'.join(SPLITS)})")


class Published(Document):
    """What items of 2023 and 2025 have in common."""

    annotators: str
    split: str | None = None
    lang: JsonValue = None
    other_info: JsonValue = None

    @property
    def annotator_names(self) -> list[str]:
        """Those who annotated the item."""
        return [name.strip() for name in self.annotators.split(",")]

    @property
    def columns(self) -> dict[str, str]:
        """What else is known of an item: its language, and plain values such as its domain."""
        extra_fields = self.other_info if isinstance(self.other_info, dict) else {}
        return {
            name: as_name(value)
            for name, value in {"lang": self.lang, **extra_fields}.items()
            # Annotators' own reasons give the answer away.
            if is_plain(value) and name not in ROLES and "explanation" not in name.lower()
        }

    @property
    def groups(self) -> list[str]:
        """The group of each annotator, as HS-Brexit lists them or ArMIS names them; else none."""
        notes = self.other_info if isinstance(self.other_info, dict) else {}
        for field, value in notes.items():
            if field.lower().replace("_", " ") == "annotators group":
                groups = [part.strip() for part in str(value).split(",")]
                return [str(notes.get(group, group)) for group in groups]
        if all(name in notes for name in self.annotator_names):
            return [str(notes[name]) for name in self.annotator_names]
        return []


class Item(Published):
    """An item of 2023.

    Attributes
    ----------
    hard_label : Name
        Text in most places, a number in some rows of ConvAbuse.
    """

    text: str
    annotations: str
    hard_label: Name


Model = TypeVar("Model", bound=Published)


def read_lewidi(
    path: str | Path,
    *,
    split: str | None = None,
    classes: Sequence[object] | None = None,
    policies: Policies = STRICT,
    dialogue: str = "user-last",
    scale: ScaleLike | None = None,
) -> Annotations:
    """Read one JSON file (``HS-Brexit_dev.json``) or a folder of splits (``HS-Brexit/``).

    Items are named ``<split>-<key>``, classes are "0" and "1", hard labels are the published
    ones. The annotators of HS-Brexit and ArMIS have the attribute ``group``; items have the columns
    ``lang`` and, in the other datasets, what is plain in ``other_info`` (``domain``, ``bot``).
    Soft labels follow from the annotations, not from the rounded ones in the file. ``duplicates``
    are "all" by default because one item of MD-Agreement lists an annotator twice. ``dialogue`` is
    one of `DIALOGUE_TEXTS`.
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
    with errors_in(path):
        return from_long_table(
            table.fillna(""),
            classes=CLASSES if classes is None else classes,
            policies=replace(policies, duplicates=policies.duplicates or "all"),
            split=split,
            attributes=["group"] if "group" in table else [],
            scale=scale,
            place=lambda row: f"item {rows[row]['item']!r}",
        )


def is_lewidi(data: Any) -> bool:
    """Whether a JSON document looks like a LeWiDi file: items by key, with annotators."""
    return isinstance(data, dict) and any(
        isinstance(item, dict) and "annotators" in item and "annotations" in item
        for item in data.values()
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


def read_split(file: Path, model: type[Model]) -> dict[str, Model]:
    """The items of a file by key."""
    content = read_json(file, math.inf)
    if not isinstance(content, dict) or not content:
        raise InputError(
            f"{file} is {'empty' if content in ({}, []) else 'something else'}, not a LeWiDi file:"
            " a JSON object of items",
            "check that it is the right file",
        )
    hint = "correct the file, or download it again"
    return to_model(content, dict[str, model], file, title="a LeWiDi file", hint=hint)  # type: ignore[valid-type]


def split_of_file(file: Path) -> str:
    """The split in the name of a file, if there is one."""
    match = FILE_NAME.fullmatch(file.stem)
    return match["split"] if match else ""


def _rows(file: Path, dialogue: str) -> list[dict[str, str]]:
    """A row per annotation."""
    items = read_split(file, Item)
    # One file holds conversations throughout, or none.
    has_turns = any(parse_dialogue(item.text) for item in items.values())
    rows = []
    for key, item in items.items():
        place = f"item {key!r} of {file}"
        split = (item.split or split_of_file(file)).strip()
        if not split:
            raise wrong(f"{place} does not name its split")
        turns = parse_dialogue(item.text) if has_turns else (item.text,)
        if turns is None:
            names = ", ".join(TURNS)
            raise wrong(
                f"the text of {place} is not a conversation like others: JSON with the turns"
                f" {names}"
            )
        shared = {
            # Where it has the groups of the annotators, the rest explains these.
            **({"lang": item.columns["lang"]} if item.groups else item.columns),
            "item": f"{split}-{key}",
            "split": split,
            "text": dialogue_text(turns, dialogue) if has_turns else item.text,
            "hard_label": item.hard_label.strip(),
        }
        rows += [shared | answer for answer in _answers(item, place, SEVERITY if has_turns else {})]
    return rows


def _answers(item: Item, place: str, classes: dict[str, str]) -> list[dict[str, str]]:
    """Annotator, label and group of each annotation."""
    labels = [label.strip() for label in item.annotations.split(",")]
    names, groups = item.annotator_names, item.groups
    if len(labels) != len(names) or len(groups or names) != len(names):
        noted = f" and {counted(len(groups), 'group')}" if groups else ""
        raise wrong(
            f"{place} has {counted(len(labels), 'annotation')}{noted} for"
            f" {counted(len(names), 'annotator')}"
        )
    answers = [
        {"annotator": name, "label": classes.get(label, label)}
        for name, label in zip(names, labels, strict=True)
    ]
    for answer, group in zip(answers, groups, strict=False):
        answer["group"] = group
    return answers


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
