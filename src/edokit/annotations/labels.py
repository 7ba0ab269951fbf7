"""Labels of a column as classes; variants and sets of labels need an explicit choice."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import InputError, counted, examples, open_decision, option, warn, word
from edokit._names import (
    Encoded,
    as_name,
    as_names,
    check_unique,
    class_order,
    recode,
    renamed,
    spelling_key,
)
from edokit._types import Codes, Floats, Strings
from edokit.scales import Scale, number_list

_SEPARATORS = re.compile(r"[,;|/+]")
# Sums this close to 1 are not rescaled.
_SUM_TOLERANCE = 1e-12
# A label column with texts or ids would fill the memory with counts [N, C].
_MOST_COUNTS = 1 << 30


class LabelAnswers(NamedTuple):
    """The classes, and the label of each annotation: codes [M], or probabilities [M, C]."""

    classes: tuple[str, ...]
    codes: Codes | None
    probabilities: Floats | None = None


class Labels(NamedTuple):
    """Labels of rows; for multi-label data, cells with the labels in each."""

    encoded: Encoded
    sets: Mapping[str, Sequence[str]]

    @property
    def names(self) -> set[str]:
        """The single labels."""
        single = {name for name in self.encoded.names if name not in self.sets}
        return single.union(*self.sets.values())

    def rows(self, name: str) -> npt.NDArray[np.intp]:
        """The rows with a label, also among others."""
        cells = enumerate(self.encoded.names)
        codes = [code for code, cell in cells if name in self.sets.get(cell, [cell])]
        return np.flatnonzero(np.isin(self.encoded.codes, codes))

    def counts(self) -> dict[str, int]:
        """The number of rows with each cell."""
        codes = self.encoded.codes
        numbers = np.bincount(codes[codes >= 0], minlength=len(self.encoded.names))
        return dict(zip(self.encoded.names.tolist(), numbers.tolist(), strict=True))

    def first(self, place: Callable[[int], str]) -> Callable[[str], str]:
        """The place of the first row with a label."""

        def place_of(name: str) -> str:
            rows = self.rows(name)
            return place(int(rows[0])) if len(rows) else "the declaration"

        return place_of

    def renamed(self, names: Mapping[str, str]) -> Labels:
        """The same rows with some labels replaced, also those in sets."""
        sets = {
            cell: list(dict.fromkeys(names.get(label, label) for label in labels))
            for cell, labels in self.sets.items()
        }
        single = {old: new for old, new in names.items() if old not in self.sets}
        return Labels(renamed(self.encoded, single), sets)

    def indicators(self, classes: Sequence[str], place: Callable[[int], str]) -> Floats:
        """Each set as 1 for each of its labels and 0 for the others [M, C]."""
        cells = [self.sets.get(name, [name]) for name in self.encoded.names]
        lengths = np.array([len(cell) for cell in cells], dtype=np.intp)
        parts, place_of = as_names(chain.from_iterable(cells)), self.first(place)
        listed = Encoded(np.arange(len(parts), dtype=np.int32), parts)
        codes = recode(listed, classes, "label", "classes", lambda k: place_of(parts[k]))
        chosen = np.zeros((len(cells), len(classes)))
        chosen[np.repeat(np.arange(len(cells)), lengths), codes] = 1
        return np.asarray(chosen[self.encoded.codes])

    def answers(
        self,
        classes: Sequence[str] | None,
        n_items: int,
        place: Callable[[int], str],
        *,
        sets: bool,
    ) -> LabelAnswers:
        """The labels as annotations hold them; ``classes`` are declared, or None."""
        order = ordered_classes(classes, self.names)
        if not order:
            raise InputError(
                "no row has a label: all sets are empty",
                f"declare the labels, as in {option('scale', 'multi-label:rude,mocking')}",
                code="missing-value",
            )
        if len(order) * n_items > _MOST_COUNTS:
            raise InputError(
                f"there are {len(order):,} different labels for {n_items:,} items; the"
                " column seems to hold something else",
                f"map the right column with {option('columns', {'label': 'NAME'})}",
                code="too-many-values",
            )
        if sets:
            return LabelAnswers(order, None, self.indicators(order, place))
        codes = recode(self.encoded, order, "label", "classes", place, can_map=True)
        return LabelAnswers(order, codes)


def read_labels(
    column: Encoded,
    name: str,
    place: Callable[[int], str],
    *,
    classes: Iterable[str] | None,
    label_map: Mapping[str, str] | None = None,
    sets: bool = False,
    ignore_case: bool = False,
) -> Labels:
    """The labels of a column; ambiguous ones are refused unless an option says how to read them.

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
    sets : bool, default=False
        Whether cells are sets of labels.
    ignore_case : bool, default=False
        Labels that differ only in case, blanks or how a number is written are the same.
    """
    declared = None if classes is None else set(classes)
    labels = renamed(column, label_map or {})
    if sets:
        _refuse_broken_lists(labels, declared, place)
        result = Labels(labels, set_parts(list(labels.names), declared))
    else:
        _refuse_sets(labels, name, declared, place)
        result = Labels(labels, {})
    if not ignore_case and declared is not None:
        return result
    mapping, listed = _variants(result, place, classes or ())
    if mapping and not ignore_case:
        raise open_decision(
            f"labels in doubtful spellings (case, blanks or how a number is written): {listed}",
            f"say that they are the same: {option('ignore_case', True)}, or one by one with"
            f" {option('label_map', mapping)}; or that they are not, by declaring every class"
            f" ({option('classes')})",
            ignore_case=True,
            code="doubtful-spelling",
        )
    if mapping:
        warn(f"labels that differ only in case, blanks or as numbers are the same: {listed}")
    return result.renamed(mapping)


def _refuse_sets(
    labels: Encoded, name: str, declared: set[str] | None, place: Callable[[int], str]
) -> None:
    """Refuse cells with a list, or with several labels, where each annotation is one label.

    A name such as 1/2 or R+B is one label unless its parts are labels, too.
    """
    single = {spelling_key(label) for label in declared or labels.names}

    def is_set(cell: str) -> bool:
        parts = _split(cell)
        has_several = len(parts) > 1 and single.issuperset(map(spelling_key, parts))
        return cell not in (declared or ()) and (has_several or _listed(cell) is not None)

    if sets := [code for code, cell in enumerate(labels.names) if is_set(cell)]:
        rows = np.flatnonzero(np.isin(labels.codes, sets))
        raise open_decision(
            f"{place(int(rows[0]))} has a set of labels in column {name!r}:"
            f" {word(labels.names[labels.codes[rows[0]]])} ({counted(len(rows), 'such row')})",
            f"choose {option('scale', 'multi-label')} if annotations are sets of labels; if this is"
            f" one label, declare every class with {option('classes')}, or read it as another with"
            f" {option('label_map')}",
            scale="multi-label",
            code="undeclared-sets",
        )


def as_label_map(
    label_map: Mapping[Any, object] | None, names: Iterable[str] | None
) -> dict[str, str]:
    """The map with its labels as names; labels outside ``names`` are refused (None: accepted)."""
    mapping = {as_name(old): as_name(new) for old, new in (label_map or {}).items()}
    labels = set(mapping) if names is None else set(names)
    unknown = [old for old in mapping if old not in labels]
    if unknown:
        raise InputError(
            f"{option('label_map')} has {examples(unknown)}, but the labels are"
            f" {examples(sorted(labels), 20)}",
            "check the spelling, blanks included",
            code="unknown-label",
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
                code="invalid-label-set",
            )


def _listed(name: str) -> list[str] | None:
    """The labels of a cell that is a list in JSON, or in Python as pandas writes it."""
    for read in (json.loads, ast.literal_eval) if name.startswith("[") else ():
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            listed = read(name)
            if isinstance(listed, list) and all(isinstance(part, str | int) for part in listed):
                return [as_name(part).strip() for part in listed]
    return None


def single_label(cell: str) -> str:
    """The label of a cell that is a list of one, else the cell."""
    listed = _listed(cell)
    return listed[0] if listed and len(listed) == 1 else cell


def _split(name: str) -> list[str]:
    return [part.strip() for part in _SEPARATORS.split(name)]


def _variants(
    labels: Labels, place: Callable[[int], str], declared: Iterable[str]
) -> tuple[dict[str, str], str]:
    """Labels that differ only in case, blanks or how a number is written: each with its main
    spelling (the declared, else the most frequent one), and all of them in words."""
    groups: dict[str, list[str]] = {}
    for name in sorted(labels.names):
        groups.setdefault(spelling_key(name), []).append(name)
    main_names = {spelling_key(name): name for name in declared}
    doubtful = {
        key: variants
        for key, variants in groups.items()
        if len(variants) > 1 or variants[0] != main_names.get(key, variants[0].strip())
    }
    rows = {name: labels.rows(name) for variants in doubtful.values() for name in variants}

    def described(name: str) -> str:
        return (
            f"{word(name)} ({counted(len(rows[name]), 'row')}, first {place(int(rows[name][0]))})"
        )

    def preference(name: str) -> tuple[int, bool, bool]:
        return len(rows[name]), name == name.strip(), name.islower()

    mapping: dict[str, str] = {}
    for key, variants in doubtful.items():
        main = main_names.get(key, max(variants, key=preference).strip())
        mapping |= {name: main for name in variants if name != main}
    listed = [" and ".join(map(described, variants)) for variants in doubtful.values()]
    remainder = f"; and {len(listed) - 3} more" if len(listed) > 3 else ""
    if blank := [described(name) for name, main in mapping.items() if not main]:
        raise open_decision(
            f"labels are blank: {' and '.join(blank)}",
            f"choose {option('empty', 'drop')}, or fill them in",
            empty="drop",
            code="missing-value",
        )
    return mapping, "; ".join(listed[:3]) + remainder


def ordered_classes(
    declared: Sequence[object] | None, names_found: Iterable[str]
) -> tuple[str, ...]:
    """The declared classes in their order, else those found in class order."""
    if declared is None:
        return class_order(names_found)
    names = as_names(declared)
    if not len(names):
        raise InputError(
            f"{option('classes')} is empty",
            "name the classes, or leave it out",
            code="empty-option",
        )
    return tuple(unique_ids(names, len(names), "classes", "class"))


def checked_shares(values: Floats, scale: Scale, place: Callable[[int], str]) -> Floats:
    """Distributions [M, C], rescaled where rounding left their sum off 1; others are refused.

    ``place`` names a row in the message.
    """

    def refuse(fault: str, row: tuple[int, ...]) -> InputError:
        count = counted(int((~scale.are_distributions(values)).sum()), "such row")
        return InputError(
            f"{place(row[0])} has ({number_list(values[row])}), which are not probabilities: they"
            f" {fault} ({count})",
            "correct or drop these rows",
            code="invalid-probabilities",
        )

    return scale.distributions(values, _SUM_TOLERANCE, refuse)


def list_labels_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of lists of labels, as Parquet and JSON have them, as text; others unchanged."""
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return column
    cells = [None if cell is None else json.dumps(cell) for cell in column.to_pylist()]
    return pa.chunked_array([pa.array(cells, pa.string())])


def unique_ids(names: Iterable[object] | None, length: int, kind: str, per: str) -> Strings:
    ids = as_names(range(length) if names is None else names)
    if len(ids) != length:
        raise InputError(
            f"there are {len(ids)} {kind}, but {length} {per}s",
            f"give {length} {kind}",
            code="lengths-differ",
        )
    check_unique(ids, kind, f"give each {per} its own")
    if "" in ids:
        raise InputError(
            f"one of the {kind} is empty text", f"name every {per}", code="missing-value"
        )
    return ids
