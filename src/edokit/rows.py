"""The row index: the item, and perhaps the annotator, of each row of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import InputError, are, examples, option
from edokit._names import as_names, check_positions, look_alike
from edokit._types import Bools, Codes, Floats, Ints, Strings

NOBODY = ""
"""The annotator of an anonymous answer."""
KEEP_PREDICTED = (
    "; `edo data convert ANNOTATIONS OUT --items PREDICTIONS` keeps the items that have predictions"
)
_NAME_ITEMS = (
    "name the items: Predictions.from_arrays(…, items=…), Annotations.from_matrix(…, items=…),"
    " edokit.ItemArray(values, items=…)"
)
Keys: TypeAlias = npt.NDArray[np.uint64]
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # an odd number, so that no bits are lost


@dataclass(frozen=True, eq=False)
class Rows:
    """An index of R rows, each for an item or for a pair of an item and an annotator.

    Annotations, predictions and pooled answers consist of such an index and values. They are
    matched by these ids, never by position.

    The labels of multi-label data are not a level of the index. Every item has every label, so
    labels are an axis of the values, which `Scale.rows` unfolds; a level would only repeat each id
    once per label.

    Parameters
    ----------
    items : ndarray of str of shape (N,)
        The distinct items, in order of first appearance; for rows of items, the item of each row
        (checked for repetitions only by `check_unique`).
    item_codes : ndarray of int32 of shape (R,)
        The item of each row, as a position in ``items``.
    annotators : ndarray of str of shape (A,), default=None
        The distinct annotators; an empty name denotes anonymous answers. None for rows of items.
    annotator_codes : ndarray of int32 of shape (R,), default=None
        The annotator of each row.

    Examples
    --------
    >>> rows = Rows.from_names(["a", "a", "b"], ["x", "y", "x"])
    >>> rows.items.tolist(), rows.item_codes.tolist()
    (['a', 'b'], [0, 0, 1])
    >>> rows.mean([1.0, 3.0, 5.0])
    array([2., 5.])
    """

    items: Strings
    item_codes: Codes
    annotators: Strings | None = None
    annotator_codes: Codes | None = None

    @staticmethod
    def from_names(items: Iterable[object], annotators: Iterable[object] | None = None) -> Rows:
        """Return the index of rows with these items and annotators, one name per row."""
        names = as_names(items)
        if annotators is None:
            return Rows(names, np.arange(len(names), dtype=np.int32))
        item_codes, distinct = pd.factorize(names)
        annotator_codes, people = pd.factorize(as_names(annotators))
        return Rows(distinct, item_codes.astype(np.int32), people, annotator_codes.astype(np.int32))

    @staticmethod
    def numbered(count: int) -> Rows:
        """Return the index of items without ids, whose names are 0, 1, 2, …"""
        return NumberedRows(np.arange(count))

    @staticmethod
    def concatenate(parts: Sequence[Rows]) -> Rows:
        """Return the rows of several parts, such as shards, one after another."""
        items = np.concatenate([part.item_names for part in parts])
        if all(part.annotators is None for part in parts):
            return Rows.from_names(items)
        annotators = []
        for part in parts:
            names = part.annotator_names
            if names is None:
                names = np.full(len(part), NOBODY, dtype=object)
            annotators.append(names)
        return Rows.from_names(items, np.concatenate(annotators))

    def __len__(self) -> int:
        return len(self.item_codes)

    @cached_property
    def item_names(self) -> Strings:
        """The item of each row [R]."""
        if self.annotators is None:
            return self.items
        return np.asarray(self.items[self.item_codes])

    @cached_property
    def annotator_names(self) -> Strings | None:
        """The annotator of each row [R]; None for rows of items."""
        if self.annotators is None:
            return None
        return np.asarray(self.annotators[self.annotator_codes])

    @property
    def names(self) -> list[str]:
        """The name of each row on a page or in a message [R]."""
        if self.annotator_names is None:
            return list(self.items)
        pairs = zip(self.item_names, self.annotator_names, strict=True)
        return [f"{item} · {name}" for item, name in pairs]

    @property
    def are_pairs(self) -> bool:
        """Whether each row is a pair of an item and an annotator, not an item."""
        return self.annotators is not None

    @property
    def noun(self) -> str:
        """The word for a row in messages: ``item``, or ``pair`` of an item and an annotator."""
        if self.annotators is None:
            return "item"
        return "pair"

    @property
    def plural_noun(self) -> str:
        """The words for rows in messages."""
        if self.annotators is None:
            return "items"
        return "pairs of an item and an annotator"

    @property
    def people(self) -> list[str]:
        """The distinct annotators, without the empty name of anonymous rows; empty for items."""
        if self.annotators is None:
            return []
        return [name for name in self.annotators if name != NOBODY]

    def columns(self) -> dict[str, Strings]:
        """The item and, for pairs, the annotator of each row [R] as columns of a table."""
        columns = {"item": self.item_names}
        if self.annotator_names is not None:
            columns["annotator"] = self.annotator_names
        return columns

    @cached_property
    def is_named(self) -> Bools:
        """Whether each row has a named annotator [R]; False for items and anonymous rows."""
        if self.annotator_names is None:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.annotator_names != NOBODY)

    def take(self, positions: npt.ArrayLike) -> Rows:
        """Return the rows at these positions (or where a mask is True), in this order."""
        rows = check_positions(positions, len(self))
        if self.annotators is None or self.annotator_codes is None:
            return Rows(self.items[rows], np.arange(len(rows), dtype=np.int32))
        item_codes, items = pd.factorize(self.item_codes[rows])
        annotator_codes, annotators = pd.factorize(self.annotator_codes[rows])
        return Rows(
            self.items[items],
            item_codes.astype(np.int32),
            self.annotators[annotators],
            annotator_codes.astype(np.int32),
        )

    def distinct(self) -> Rows:
        """Return the rows without repetitions."""
        return self.take(~self._is_repeated)

    @cached_property
    def _is_repeated(self) -> Bools:
        if self.annotators is None:
            return self._item_index.duplicated()
        return self._pair_index.duplicated()

    def count_items(self, positions: Ints | None = None) -> int:
        """Return the number of distinct items, of all rows or of those at these positions."""
        if positions is None:
            return len(self.items)
        if self.annotators is None:
            return len(positions)
        return len(np.unique(self.item_codes[positions]))

    def by_item(self) -> Rows:
        """Return a row for each item."""
        return Rows(self.items, np.arange(len(self.items), dtype=np.int32))

    def mean(self, values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
        """Return the mean of values [R, ...] over the rows of each item [N, ...].

        ``weights`` [R] are normalised within each item.
        """
        n = len(self.items)
        if weights is None:
            counts = np.bincount(self.item_codes, minlength=n)
            means = sums(values, self.item_codes, n)
            return np.asarray(means / counts.reshape(-1, *[1] * (means.ndim - 1)))
        rows = np.asarray(values)
        shares = np.asarray(weights, dtype=np.float64)
        shares = shares / np.bincount(self.item_codes, shares, n)[self.item_codes]
        return sums(rows * shares.reshape(-1, *[1] * (rows.ndim - 1)), self.item_codes, n)

    @cached_property
    def item_ranks(self) -> Ints:
        """The rank of each row's item [R] in the sorted item names."""
        ranks = np.unique(self.items.astype(str), return_inverse=True)[1]
        return np.asarray(ranks[self.item_codes])

    def order(self) -> npt.NDArray[np.intp]:
        """Return the positions of the rows, sorted by item and by annotator."""
        columns = [self.item_names.astype(str)]
        if self.annotator_names is not None:
            columns.insert(0, self.annotator_names.astype(str))
        return np.lexsort(columns)

    @property
    def clusters(self) -> Ints | None:
        """The cluster of each row [R], which folds and resampling keep together: its item.

        None if every row is an item.
        """
        if self.annotators is None:
            return None
        return self.item_ranks

    @cached_property
    def keys(self) -> Keys:
        """A 64-bit hash of the ids of each row [R]."""
        keys = _hashes(self.item_names)
        if self.annotators is not None:
            # Without the factor, swapping item and annotator would give the same key.
            keys = keys * _HASH_FACTOR + _hashes(self.annotators)[self.annotator_codes]
        return keys

    def draw(self, count: int) -> Ints:
        """Return the positions of ``count`` rows; the draw depends on ids, not on their order.

        These are the rows with the lowest `keys`, in the order of the keys.
        """
        return lowest(self.keys, count)

    def check_unique(self, what: str, hint: str) -> None:
        """Refuse repeated rows; ``what`` names them in the message."""
        if self._is_repeated.any():
            names = dict.fromkeys(self.take(self._is_repeated).names)
            raise InputError(
                f"{what} are not unique: {examples(names)}", hint, code="duplicate-name"
            )

    def check_named(self) -> None:
        """Refuse items whose name is empty."""
        if "" in self.item_names:
            raise InputError("an item has an empty name", "name every entry", code="missing-value")

    def check_items(self, what: str) -> None:
        """Refuse pairs of an item and an annotator; ``what`` names the table in the message."""
        if self.annotators is not None:
            raise InputError(
                f"the {what} are for pairs of an item and an annotator, such as {self.names[0]!r},"
                " not for items",
                f"choose what to learn from: {option('learn', 'pairs')} (what each annotator"
                f" answers) or {option('learn', 'items')} (what they answer together); or score the"
                " items without naming annotators",
                code="pairs-for-items",
            )

    def check_pairs(self, what: str) -> None:
        """Refuse rows about items; ``what`` names the table in the message."""
        if self.annotators is None:
            raise InputError(
                f"the {what} are for items, not for pairs of an item and an annotator",
                "score the items for annotators: `edo score --annotators`",
                code="items-for-pairs",
            )

    def positions(self, others: Rows) -> npt.NDArray[np.intp]:
        """Return the position of each row of ``others`` in this index of distinct rows, or −1.

        The row of an item matches the anonymous row of that item.
        """
        if self.annotators is None and others.annotators is None:
            return self._item_index.get_indexer(pd.Index(others.items, dtype=object))
        return self._pair_index.get_indexer(others._pair_index)

    def has_items(self, others: Rows) -> Bools:
        """Return whether this index contains the item of each row of ``others``."""
        places = self._item_index.get_indexer(pd.Index(others.items, dtype=object))
        return np.asarray(places[others.item_codes] >= 0)

    @cached_property
    def _item_index(self) -> pd.Index[Any]:
        return pd.Index(self.items, dtype=object)

    @cached_property
    def _pair_index(self) -> pd.MultiIndex:
        """The item and the annotator of each row; rows of items are anonymous."""
        annotators = self.annotators
        codes = self.annotator_codes
        if annotators is None or codes is None:
            annotators = as_names([NOBODY])
            codes = np.zeros(len(self), dtype=np.int32)
        # Not verified, since rows of items may be repeated.
        levels: list[Any] = [self._item_index, pd.Index(annotators, dtype=object)]
        level_codes: list[Any] = [self.item_codes, codes]
        return pd.MultiIndex(levels, level_codes, verify_integrity=False)

    def match(self, others: Rows, source: str, against: str) -> npt.NDArray[np.intp]:
        """Return the position of each row of ``others`` in this index; their ids must be the same.

        ``source`` names this table in messages, ``against`` the other one.
        """
        if self.has_ids != others.has_ids:
            if self.has_ids:
                raise missing_ids(against, source)
            raise missing_ids(source, against)
        if self._has_same_items(others):
            return np.arange(len(self))
        if self.noun != others.noun:
            # Annotations define what a row is, so the other table is refused.
            if source == "annotations":
                others.check_items(against)
                others.check_pairs(against)
            else:
                self.check_items(source)
                self.check_pairs(source)
        others.check_unique(f"{others.noun}s of {against}", f"name each {others.noun} once")
        self.check_unique(f"{self.noun}s of {source}", f"name each {self.noun} once")
        places = self.positions(others)
        missing = others.take(places < 0)
        if len(missing) or len(self) != len(others):
            extra = self.take(others.positions(self) < 0)
            raise different_rows(source, against, len(others), missing=missing, extra=extra)
        return places

    @property
    def has_ids(self) -> bool:
        """Whether the items have ids, and not only numbers in the order of an array."""
        return True

    def are_numbers_of(self, others: Rows) -> bool:
        """Whether these rows lack ids, and the ids of ``others`` are their numbers in this order.

        This is so if annotations have no ids and predictions were made with
        ``items=annotations.items``.
        """
        return not self.has_ids and others.has_ids and others._has_same_items(self)

    def _has_same_items(self, others: Rows) -> bool:
        """Whether both are the same items in the same order."""
        if self is others:
            return True
        if self.annotators is not None or others.annotators is not None:
            return False
        return len(self) == len(others) and bool((self.items == others.items).all())


