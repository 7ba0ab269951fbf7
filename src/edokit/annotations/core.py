"""Who said what about which item, and the soft and hard labels that follow from it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import EDOWarning, InputError, examples, one_of
from edokit._names import as_names, check_positions, check_unique, match
from edokit._types import Codes, Floats, Strings


class Ties(str, Enum):
    """Which class an item gets when its annotators are evenly split and no label is published."""

    FIRST = "first"
    ERROR = "error"
    RANDOM = "random"


class Duplicates(str, Enum):
    """What happens when one annotator labels an item twice."""

    ERROR = "error"
    FIRST = "first"
    ALL = "all"


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """M annotations of N items by A annotators in C classes. Build one with a ``from_`` method."""

    items: Strings
    """Item ids [N], in order of first appearance."""
    annotators: Strings
    """Annotator ids [A], in order of first appearance."""
    classes: tuple[str, ...]
    """Class names [C], in class order."""
    item_codes: Codes
    """The item of each annotation [M]."""
    annotator_codes: Codes
    """The annotator of each annotation [M]."""
    label_codes: Codes | None
    """The class of each annotation [M]; none when annotators gave probabilities."""
    label_probabilities: Floats | None = None
    """Probabilities of each annotation [M, C], where annotators gave them instead of a class."""
    published: Codes | None = None
    """Published hard label of each item [N], -1 where there is none."""
    texts: Strings | None = None
    """Text of each item [N]."""
    splits: Strings | None = None
    """Split of each item [N]."""
    attributes: Mapping[str, Strings] = field(default_factory=dict)
    """What is known of the annotators, each column [A]."""

    @classmethod
    def from_table(
        cls,
        table: pa.Table | pd.DataFrame | Mapping[str, Any],
        *,
        columns: Mapping[str, str] | None = None,
        classes: Sequence[object] | None = None,
        duplicates: str = "error",
        split: str | None = None,
        attributes: Sequence[str] | None = None,
    ) -> Annotations:
        """From a long table: one row per annotation with ``item, annotator, label``.

        ``p_<class>`` columns may stand in place of ``label``. ``text``, ``split`` and
        ``hard_label`` belong to the item; any other column with one value per annotator (or those
        named in ``attributes``) describes the annotators. ``columns`` maps our names to the
        table's, as in ``{"item": "id"}``; ``split`` keeps one split and the classes of all.
        """
        from edokit.annotations.long_table import from_long_table

        one_of("duplicates", duplicates, [policy.value for policy in Duplicates])
        return from_long_table(
            table, columns or {}, classes, Duplicates(duplicates), split, attributes
        )

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        items: Iterable[object] | None = None,
        annotators: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        missing: object = None,
    ) -> Annotations:
        """From a wide matrix [N, A]: a row per item, a column per annotator, gaps where none.

        Gaps are ``None``, NaN, empty text, masked entries and the value ``missing``. A DataFrame
        brings its index as items and its columns as annotators.
        """
        from edokit.annotations.arrays import from_wide_matrix

        return from_wide_matrix(matrix, items, annotators, classes, missing)

    @classmethod
    def from_soft_labels(
        cls,
        soft_labels: npt.ArrayLike,
        *,
        items: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        annotator: str = "soft",
    ) -> Annotations:
        """From shares [N, C] alone, as one annotator who answers in probabilities.

        A DataFrame brings its index as items and its columns as classes.
        """
        from edokit.annotations.arrays import from_shares

        return from_shares(soft_labels, items, classes, annotator)

    def __repr__(self) -> str:
        return (
            f"Annotations({len(self)} annotations of {len(self.items)} items by"
            f" {len(self.annotators)} annotators, classes {', '.join(self.classes)})"
        )

    def __len__(self) -> int:
        return len(self.item_codes)

    @property
    def answers(self) -> Codes | Floats:
        """What was said in each annotation: classes [M], or probabilities [M, C]."""
        if self.label_codes is not None:
            return self.label_codes
        assert self.label_probabilities is not None
        return self.label_probabilities

    @cached_property
    def counts(self) -> Floats:
        """Annotations per item and class [N, C]; probabilities add up."""
        n, c = len(self.items), len(self.classes)
        if self.label_codes is not None:
            counted = np.bincount(cells(self.item_codes, self.label_codes, c), minlength=n * c)
            return counted.reshape(n, c).astype(np.float64)
        assert self.label_probabilities is not None
        return np.column_stack(
            [
                np.bincount(self.item_codes, weights=self.label_probabilities[:, k], minlength=n)
                for k in range(c)
            ]
        )

    @cached_property
    def soft_labels(self) -> Floats:
        """Share of annotators per class [N, C]."""
        shares: Floats = self.counts / self.annotations_per_item[:, None]
        return shares

    @cached_property
    def annotations_per_item(self) -> npt.NDArray[np.int64]:
        """How many annotations each item has [N]."""
        return np.bincount(self.item_codes, minlength=len(self.items))

    @cached_property
    def annotations_per_annotator(self) -> npt.NDArray[np.int64]:
        """How many annotations each annotator gave [A]."""
        return np.bincount(self.annotator_codes, minlength=len(self.annotators))

    @cached_property
    def coverage(self) -> Floats:
        """Share of the items that each annotator labelled [A]."""
        again = np.bincount(self.annotator_codes[self.repeated], minlength=len(self.annotators))
        covered: Floats = (self.annotations_per_annotator - again) / len(self.items)
        return covered

    @cached_property
    def repeated(self) -> npt.NDArray[np.bool_]:
        """Whether the annotator labelled the item before, in an earlier annotation [M]."""
        return repeated(self.item_codes, self.annotator_codes, len(self.annotators))

    @cached_property
    def entropy(self) -> Floats:
        """Entropy of each item's soft label in nats [N]."""
        q = self.soft_labels
        terms = np.where(q > 0, q, 1.0)
        np.log(terms, out=terms)
        terms *= q
        # The zero turns -0 into 0.
        nats: Floats = 0.0 - terms.sum(axis=1)
        return nats

    def hard_labels(self, ties: str = "first", random_state: int = 0) -> Codes:
        """Class of each item [N]: the published one, else the majority, ties by the policy."""
        one_of("ties", ties, [policy.value for policy in Ties])
        counts = self.counts
        # Shares of probabilities that should be equal may differ in the last bits.
        best = counts >= counts.max(axis=1, keepdims=True) * (1 - 1e-12)
        labels: Codes = best.argmax(axis=1).astype(np.int32)
        open_ = self.published < 0 if self.published is not None else np.ones(len(labels), bool)
        tied = (best.sum(axis=1) > 1) & open_
        if tied.any():
            self._settle(labels, best, tied, Ties(ties), random_state)
        if self.published is not None:
            labels = np.where(open_, labels, self.published)
        return labels

    def _settle(
        self,
        labels: Codes,
        best: npt.NDArray[np.bool_],
        tied: npt.NDArray[np.bool_],
        ties: Ties,
        random_state: int,
    ) -> None:
        listed = f"{int(tied.sum())} of {len(labels)} items are tied: {examples(self.items[tied])}"
        if ties is Ties.ERROR:
            raise InputError(
                f"every item needs a majority or a published hard label, but {listed}",
                "choose ties='first' or ties='random', or give a hard_label column",
            )
        if ties is Ties.RANDOM:
            draw = np.random.default_rng(random_state).random(best.shape)
            labels[tied] = np.where(best, draw, -1.0)[tied].argmax(axis=1)
            return
        warnings.warn(
            f"{listed}; each takes the first of its tied classes (ties='first')",
            EDOWarning,
            stacklevel=3,
        )

    def take(self, positions: npt.ArrayLike) -> Annotations:
        """The items at these positions (or where a mask is true), in this order.

        Annotations and annotators come along.
        """
        chosen = check_positions(positions, len(self.items))
        where = np.full(len(self.items), -1, dtype=np.int32)
        where[chosen] = np.arange(len(chosen), dtype=np.int32)
        kept = np.flatnonzero(where[self.item_codes] >= 0)
        if (chosen[1:] < chosen[:-1]).any():
            # Annotations stand in the order of their items, so that a table keeps it.
            kept = kept[np.argsort(where[self.item_codes[kept]], kind="stable")]
        people = np.unique(self.annotator_codes[kept])
        renumber = np.full(len(self.annotators), -1, dtype=np.int32)
        renumber[people] = np.arange(len(people), dtype=np.int32)

        def rows(values: Any) -> Any:
            return None if values is None else values[kept]

        def of_items(values: Any) -> Any:
            return None if values is None else values[chosen]

        return Annotations(
            items=self.items[chosen],
            annotators=self.annotators[people],
            classes=self.classes,
            item_codes=where[self.item_codes[kept]],
            annotator_codes=renumber[self.annotator_codes[kept]],
            label_codes=rows(self.label_codes),
            label_probabilities=rows(self.label_probabilities),
            published=of_items(self.published),
            texts=of_items(self.texts),
            splits=of_items(self.splits),
            attributes={name: values[people] for name, values in self.attributes.items()},
        )

    def align(self, items: Iterable[object], against: str = "predictions") -> Annotations:
        """The same annotations with items in the given order; both must hold the same ids."""
        return self.take(match(as_names(items), self.items, "annotations", against))

    def with_classes(self, classes: Sequence[object]) -> Annotations:
        """The same annotations among these classes, which must hold all that it has."""
        names = tuple(as_names(classes))
        check_unique(as_names(names), "classes", "name each class once")
        missing = [name for name in self.classes if name not in names]
        if missing:
            raise InputError(
                f"the classes must hold all that were chosen, but {examples(missing)}"
                f" {'is' if len(missing) == 1 else 'are'} not among {examples(names, 20)}",
                "add them",
            )
        where = np.array([names.index(name) for name in self.classes], dtype=np.int32)

        def moved(codes: Codes | None) -> Codes | None:
            return None if codes is None else np.append(where, np.int32(-1))[codes]

        shares = self.label_probabilities
        if shares is not None:
            shares = np.zeros((len(self), len(names)))
            shares[:, where] = self.label_probabilities
        return replace(
            self,
            classes=names,
            label_codes=moved(self.label_codes),
            label_probabilities=shares,
            published=moved(self.published),
        )

    @property
    def split_names(self) -> tuple[str, ...]:
        """The splits, in order of first appearance."""
        return () if self.splits is None else tuple(pd.unique(self.splits))

    def split(self, name: str) -> Annotations:
        """The items of one split."""
        return self.of_splits([name])

    def of_splits(self, names: Iterable[object]) -> Annotations:
        """The items of these splits, in the order of the data."""
        wanted = as_names(names)
        for name in wanted:
            if self.splits is None or name not in self.split_names:
                known = ", ".join(map(repr, self.split_names)) or "no splits"
                raise InputError(
                    f"the split must be one that the data has ({known}), but got {name!r}",
                    "choose one of these" if self.split_names else "give the data a split column",
                )
        splits = self.splits if self.splits is not None else np.empty(0, dtype=object)
        return self.take(np.flatnonzero(np.isin(splits, wanted)))

    def to_table(self) -> pa.Table:
        """The long table that ``from_table`` reads."""
        from edokit.annotations.long_table import to_long_table

        return to_long_table(self)


