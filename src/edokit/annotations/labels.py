"""Labels of a column as classes; spelling variants and label sets need an explicit decision."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import (
    InputError,
    Place,
    counted,
    examples,
    open_decision,
    option,
    warn,
    word,
)
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
_SUM_TOLERANCE = 1e-12  # a sum this close to 1 is not rescaled
# Limit of counts [N, C]: a column of texts or ids, mapped as label, would exceed the memory.
_MOST_COUNTS = 1 << 30


class EncodedLabels(NamedTuple):
    """The classes, and the label of each annotation: codes [M], or probabilities [M, C]."""

    classes: tuple[str, ...]
    codes: Codes | None
    probabilities: Floats | None = None


class LabelColumn(NamedTuple):
    """A column of labels; for multi-label data, also the labels in each distinct cell."""

    encoded: Encoded
    sets: Mapping[str, Sequence[str]]

    @property
    def names(self) -> set[str]:
        """All labels, with those in sets."""
        single_labels = {name for name in self.encoded.names if name not in self.sets}
        return single_labels.union(*self.sets.values())

    def rows(self, name: str) -> npt.NDArray[np.intp]:
        """The rows with a label, alone or in a set."""
        cells = enumerate(self.encoded.names)
        codes = [code for code, cell in cells if name in self.sets.get(cell, [cell])]
        return np.flatnonzero(np.isin(self.encoded.codes, codes))

    def counts(self) -> dict[str, int]:
        """The number of rows of each distinct cell."""
        codes = self.encoded.codes
        numbers = np.bincount(codes[codes >= 0], minlength=len(self.encoded.names))
        return dict(zip(self.encoded.names.tolist(), numbers.tolist(), strict=True))

    def first(self, place: Place) -> Callable[[str], str]:
        """A function from a label to the place of the first row that has it."""

        def first_place(name: str) -> str:
            rows = self.rows(name)
            if not len(rows):
                return "the declaration"
            return place(int(rows[0]))

        return first_place

    def renamed(self, names: Mapping[str, str]) -> LabelColumn:
        """The same rows with some labels replaced, including those in sets."""
        sets = {}
        for cell, labels in self.sets.items():
            new_labels = [names.get(label, label) for label in labels]
            sets[cell] = list(dict.fromkeys(new_labels))
        new_names = {old: new for old, new in names.items() if old not in self.sets}
        return LabelColumn(renamed(self.encoded, new_names), sets)

    def indicators(self, classes: Sequence[str], place: Place) -> Floats:
        """An indicator matrix [M, C]: 1 for each label in a row's set, 0 for the others."""
        cells = [self.sets.get(name, [name]) for name in self.encoded.names]
        labels = as_names(chain.from_iterable(cells))
        cell_of_label = np.repeat(np.arange(len(cells)), list(map(len, cells)))
        first_place = self.first(place)
        encoded = Encoded(np.arange(len(labels), dtype=np.int32), labels)
        codes = recode(encoded, classes, "label", lambda k: first_place(labels[k]))
        matrix = np.zeros((len(cells), len(classes)))
        matrix[cell_of_label, codes] = 1
        return np.asarray(matrix[self.encoded.codes])

    def encode(
        self,
        classes: Sequence[str] | None,
        n_items: int,
        place: Place,
        *,
        sets: bool,
    ) -> EncodedLabels:
        """Codes or indicators of classes, which are the declared ``classes`` if not None."""
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
                " column does not seem to contain labels",
                f"map the right column with {option('columns', {'label': 'NAME'})}",
                code="too-many-values",
            )
        if sets:
            return EncodedLabels(order, None, self.indicators(order, place))
        codes = recode(self.encoded, order, "label", place, can_map=True)
        return EncodedLabels(order, codes)


