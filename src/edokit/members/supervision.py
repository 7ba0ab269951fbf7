"""Targets [N, C] of a member from annotations, seed and epoch.

A target is a distribution over classes or, for multi-label data, 0 … 1 for each label on its own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from edokit._errors import InputError, counted, option
from edokit._types import Codes, Floats, Ints
from edokit.annotator_effects import label_shares

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations


# Which labels are a member's targets.
RANDOM_SELECT = "random-select"  # the label (or set of labels) of an annotator drawn per item
PER_ANNOTATOR = "per-annotator"  # the labels of one annotator, the most active first
PER_GROUP = "per-group"  # the labels of all annotators with one level of an attribute
SOFT = "soft"  # the share of annotators per class or label
MAJORITY = "majority"  # the hard label, or the labels that more than half of the annotators chose
SUPERVISIONS = (RANDOM_SELECT, PER_ANNOTATOR, PER_GROUP, SOFT, MAJORITY)

# When random-select draws.
EPOCH = "epoch"  # at every epoch: over epochs the targets are distributed like the soft labels
ONCE = "once"  # once per member


def random_select_targets(annotations: Annotations, random_state: int, epoch: int = 0) -> Floats:
    """One annotator's label of each item [N, C], the annotator drawn uniformly.

    A row is one-hot where annotators chose a class, else the set of labels, or the probabilities,
    that the drawn one gave. Over seeds and epochs its mean is the item's soft label.

    Examples
    --------
    >>> from edokit import Annotations
    >>> from edokit.members.supervision import random_select_targets
    >>> annotations = Annotations.from_matrix([[0, 1], [1, 1]])
    >>> random_select_targets(annotations, 0)[1]
    array([0., 1.])
    """
    order = np.argsort(annotations.item_codes, kind="stable")
    counts = annotations.annotations_per_item
    starts = np.cumsum(counts) - counts
    draw = np.random.default_rng([random_state, epoch]).random(len(counts))
    rows = order[starts + (draw * counts).astype(np.int64)]
    return label_shares(annotations, len(annotations.classes), rows)


def soft_targets(annotations: Annotations) -> Floats:
    """The share of annotators per class [N, C]."""
    return np.asarray(annotations.soft_labels)


def majority_targets(annotations: Annotations, hard: Codes | None = None) -> Floats:
    """The hard label of each item, one-hot [N, C]; in multi-label data several may be 1.

    ``hard`` are the hard labels, where ties have been broken before.
    """
    labels = annotations.hard_labels() if hard is None else hard
    return annotations.scale.indicators(labels, len(annotations.classes)).astype(np.float64)


def annotator_targets(annotations: Annotations, annotator: str) -> tuple[Ints, Floats]:
    """The items that one annotator labelled [n], and these labels [n, C].

    Two labels of one item count half each.
    """
    return group_targets(annotations, [annotator])


def group_targets(annotations: Annotations, annotators: Collection[str]) -> tuple[Ints, Floats]:
    """The items that some of these annotators labelled [n], and their soft labels of them [n, C].

    Examples
    --------
    >>> from edokit import Annotations
    >>> from edokit.members.supervision import group_targets
    >>> labels = [[0, 1, 1], [None, None, 0], [0, 0, 1]]
    >>> annotations = Annotations.from_matrix(labels, annotators=["ann", "ben", "cleo"])
    >>> positions, targets = group_targets(annotations, ["ann", "ben"])
    >>> positions
    array([0, 2])
    >>> targets
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    names = [str(name) for name in annotations.annotators]
    codes = [code for code, name in enumerate(names) if name in annotators]
    rows = np.flatnonzero(np.isin(annotations.annotator_codes, codes))
    positions, row = np.unique(np.asarray(annotations.item_codes)[rows], return_inverse=True)
    targets = np.zeros((len(positions), len(annotations.classes)))
    np.add.at(targets, row, label_shares(annotations, targets.shape[1], rows))
    return positions.astype(np.int64), targets / np.bincount(row)[:, None]


def most_active(annotations: Annotations, members: int, *, ignore_limit: bool = False) -> list[str]:
    """The annotators that per-annotator members train on, the most active first.

    Equally active ones are in the order of their first annotation. More members than annotators of
    the least annotated item are refused, unless this limit is ignored; more members than annotators
    always are.
    """
    available = len(annotations.annotators)
    if members > available:
        verb = "is" if available == 1 else "are"
        raise InputError(
            f"{members} per-annotator members need an annotator each, but there"
            f" {verb} {counted(available, 'annotator')}",
            f"ask for {counted(available, 'member')} at most",
            code="too-many-members",
        )
    fewest = int(annotations.annotations_per_item.min())
    if members > fewest and not ignore_limit:
        raise InputError(
            f"{members} per-annotator members are more than the {counted(fewest, 'annotator')} of"
            " the least annotated item (the paper's K ≤ min A_i)",
            f"ask for {counted(fewest, 'member')} at most, choose"
            f" {option('supervision', RANDOM_SELECT)}, or allow more:"
            f" {option('ignore_annotator_limit', True)}",
            code="too-many-members",
        )
    activity = np.bincount(annotations.annotator_codes, minlength=available)
    return [str(annotations.annotators[a]) for a in np.argsort(-activity, kind="stable")[:members]]
