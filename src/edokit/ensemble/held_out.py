"""Cross-fitted answers to the items of a fit, kept with the ensemble.

They show how well it answers items that it has not seen. No names and no texts are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edokit._io.documents import Count, Document
from edokit._types import Floats, Ints
from edokit.fitdata.data import FitData

MAX_ITEMS = 10_000
"""Largest number of items that are kept; larger tables are sampled at random, by group."""
_DIGITS = 6


class HeldOutDocument(Document):
    """Cross-fitted answers in ``ensemble.json``."""

    answers: list[list[float]]
    shares: list[list[float]]
    groups: list[Count] | None = None


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What an ensemble answered about items that it had not seen, and what people had said.

    Attributes
    ----------
    answers : ndarray of shape (n_items, n_classes)
        The pool, with weights that were learned without the item where that is cheap.
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
        """Return answers [N, C] to the items of fit data with their soft labels.

        Parameters
        ----------
        units : FitData
            What weights were learned on; a random sample of it where it is in shards.
        answers : ndarray of shape (n_items, n_classes)
            Cross-fitted answers to the items in memory.
        """
        shares = units.layout.item_shares(units.sample.q)
        groups = None
        if units.layout.has_item_groups and units.layout.groups is not None:
            groups = np.unique(units.layout.groups, return_inverse=True)[1]
        sampled_rows = np.arange(len(answers))
        if len(sampled_rows) > MAX_ITEMS:
            sampled_rows = _draw_items(len(sampled_rows), groups)
        if groups is not None:
            groups = groups[sampled_rows]
        return cls(
            np.round(answers[sampled_rows], _DIGITS),
            np.round(shares[sampled_rows], _DIGITS),
            groups,
        )

    @classmethod
    def from_document(cls, document: HeldOutDocument, n_classes: int) -> HeldOut:
        """Return what ``ensemble.json`` holds; sizes that do not fit are a ValueError."""
        n_items = len(document.answers)
        groups = None
        if document.groups is not None:
            groups = np.array(document.groups, dtype=np.int64)
            if len(groups) != n_items:
                raise ValueError("holds another number of groups than of answers")
        answers = _shares(document.answers, n_items, n_classes)
        return cls(answers, _shares(document.shares, n_items, n_classes), groups)

    def to_document(self) -> dict[str, object]:
        """Return the answers as plain values, as ``ensemble.json`` holds them."""
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
    """Draw about ``MAX_ITEMS`` items at random, in whole groups."""
    rng = np.random.default_rng(0)
    if groups is None:
        return np.sort(rng.choice(n_items, MAX_ITEMS, replace=False))
    sizes = np.bincount(groups)
    order = rng.permutation(len(sizes))
    n_drawn = int(np.searchsorted(np.cumsum(sizes[order]), MAX_ITEMS, side="right"))
    return np.flatnonzero(np.isin(groups, order[: max(n_drawn, 1)]))


def _shares(rows: list[list[float]], n_items: int, n_classes: int) -> Floats:
    """Rows of shares as an array of this shape."""
    if len(rows) != n_items or any(len(row) != n_classes for row in rows):
        raise ValueError(f"is not {n_items} rows of {n_classes} numbers")
    array = np.array(rows, dtype=np.float64).reshape(n_items, n_classes)
    if (array < 0).any() or (array > 1).any():
        raise ValueError("holds shares below 0 or above 1")
    return array
