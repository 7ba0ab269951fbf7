"""The layout of fit data: which rows belong to an item, and what their classes are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from edokit._types import Floats, HardLabels, Ints
from edokit.folds import stratified_folds
from edokit.scales import NOMINAL, Scale


@dataclass(frozen=True, eq=False)
class Layout:
    """How items are arranged as rows of predictions and labels; computed once for a fit.

    Attributes
    ----------
    rows_per_item : int
        One; for multi-label data, one per label, in adjacent rows.
    labels : tuple of str
        The label of each row of an item for multi-label data, else empty.
    row_classes : tuple of str
        The classes of a row.
    steps : ndarray of shape (n_classes - 1,) or None
        Distances between neighbouring classes of an ordinal scale.
    groups : ndarray of int of shape (n_items,) or None
        Items with the same number stay together in folds: pairs of an item and an annotator that
        are about one item, and items of one group. None where every item is on its own.
    has_item_groups : bool
        Whether the annotations name groups of items, such as threads.
    are_pairs : bool
        Whether what is called an item here is a pair of an item and an annotator.
    """

    rows_per_item: int
    labels: tuple[str, ...]
    row_classes: tuple[str, ...]
    steps: Floats | None = None
    groups: Ints | None = None
    has_item_groups: bool = False
    are_pairs: bool = False

    @classmethod
    def from_scale(
        cls,
        scale: Scale,
        classes: Sequence[str],
        groups: Ints | None = None,
        *,
        has_item_groups: bool = False,
        are_pairs: bool = False,
    ) -> Layout:
        """Return the layout of data on this scale with these classes."""
        labels = scale.row_labels(classes)
        return cls(
            rows_per_item=len(labels) or 1,
            labels=labels,
            row_classes=scale.row_classes(classes),
            steps=scale.steps,
            groups=groups,
            has_item_groups=has_item_groups,
            are_pairs=are_pairs,
        )

    def for_single_label(self) -> Layout:
        """Return the layout of the same items with only one label of multi-label data."""
        return Layout.from_scale(
            NOMINAL,
            self.row_classes,
            self.groups,
            has_item_groups=self.has_item_groups,
            are_pairs=self.are_pairs,
        )

    def take(self, items: Ints) -> Layout:
        """Return the layout of the items at these positions."""
        if self.groups is None:
            return self
        return replace(self, groups=self.groups[items])

    def row_positions(self, items: Ints) -> Ints:
        """Return the positions of all rows of the items at these positions."""
        if self.rows_per_item == 1:
            return items
        offsets = np.arange(self.rows_per_item)
        return (items[:, None] * self.rows_per_item + offsets).reshape(-1)

    def item_labels(self, y: HardLabels) -> HardLabels:
        """Return hard labels by item [N], for multi-label data [N, L], from hard labels by row."""
        if not self.labels:
            return y
        return y.reshape(-1, self.rows_per_item)

    def item_shares(self, rows: Floats) -> Floats:
        """Return distributions [N, C] by item from those by row.

        For multi-label data, return the share of each label [N, L].
        """
        if not self.labels:
            return rows
        return rows[:, 1].reshape(-1, self.rows_per_item)

    def item_means(self, values: Floats) -> Floats:
        """Return the mean [..., N] of values over the rows [..., n] of each item."""
        if self.rows_per_item == 1:
            return values
        return np.asarray(values.reshape(*values.shape[:-1], -1, self.rows_per_item).mean(axis=-1))

    def folds(self, y: HardLabels, n_folds: int, random_state: int, shard: int = 0) -> Ints:
        """Return the fold of each item of a shard [N]; arrays in memory are shard 0.

        Each shard starts with another fold, so that the folds of all shards have about one size.
        """
        labels = self.item_labels(y)
        seed = [random_state, n_folds, shard]
        return stratified_folds(labels, n_folds, seed, groups=self.groups, first_fold=shard)
