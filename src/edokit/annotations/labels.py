"""Which labels are classes: what may be one label spelled twice, or several in one, is asked."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from edokit._errors import InputError, counted, examples, one_of, option, warn, word
from edokit._names import (
    Encoded,
    as_name,
    class_order,
    renamed,
    spelling_key,
)
from edokit._types import Floats, Ints, Strings

MultiChoice = Literal["error", "first", "split", "join"]
"""Several labels in one annotation: refuse them, keep the first, share the annotation between them,
or make each combination a class."""
MULTI_CHOICE_HINT = (
    f"choose {option('scale', 'multi-label')} if annotations are sets of labels, or"
    f" {option('multi_choice', 'split')} to share the annotation between its labels, 'first' to"
    " keep the first, 'join' to make each combination a class"
)
_SEPARATORS = re.compile(r"[,;|/+]")
_SHOWN = 8
"""Classes and pairs of labels that a hint spells out."""


class Labels(NamedTuple):
    """Labels of rows, and the parts of those that share a row."""

    encoded: Encoded
    parts: Mapping[str, Sequence[str]]

    @property
    def names(self) -> set[str]:
        """The single labels."""
        single = {name for name in self.encoded.names if name not in self.parts}
        return single.union(*self.parts.values())

    def first(self, place: Callable[[int], str]) -> Callable[[str], str]:
        """The place of the first row with a label."""

        def place_of(name: str) -> str:
            codes = np.flatnonzero(self.encoded.names == name)
            rows = np.flatnonzero(np.isin(self.encoded.codes, codes))
            return place(int(rows[0])) if len(rows) else "the declaration"

        return place_of

    def shares(self, classes: Sequence[str], place: Callable[[int], str], *, sets: bool) -> Floats:
        """Each row as probabilities [M, C], divided evenly between its labels; of sets, 1 for each
        of its labels and 0 for the others."""
        position = {name: k for k, name in enumerate(classes)}
        rows = np.zeros((len(self.encoded.names), len(classes)))
        for code, name in enumerate(self.encoded.names):
            parts = self.parts.get(name, [name])
            for part in parts:
                if part not in position:
                    row = int(np.flatnonzero(self.encoded.codes == code)[0])
                    raise InputError(
                        f"{place(row)} has label {word(part)}, which is not among the classes"
                        f" {examples(classes, 20)}",
                        "declare it among the classes, or correct the label",
                    )
                rows[code, position[part]] = 1 if sets else 1 / len(parts)
        shares: Floats = rows[self.encoded.codes]
        return shares


def read_labels(
    column: Encoded,
    name: str,
    place: Callable[[int], str],
    *,
    classes: Iterable[str] | None,
    label_map: Mapping[str, str] | None = None,
    multi_choice: MultiChoice | Literal["sets"] = "error",
) -> Labels:
    """The labels of a column; those that need a decision are refused unless it was made.

    Parameters
    ----------
    column : Encoded
    name : str
        What the column is called.
    place : callable
        The place of a row, for messages.
    classes : iterable of str or None
        The declared classes: what is among them is one label.
    label_map : mapping of str to str, optional
        Labels to read as others, as `as_label_map` returns them.
    multi_choice : {"error", "first", "split", "join"}, default="error"
        What to do with several labels in one cell; ``sets`` where cells are sets of labels.
    """
    one_of("multi_choice", multi_choice, (*get_args(MultiChoice), "sets"))
    declared = None if classes is None else set(classes)
    labels = renamed(column, label_map or {})
    sets = multi_choice == "sets"
    if sets:
        _refuse_broken_lists(labels, declared, place)
    parts = (set_parts if sets else _several)(list(labels.names), declared)
    empty = (
        []
        if sets
        else [name_of_cell for name_of_cell in labels.names if _listed(name_of_cell) == []]
    )
    if empty and declared is None:
        rows = np.flatnonzero(np.isin(labels.names[labels.codes], empty))
        raise InputError(
            f"{place(int(rows[0]))} has an empty set of labels in column {name!r}"
            f" ({counted(len(rows), 'such row')})",
            f"choose {option('scale', 'multi-label')} if any number of labels may be chosen, else"
            " fill in or drop these rows",
        )
    if parts and multi_choice == "error":
        row = int(np.flatnonzero(np.isin(labels.names[labels.codes], list(parts)))[0])
        rows = sum(_counts(labels)[labels.names == name_of_cell][0] for name_of_cell in parts)
        raise InputError(
            f"{place(row)} has several labels in one cell of column {name!r}:"
            f" {word(labels.names[labels.codes[row]])} ({counted(int(rows), 'such row')})",
            f"{MULTI_CHOICE_HINT}; where it is one label, declare every class with"
            f" {option('classes')}",
        )
    if multi_choice in ("first", "join"):
        merged = {
            name_of_cell: joined(cell_labels, multi_choice)
            for name_of_cell, cell_labels in parts.items()
        }
        labels, parts = renamed(labels, merged), {}
    result = Labels(labels, parts)
    if declared is None:
        _refuse_variants(result, place)
        if sets:
            _note_split_labels(result)
    return result


def joined(labels: Sequence[str], multi_choice: str) -> str:
    """One label for several: the first, or all of them whatever their order."""
    return labels[0] if multi_choice == "first" else " & ".join(class_order(labels))


def as_label_map(
    label_map: Mapping[Any, object] | None, names: Iterable[str] | None
) -> dict[str, str]:
    """Names to names; a label that is not among those found is refused (None: any will do)."""
    mapping = {as_name(old): as_name(new) for old, new in (label_map or {}).items()}
    labels = set(mapping) if names is None else set(names)
    unknown = [old for old in mapping if old not in labels]
    if unknown:
        raise InputError(
            f"{option('label_map')} has {examples(unknown)}, but the labels are"
            f" {examples(sorted(labels), 20)}",
            "check the spelling, blanks included",
        )
    return mapping


def as_points(names: Iterable[str], declared: Iterable[str] | None) -> dict[str, str]:
    """Numbers by the name that points of a scale have (4.0 and +4 are 4), except declared ones."""
    points: dict[str, str] = {}
    for name in set(names).difference(declared or ()):
        with suppress(ValueError):
            if math.isfinite(number := float(name.replace("−", "-"))):
                points[name] = as_name(number)
    return points


def refuse_unknown_hard_labels(
    hard: Encoded, labels: Iterable[str], item: Callable[[int], str]
) -> None:
    """Refuse published labels that no annotator gave; ``item`` names an item by its position."""
    label_names = set(labels)
    unknown = [name for name in hard.names if name not in label_names]
    if not unknown:
        return
    codes = np.flatnonzero(np.isin(hard.names, unknown))
    rows = np.flatnonzero(np.isin(hard.codes, codes))
    example = str(hard.names[hard.codes[rows[0]]])
    by_key = {spelling_key(name): name for name in label_names}
    close = get_close_matches(spelling_key(example), by_key, 1)
    remedy = option("label_map", {example: by_key[close[0]]}) if close else ""
    guess = f"{remedy} corrects it; " if close else ""
    raise InputError(
        f"the hard label of {item(int(rows[0]))} is {word(example)}, which no annotator gave"
        f" ({counted(len(rows), 'such item')} with {examples(unknown)}); the annotators' labels are"
        f" {examples(class_order(label_names), 20)}",
        f"{guess}if it is a class, declare every class{_declared({*label_names, *unknown})}",
    )


def _several(names: Sequence[str], declared: set[str] | None) -> dict[str, list[str]]:
    """The parts of each name that holds several labels; declared classes are one label."""
    cells: dict[str, list[str]] = {}
    for name in names:
        if name in (declared or ()):
            continue
        if (listed := _listed(name)) is not None:
            cells[name] = listed
            continue
        parts = _split(name)
        if len(parts) > 1 and all(parts):
            cells[name] = parts
    single = {spelling_key(name) for name in declared or names if name not in cells}
    single |= {spelling_key(parts[0]) for parts in cells.values() if len(parts) == 1}
    # A name such as 1/2 or R+B is one label unless its parts are labels, too.
    split = any({*map(spelling_key, parts)} <= single for parts in cells.values() if parts)
    return {
        name: list(dict.fromkeys(parts))
        for name, parts in cells.items()
        if parts and (_listed(name) or (split and not single.isdisjoint(map(spelling_key, parts))))
    }


def set_parts(names: Sequence[str], declared: set[str] | None) -> dict[str, list[str]]:
    """The labels of each set; a declared class is one label, whatever characters it has."""
    return {
        name: list(dict.fromkeys(_split(name) if (listed := _listed(name)) is None else listed))
        for name in names
        if name not in (declared or ())
    }


def _refuse_broken_lists(
    labels: Encoded, declared: set[str] | None, place: Callable[[int], str]
) -> None:
    """Refuse cells that begin as a list and are none: their parts would have brackets."""
    for code, name in enumerate(labels.names):
        if name.startswith("[") and _listed(name) is None and name not in (declared or ()):
            row = int(np.flatnonzero(labels.codes == code)[0])
            raise InputError(
                f"{place(row)} has {word(name)}, which is no list of labels",
                """write it as ["rude", "mocking"], or as rude;mocking""",
            )


def _note_split_labels(labels: Labels) -> None:
    """Warn of labels that occur only beside each other, which may be one with a comma in it."""
    cells: dict[str, list[str]] = {}
    for name in labels.encoded.names:
        for part in labels.parts.get(name, [name]):
            cells.setdefault(part, []).append(name)
    for name, parts in labels.parts.items():
        if _listed(name) is None and len(parts) > 1 and all(cells[p] == [name] for p in parts):
            warn(
                f"{examples([name])} is read as the labels {examples(parts)}, which occur nowhere"
                f" else; if it is one label, declare all labels with {option('scale')}"
            )
            return


def _listed(name: str) -> list[str] | None:
    """The labels of a cell that is a list in JSON, or in Python as pandas writes it."""
    for read in (json.loads, ast.literal_eval) if name.startswith("[") else ():
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            listed = read(name)
            if isinstance(listed, list) and all(isinstance(part, str | int) for part in listed):
                return [as_name(part).strip() for part in listed]
    return None


def _split(name: str) -> list[str]:
    return [part.strip() for part in _SEPARATORS.split(name)]


def _refuse_variants(labels: Labels, place: Callable[[int], str]) -> None:
    """Refuse labels that differ only in case, blanks or how a number is written."""
    groups: dict[str, list[str]] = {}
    for name in sorted(labels.names):
        groups.setdefault(spelling_key(name), []).append(name)
    doubtful = [
        variants
        for variants in groups.values()
        if len(variants) > 1 or variants[0] != variants[0].strip()
    ]
    if not doubtful:
        return
    encoded = labels.encoded
    counts = dict(zip(encoded.names, _counts(encoded).tolist(), strict=True))

    def described(name: str) -> str:
        codes = [
            k for k, cell in enumerate(encoded.names) if name in labels.parts.get(cell, [cell])
        ]
        first_row = int(np.flatnonzero(np.isin(encoded.codes, codes))[0])
        rows = sum(counts[encoded.names[code]] for code in codes)
        return f"{word(name)} ({counted(rows, 'row')}, first {place(first_row)})"

    mapping: dict[str, str] = {}
    for variants in doubtful:
        main = max(
            variants, key=lambda name: (counts.get(name, 0), name == name.strip(), name.islower())
        ).strip()
        mapping |= {name: main for name in variants if name != main}
    listed = "; ".join(" and ".join(map(described, variants)) for variants in doubtful[:3])
    listed += f"; and {len(doubtful) - 3} more" if len(doubtful) > 3 else ""
    if "" in mapping.values():
        raise InputError(f"labels are blank: {listed}", "fill in or drop these rows")
    pairs = dict(list(mapping.items())[:_SHOWN])
    raise InputError(
        "labels that differ only in case, blanks or how a number is written: " + listed
        if any(len(variants) > 1 for variants in doubtful)
        else f"labels with blanks around them: {listed}",
        f"say that they are the same: {option('label_map', pairs)}; or that they are not, by"
        f" declaring every class{_declared(labels.names)}",
    )


def warn_variants(names: Strings, kind: str, *, case: bool = True) -> None:
    """Warn that some names are nearly the same, which may be one thing spelled in two ways."""
    if not case and len("".join(names).split()) < 2:  # no blanks
        return
    keys = list(map(str.strip, names.tolist()))
    keys = list(map(str.lower, keys)) if case else keys
    if keys == names.tolist() or len(set(keys)) == len(names):
        return
    first_names: dict[str, str] = {}
    pairs = [
        f"{word(first_names[key])} and {word(name)}"
        for key, name in zip(keys, names, strict=True)
        if first_names.setdefault(key, name) != name
    ]
    hidden = f" and {counted(len(pairs) - 3, 'more pair')}" if len(pairs) > 3 else ""
    warn(
        f"{kind} that differ only in {'case or ' if case else ''}blanks count as different ones:"
        f" {', '.join(pairs[:3])}{hidden}"
    )


def _counts(encoded: Encoded) -> Ints:
    """Rows with each name."""
    codes = encoded.codes[encoded.codes >= 0]
    counts: Ints = np.bincount(codes, minlength=len(encoded.names))
    return counts


def _declared(names: Iterable[str]) -> str:
    """The parameter that declares these classes, spelled out if they are few."""
    listed = list(class_order(names))
    return f": {option('classes', listed)}" if len(listed) <= _SHOWN else f" ({option('classes')})"