_BLOCK = 1 << 20


def cells(rows: Codes, columns: Codes, width: int) -> npt.NDArray[np.int64]:
    """The cell of each pair [M] in a table with so many columns, counted row by row."""
    result: npt.NDArray[np.int64] = rows.astype(np.int64)
    result *= width
    result += columns
    return result


def repeated(rows: Codes, columns: Codes, width: int) -> npt.NDArray[np.bool_]:
    """Whether the same pair stands earlier in the list [M]."""
    again = np.zeros(len(rows), dtype=bool)
    # Sorting in place says whether any pair comes again; only then it is asked which.
    pairs = cells(rows, columns, width)
    pairs.sort()
    twice = np.unique(pairs[1:][pairs[1:] == pairs[:-1]])
    if not len(twice):
        return again
    del pairs
    found = []
    for start in range(0, len(rows), _BLOCK):
        stop = start + _BLOCK
        block = cells(rows[start:stop], columns[start:stop], width)
        place = np.searchsorted(twice, block)
        place[place == len(twice)] = 0
        found.append(start + np.flatnonzero(twice[place] == block))
    suspects = np.concatenate(found)
    pairs = cells(rows[suspects], columns[suspects], width)
    order = np.argsort(pairs, kind="stable")
    again[suspects[order[1:]]] = pairs[order[1:]] == pairs[order[:-1]]
    return again


# Shares may be written with two digits only.
_ROUNDED = 0.0101


def contradicted(annotations: Annotations) -> npt.NDArray[np.bool_]:
    """Whether the published label of each item [N] is none of the classes chosen most often."""
    if annotations.published is None:
        return np.zeros(len(annotations.items), dtype=bool)
    shares = annotations.soft_labels
    near = 1e-12 if annotations.label_probabilities is None else _ROUNDED
    chosen = shares[np.arange(len(shares)), annotations.published]
    behind = chosen < shares.max(axis=1) - near
    found: npt.NDArray[np.bool_] = behind & (annotations.published >= 0)
    return found


def tell_of_contradictions(annotations: Annotations) -> None:
    """Say which published labels are used although the annotators said otherwise."""
    found = contradicted(annotations)
    if found.any():
        count, which = int(found.sum()), examples(annotations.items[found])
        warnings.warn(f"{contradiction(count, len(found))}: {which}", EDOWarning, stacklevel=4)


def contradiction(count: int, items: int) -> str:
    """The note about so many of the items."""
    return (
        f"hard_label of {count} of {items} items is used as given, though it is not the class that"
        f" {'its' if count == 1 else 'their'} annotators chose most often"
    )