class NumberedRows(Rows):
    """An index of items without ids: each has a number, and names are created on demand.

    For an array of a million rows, creating names that are rarely needed would take too long.

    Parameters
    ----------
    numbers : ndarray of int of shape (R,)
        The number of each item, each at most once.

    Examples
    --------
    >>> rows = Rows.numbered(3)
    >>> len(rows), rows.take([2, 0]).names
    (3, ['2', '0'])
    """

    def __init__(self, numbers: Ints) -> None:
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "annotators", None)
        object.__setattr__(self, "annotator_codes", None)

    numbers: Ints

    @cached_property
    def items(self) -> Strings:
        """The names of the items [R]."""
        return as_names(self.numbers)

    @cached_property
    def item_codes(self) -> Codes:
        """The item of each row [R]."""
        return np.arange(len(self), dtype=np.int32)

    @property
    def has_ids(self) -> bool:
        """Whether the items have ids, and not only numbers in the order of an array."""
        return False

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, positions: npt.ArrayLike) -> Rows:
        """Return the rows at these positions (or where a mask is True), in this order."""
        return NumberedRows(self.numbers[check_positions(positions, len(self))])

    def count_items(self, positions: Ints | None = None) -> int:
        """Return the number of items, which are as many as rows."""
        if positions is None:
            return len(self)
        return len(positions)

    def by_item(self) -> Rows:
        """Return a row for each item."""
        return self

    @cached_property
    def _is_repeated(self) -> Bools:
        return np.zeros(len(self), dtype=bool)

    def check_named(self) -> None:
        """Accept all rows: numbers are not empty."""

    def check_unique(self, what: str, hint: str) -> None:
        """Accept all rows: numbers are distinct."""

    def draw(self, count: int) -> Ints:
        """Return the positions of ``count`` rows, by the keys of the names of the numbers."""
        if in_order(self.numbers):
            return _draw_numbered(len(self), count)
        return lowest(self.keys, count)

    def _has_same_items(self, others: Rows) -> bool:
        if isinstance(others, NumberedRows):
            return np.array_equal(self.numbers, others.numbers)
        return super()._has_same_items(others)