def read_labels(
    column: Encoded,
    name: str,
    place: Place,
    *,
    classes: Iterable[str] | None,
    label_map: Mapping[str, str] | None = None,
    sets: bool = False,
    ignore_case: bool = False,
) -> LabelColumn:
    """The labels of a column; ambiguous labels are refused unless an option decides.

    Parameters
    ----------
    column : Encoded
    name : str
        The name of the column.
    place : callable
        The place of a row, for messages.
    classes : iterable of str or None
        The declared classes; a cell that is a declared class is a single label.
    label_map : mapping of str to str, optional
        Labels to replace, from `as_label_map`.
    sets : bool, default=False
        Whether cells are sets of labels.
    ignore_case : bool, default=False
        Merge labels that differ only in case, blanks or the notation of a number.
    """
    declared = None
    if classes is not None:
        declared = set(classes)
    labels = renamed(column, label_map or {})
    if sets:
        _refuse_broken_lists(labels, declared, place)
        result = LabelColumn(labels, set_parts(list(labels.names), declared))
    else:
        _refuse_sets(labels, name, declared, place)
        result = LabelColumn(labels, {})
    if not ignore_case and declared is not None:
        return result
    variants = _variants(result, classes or ())
    if not variants:
        return result
    _refuse_blank_labels(result, variants, place)
    listed = _described_variants(result, variants, place)
    main_by_name = {}
    for variant in variants:
        for name in variant.names:
            if name != variant.main_name:
                main_by_name[name] = variant.main_name
    if not ignore_case:
        raise open_decision(
            f"labels differ only in case, blanks or the notation of a number: {listed}",
            f"merge them with {option('ignore_case', True)}, or one by one with"
            f" {option('label_map', main_by_name)}; or keep them apart by declaring every class"
            f" ({option('classes')})",
            ignore_case=True,
            code="doubtful-spelling",
        )
    warn(f"labels that differ only in case, blanks or as numbers are merged: {listed}")
    return result.renamed(main_by_name)


def _refuse_sets(labels: Encoded, name: str, declared: set[str] | None, place: Place) -> None:
    """Refuse cells with several labels if an annotation is a single label.

    A name such as 1/2 or R+B is one label unless its parts are also labels.
    """
    label_keys = {spelling_key(label) for label in declared or labels.names}

    def is_set(cell: str) -> bool:
        if cell in (declared or ()):
            return False
        parts = _split(cell)
        has_several = len(parts) > 1 and label_keys.issuperset(map(spelling_key, parts))
        return has_several or _listed(cell) is not None

    sets = [code for code, cell in enumerate(labels.names) if is_set(cell)]
    if sets:
        rows = np.flatnonzero(np.isin(labels.codes, sets))
        raise open_decision(
            f"{place(int(rows[0]))} has a set of labels in column {name!r}:"
            f" {word(labels.names[labels.codes[rows[0]]])} ({counted(len(rows), 'such row')})",
            f"choose {option('scale', 'multi-label')} if annotations are sets of labels; if this is"
            f" one label, declare every class with {option('classes')}, or replace it with"
            f" {option('label_map')}",
            scale="multi-label",
            code="undeclared-sets",
        )


def as_label_map(
    label_map: Mapping[object, object] | None, names: Iterable[str] | None
) -> dict[str, str]:
    """The map with labels as strings; labels outside ``names``, unless it is None, are refused."""
    mapping = {as_name(old): as_name(new) for old, new in (label_map or {}).items()}
    labels = set(mapping)
    if names is not None:
        labels = set(names)
    unknown = [old for old in mapping if old not in labels]
    if unknown:
        raise InputError(
            f"{option('label_map')} has {examples(unknown)}, but the labels are"
            f" {examples(sorted(labels), 20)}",
            "check the spelling, including blanks",
            code="unknown-label",
        )
    return mapping


def as_points(names: Iterable[str], declared: Iterable[str] | None) -> dict[str, str]:
    """Canonical names of numbers (4.0 and +4 are 4) by their spelling, except declared classes."""
    points: dict[str, str] = {}
    for name in set(names).difference(declared or ()):
        with suppress(ValueError):
            number = float(name.replace("−", "-"))
            if math.isfinite(number):
                points[name] = as_name(number)
    return points


def set_parts(names: Sequence[str], declared: set[str] | None) -> dict[str, list[str]]:
    """The labels of each set; a declared class is one label, whatever characters it contains."""
    sets = {}
    for name in names:
        if name in (declared or ()):
            continue
        labels = _listed(name)
        if labels is None:
            labels = _split(name)
        sets[name] = list(dict.fromkeys(labels))
    return sets


def _refuse_broken_lists(labels: Encoded, declared: set[str] | None, place: Place) -> None:
    """Refuse cells that begin like a list but can't be parsed: labels would contain brackets."""
    for code, name in enumerate(labels.names):
        if name.startswith("[") and _listed(name) is None and name not in (declared or ()):
            row = int(np.flatnonzero(labels.codes == code)[0])
            raise InputError(
                f"{place(row)} has {word(name)}, which is not a list of labels",
                """write it as ["rude", "mocking"], or as rude;mocking""",
                code="invalid-label-set",
            )


def _listed(name: str) -> list[str] | None:
    """The labels of a cell that is a JSON list or, as pandas writes it, a Python list."""
    if not name.startswith("["):
        return None
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            listed = read(name)
            if isinstance(listed, list) and all(isinstance(part, str | int) for part in listed):
                return [as_name(part).strip() for part in listed]
    return None


