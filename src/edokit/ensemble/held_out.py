"""Cross-fitted answers for the items of a fit, stored with the ensemble.

They show how good its answers for new items are. No names and no texts are stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edokit._errors import counted
from edokit._io.documents import Count, Document
from edokit._types import Floats, Ints
from edokit.fitdata.data import FitData

MAX_STORED_ITEMS = 10_000
"""The largest number of items that are stored; from more, some are drawn, in whole groups."""
_DIGITS = 6


class HeldOutDocument(Document):
    """Cross-fitted answers in ``ensemble.json``."""

    answers: list[list[float]]
    shares: list[list[float]]
    groups: list[Count] | None = None


@dataclass(frozen=True, eq=False)
class HeldOut:
    """An ensemble's cross-fitted answers, and the annotators' soft labels of the same items.

    Attributes
    ----------
    answers : ndarray of shape (n_items, n_classes)
        The pool. Its weights are learned without the item where folds allow it (see
        `edokit.ensemble._fit.held_out_answers`), unless they were given.
    shares : ndarray of shape (n_items, n_classes)
        The annotators' soft labels; for multi-label data the share that chose each label.
    groups : ndarray of int of shape (n_items,) or None
        Items with the same number belong together, as those of a thread.
    """

    answers: Floats
    shares: Floats
    groups: Ints | None = None

    @classmethod
    def from_fit(cls, units: FitData, answers: Floats) -> HeldOut:
        """Return the answers for the items of fit data, rounded, with their soft labels.

        Parameters
        ----------
        units : FitData
            The data that weights were learned on, in memory.
        answers : ndarray of shape (n_items, n_classes)
            Cross-fitted answers for these items.
        """
        shares = units.layout.item_shares(units.sample.q)
        groups = None
        if units.layout.has_item_groups and units.layout.groups is not None:
            groups = np.unique(units.layout.groups, return_inverse=True)[1]
        items = np.arange(len(answers))
        if len(items) > MAX_STORED_ITEMS:
            items = _draw_items(len(items), groups)
        if groups is not None:
            groups = groups[items]
        return cls(np.round(answers[items], _DIGITS), np.round(shares[items], _DIGITS), groups)

    @classmethod
    def from_document(cls, document: HeldOutDocument, n_classes: int) -> HeldOut:
        """Return the answers from ``ensemble.json``; a ValueError says which sizes are wrong."""
        n_items = len(document.answers)
        groups = None
        if document.groups is not None:
            groups = np.array(document.groups, dtype=np.int64)
            if len(groups) != n_items:
                raise ValueError(
                    f"holds {counted(len(groups), 'group')} for {counted(n_items, 'answer')}"
                )
        answers = _shares(document.answers, n_items, n_classes)
        return cls(answers, _shares(document.shares, n_items, n_classes), groups)

    def to_document(self) -> dict[str, object]:
        """Return the content for ``ensemble.json``."""
        document: dict[str, object] = {
            "answers": self.answers.tolist(),
            "shares": self.shares.tolist(),
        }
        if self.groups is not None:
            document["groups"] = self.groups.tolist()
        return document

    def __len__(self) -> int:
        return len(self.answers)


def _draw_items(n_items: int, groups: Ints | None) -> Ints:
    """Draw at most ``MAX_STORED_ITEMS`` items at random; of groups, whole ones, at least one."""
    rng = np.random.default_rng(0)
    if groups is None:
        return np.sort(rng.choice(n_items, MAX_STORED_ITEMS, replace=False))
    sizes = np.bincount(groups)
    order = rng.permutation(len(sizes))
    n_drawn = int(np.searchsorted(np.cumsum(sizes[order]), MAX_STORED_ITEMS, side="right"))
    return np.flatnonzero(np.isin(groups, order[: max(n_drawn, 1)]))


def _shares(rows: list[list[float]], n_items: int, n_classes: int) -> Floats:
    """Return shares as an array of this shape; a ValueError says what is wrong with them."""
    if len(rows) != n_items or any(len(row) != n_classes for row in rows):
        raise ValueError(f"does not have {n_items} rows of {n_classes} numbers")
    array = np.array(rows, dtype=np.float64).reshape(n_items, n_classes)
    if (array < 0).any() or (array > 1).any():
        raise ValueError("holds shares below 0 or above 1")
    return array