@lru_cache(maxsize=8)
def _draw_numbered(rows: int, count: int) -> Ints:
    """The draw from 0, 1, 2, …, cached: hashing a million names takes longer than a fit."""
    positions = lowest(_hashes(as_names(np.arange(rows))), count)
    positions.flags.writeable = False
    return positions


def lowest(keys: Keys, count: int) -> Ints:
    """The positions of the lowest keys in ascending order; of equal keys, the first."""
    if count >= len(keys):
        return np.argsort(keys, kind="stable")
    bound = np.partition(keys, count - 1)[count - 1]
    candidates = np.flatnonzero(keys <= bound)
    return candidates[np.argsort(keys[candidates], kind="stable")][:count]


def _hashes(names: Strings) -> Keys:
    return np.asarray(pd.util.hash_array(np.asarray(names, dtype=object), categorize=False))


def sums(values: npt.ArrayLike, codes: npt.NDArray[np.integer], groups: int) -> Floats:
    """The sum of values [R, ...] by group [groups, ...]; ``codes`` [R] are the groups."""
    rows = np.asarray(values, dtype=np.float64)
    columns = rows.reshape(len(rows), math.prod(rows.shape[1:])).T
    total = np.stack([np.bincount(codes, column, groups) for column in columns], axis=1)
    return np.asarray(total.reshape(groups, *rows.shape[1:]), dtype=np.float64)