def single_label(cell: str) -> str:
    """The label of a cell that is a list of one label, else the cell."""
    listed = _listed(cell)
    if listed is not None and len(listed) == 1:
        return listed[0]
    return cell


def _split(name: str) -> list[str]:
    return [part.strip() for part in _SEPARATORS.split(name)]


class _Variants(NamedTuple):
    """Spellings of one label that differ only in case, blanks or the notation of a number."""

    names: Sequence[str]
    main_name: str


def _variants(labels: LabelColumn, declared: Iterable[str]) -> list[_Variants]:
    """The labels with several spellings, or with another spelling than the main one.

    The main spelling is the declared one, else the most frequent one without blanks around it.
    """
    names_by_key: dict[str, list[str]] = {}
    for name in sorted(labels.names):
        names_by_key.setdefault(spelling_key(name), []).append(name)
    declared_by_key = {spelling_key(name): name for name in declared}

    def preference(name: str) -> tuple[int, bool, bool]:
        return len(labels.rows(name)), name == name.strip(), name.islower()

    variants = []
    for key, names in names_by_key.items():
        main_name = declared_by_key.get(key)
        if main_name is None:
            if len(names) == 1:
                main_name = names[0].strip()
            else:
                main_name = max(names, key=preference).strip()
        if names != [main_name]:
            variants.append(_Variants(names, main_name))
    return variants


def _described_variants(
    labels: LabelColumn, variants: Sequence[_Variants], place: Place, most: int = 3
) -> str:
    """The spellings with their numbers of rows, for a message."""
    descriptions = []
    for variant in variants[:most]:
        spellings = [_described_label(labels, name, place) for name in variant.names]
        descriptions.append(" and ".join(spellings))
    text = "; ".join(descriptions)
    if len(variants) > most:
        text += f"; and {len(variants) - most} more"
    return text


def _described_label(labels: LabelColumn, name: str, place: Place) -> str:
    """A label with its number of rows and the place of the first, for a message."""
    rows = labels.rows(name)
    return f"{word(name)} ({counted(len(rows), 'row')}, first {place(int(rows[0]))})"


def _refuse_blank_labels(labels: LabelColumn, variants: Sequence[_Variants], place: Place) -> None:
    """Refuse labels that consist of blanks."""
    blank = []
    for variant in variants:
        if not variant.main_name:
            blank += [_described_label(labels, name, place) for name in variant.names if name]
    if blank:
        raise open_decision(
            f"labels are blank: {' and '.join(blank)}",
            f"choose {option('empty', 'drop')}, or fill them in",
            empty="drop",
            code="missing-value",
        )


def ordered_classes(declared: Sequence[object] | None, labels: Iterable[str]) -> tuple[str, ...]:
    """The declared classes in their order, else all labels in class order."""
    if declared is None:
        return class_order(labels)
    names = as_names(declared)
    if not len(names):
        raise InputError(
            f"{option('classes')} is empty",
            "name the classes, or leave it out",
            code="empty-option",
        )
    return tuple(unique_ids(names, len(names), "classes", "class"))


def checked_shares(values: Floats, scale: Scale, place: Place) -> Floats:
    """Distributions [M, C], rescaled if rounding changed their sum; others are refused.

    ``place`` names a row in the message.
    """

    def refuse(fault: str, row: tuple[int, ...]) -> InputError:
        count = counted(int((~scale.is_distribution(values)).sum()), "such row")
        return InputError(
            f"{place(row[0])} has ({number_list(values[row])}), which are not probabilities: they"
            f" {fault} ({count})",
            "correct or drop these rows",
            code="invalid-probabilities",
        )

    return scale.checked_distributions(values, _SUM_TOLERANCE, refuse)


def list_labels_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of lists, from Parquet or JSON, as a column of JSON text; others unchanged."""
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return column
    cells = column.to_pylist()
    for row, cell in enumerate(cells):
        if cell is not None:
            cells[row] = json.dumps(cell)
    return pa.chunked_array([pa.array(cells, pa.string())])


def unique_ids(names: Iterable[object] | None, length: int, kind: str, per: str) -> Strings:
    """Names as ids, 0, 1, … if ``names`` is None; they must be unique and not empty."""
    if names is None:
        names = range(length)
    ids = as_names(names)
    if len(ids) != length:
        raise InputError(
            f"there are {len(ids)} {kind}, but {length} {per}s",
            f"give {length} {kind}",
            code="lengths-differ",
        )
    check_unique(ids, kind, f"give each {per} its own")
    if "" in ids:
        raise InputError(f"one of the {kind} is empty", f"name every {per}", code="missing-value")
    return ids
