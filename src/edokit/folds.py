"""Assignment of items to folds: at random, stratified by label, and with groups kept together.

The whole package uses these functions. Folds are numbered from 0; functions return one per item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from edokit._types import Ints

Seed: TypeAlias = int | Sequence[int]


def random_folds(n_items: int, n_folds: int, seed: Seed, *, groups: Ints | None = None) -> Ints:
    """Assign items to folds of nearly equal size, regardless of labels.

    Parameters
    ----------
    n_items, n_folds : int
    seed : int or sequence of int
    groups : ndarray of int of shape (n_items,), default=None
        Items with the same number share a fold; folds then have nearly equal numbers of groups.

    Returns
    -------
    numpy.ndarray of shape (n_items,)

    Examples
    --------
    >>> np.bincount(random_folds(10, 5, seed=0))
    array([2, 2, 2, 2, 2])
    """
    if groups is not None:  # assign the groups, and each item to the fold of its group
        distinct, group_codes = np.unique(groups, return_inverse=True)
        group_folds = random_folds(len(distinct), n_folds, seed)
        return group_folds[group_codes]
    shuffled = np.random.default_rng(seed).permutation(n_items)
    return np.asarray(shuffled % n_folds)


def merge_groups(groups: Ints, others: Ints) -> Ints:
    """Join the groups of two groupings wherever they share an item.

    Parameters
    ----------
    groups, others : ndarray of int of shape (n_items,)
        Items with the same number belong together. Numbers are 0, 1, 2, ….

    Returns
    -------
    numpy.ndarray of shape (n_items,)
        ``groups`` unchanged if ``others`` joins none of them, else numbers in the order of first
        appearance.

    Examples
    --------
    >>> merge_groups(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 2]))
    array([0, 0, 1, 1])
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    # A graph whose nodes are the groups of both groupings, and whose edges are the items.
    n_groups = int(groups.max(initial=-1)) + 1
    n_nodes = n_groups + int(others.max(initial=-1)) + 1
    edges = (np.ones(len(groups), dtype=bool), (groups, n_groups + others))
    graph = sparse.coo_matrix(edges, shape=(n_nodes, n_nodes))
    merged = connected_components(graph, directed=False)[1][groups]
    distinct, first_items, codes = np.unique(merged, return_index=True, return_inverse=True)
    if len(distinct) == len(np.unique(groups)):
        return groups
    ranks = np.empty(len(distinct), dtype=np.int64)
    ranks[np.argsort(first_items)] = np.arange(len(distinct))
    return ranks[codes]


def stratified_folds(
    labels: NDArray[np.integer],
    n_folds: int,
    seed: Seed,
    *,
    groups: Ints | None = None,
    first_fold: int = 0,
) -> Ints:
    """Assign items to folds at random, so that each label is spread evenly over the folds.

    Parameters
    ----------
    labels : ndarray of int of shape (n_items,) or (n_items, n_labels)
        The hard label of each item; for multi-label data, indicators of the chosen labels, where
        each combination of labels counts as one label.
    n_folds : int
    seed : int or sequence of int
    groups : ndarray of int of shape (n_items,), default=None
        Items with the same number share a fold, which the label of the first of them determines.
    first_fold : int, default=0
        The fold with which dealing starts. If parts of the data are assigned one after another,
        start each with a different fold, so that remainders are spread over all folds.

    Returns
    -------
    numpy.ndarray of shape (n_items,)

    Examples
    --------
    >>> labels = np.array([0, 0, 0, 0, 1, 1])
    >>> folds = stratified_folds(labels, 2, seed=0)
    >>> np.bincount(folds[labels == 0]), np.bincount(folds[labels == 1])
    (array([2, 2]), array([1, 1]))
    """
    if labels.ndim == 2:
        _, codes = np.unique(labels, axis=0, return_inverse=True)
        labels = codes.reshape(-1)
    if groups is not None:  # assign the groups, and each item to the fold of its group
        _, first_items, group_codes = np.unique(groups, return_index=True, return_inverse=True)
        group_labels = labels[first_items]
        group_folds = stratified_folds(group_labels, n_folds, seed, first_fold=first_fold)
        return group_folds[group_codes]
    # Deal the items to the folds in turn, label by label, those of a label in random order.
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = np.empty(len(labels), dtype=np.int64)
    folds[by_label] = (np.arange(len(labels)) + first_fold) % n_folds
    return folds


def balanced_folds(labels: NDArray[np.integer], n_folds: int, seed: Seed, *, groups: Ints) -> Ints:
    """Assign groups of different sizes to folds that are balanced in size and labels.

    Large groups are assigned first. Each goes to the fold where its most frequent label is rarest,
    and among those to the smallest. This is slower than `stratified_folds`, which treats all groups
    as equal in size.

    Parameters
    ----------
    labels : ndarray of int of shape (n_items,) or (n_items, n_labels)
        See `stratified_folds`.
    n_folds : int
    seed : int or sequence of int
    groups : ndarray of int of shape (n_items,)
        Items with the same number share a fold; numbers are 0, 1, 2, ….

    Returns
    -------
    numpy.ndarray of shape (n_items,)
        With few groups, a fold may be empty.

    Examples
    --------
    >>> groups = np.array([0, 0, 0, 1, 2, 3])
    >>> folds = balanced_folds(np.zeros(6, dtype=int), 2, seed=0, groups=groups)
    >>> np.bincount(folds)
    array([3, 3])
    """
    distinct, label_codes = np.unique(labels, axis=0, return_inverse=True)
    label_codes = label_codes.reshape(-1)
    sizes = np.bincount(groups)
    items_by_group = np.argsort(groups, kind="stable")
    ends = np.cumsum(sizes)
    shuffled = np.random.default_rng(seed).permutation(len(sizes))
    counts = np.zeros((n_folds, len(distinct)), dtype=np.int64)
    folds = np.empty(len(groups), dtype=np.int64)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        items = items_by_group[ends[group] - sizes[group] : ends[group]]
        group_counts = np.bincount(label_codes[items], minlength=len(distinct))
        label_count = counts[:, group_counts.argmax()]
        fold = int(np.lexsort((counts.sum(axis=1), label_count))[0])
        counts[fold] += group_counts
        folds[items] = fold
    return folds