def in_order(positions: npt.NDArray[np.integer]) -> bool:
    """Whether these positions are 0, 1, 2, …"""
    return bool((positions == np.arange(len(positions))).all())


def is_default_index(index: pd.Index[Any]) -> bool:
    """Whether the index of a table is 0, 1, 2, …, as pandas makes it where none is given."""
    return (
        isinstance(index, pd.RangeIndex)
        and index.name is None
        and index.equals(pd.RangeIndex(len(index)))
    )


def check_same_ids(rows: Rows, items: Strings) -> None:
    """Refuse given item ids that differ from the ids of an array's rows, or from their order."""
    if np.array_equal(rows.item_names, items):
        return
    raise InputError(
        f"the array has the item ids {examples(rows.names)}, but items names"
        f" {examples(items.tolist())}",
        "leave items out; to rename the items, give np.asarray of the array",
        code="items-differ",
    )


def missing_ids(name: str, others: str, hint: str = "") -> InputError:
    """The error for rows without item ids beside ``others`` that have them.

    ``hint`` says how to name the items.
    """
    return InputError(
        f"{name} lack item ids, but {others} have them: rows would be compared by position",
        f"{hint or _NAME_ITEMS}; if the rows are in the order of the annotations' items, declare"
        " order='annotations'",
        code="missing-ids",
    )


def different_rows(
    source: str,
    against: str,
    count: int,
    *,
    missing: Rows | None = None,
    extra: Rows | None = None,
) -> InputError:
    """The error for two sets of rows that differ.

    ``missing`` are the rows, of ``count`` in ``against``, that are not in ``source``; ``extra`` are
    only in ``source``.
    """
    missing_names: list[str] = []
    extra_names: list[str] = []
    parts = []
    noun = "items"
    if missing is not None and len(missing):
        missing_names = missing.names
        parts.append(f"{are(len(missing), count)} missing: {examples(missing_names)}")
        noun = missing.plural_noun
    if extra is not None and len(extra):
        extra_names = extra.names
        parts.append(f"{are(len(extra))} extra: {examples(extra_names)}")
        noun = extra.plural_noun
    hint = "check the ids, or choose one split"
    only_missing = bool(missing_names) and not extra_names
    lacks_predictions = only_missing and against == "annotations"
    lacks_annotations = not missing_names and source == "annotations"
    if lacks_predictions or lacks_annotations:
        if noun == "items":
            hint += KEEP_PREDICTED
        else:
            hint += "; score the items for all who labelled them"
    return InputError(
        f"{source} and {against} hold different {noun}: in {source} {'; '.join(parts)}"
        + look_alike([*missing_names, *extra_names]),
        hint,
        code="items-differ",
    )
