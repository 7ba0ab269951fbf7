"""Divides items into stratified splits; groups and near-duplicates stay together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edokit._errors import InputError, are, counted, examples, option
from edokit._types import Floats, Ints, Strings
from edokit.annotations.core import Annotations
from edokit.datasets.item_groups import group_codes
from edokit.datasets.near_duplicates import near_duplicate_groups
from edokit.folds import merge_groups

SHARES: Mapping[str, float] = {"train": 0.8, "dev": 0.1, "test": 0.1}
_LEVELS = 4
"""Levels of disagreement by which items are stratified, besides full agreement."""


def split_items(
    annotations: Annotations,
    shares: Mapping[str, float] | None = None,
    *,
    from_splits: Sequence[str] | None = None,
    random_state: int = 0,
) -> Annotations:
    """Divide items into splits, stratified by hard label and disagreement.

    Items that are in a split stay there unless ``from_splits`` names it. Of the items that are
    divided, those with near-duplicate texts and those of one group go into the same split.

    Parameters
    ----------
    annotations : Annotations
    shares : mapping of str to float, default=None
        Names and shares of the splits. If None, ``{"train": 0.8, "dev": 0.1, "test": 0.1}``,
        provided that no item is in a split yet.
    from_splits : sequence of str, default=None
        The splits whose items are divided; if None, the items without a split.
    random_state : int, default=0
        Seed; the same seed gives the same splits.

    Returns
    -------
    Annotations
        The same annotations with a split for each item.

    Raises
    ------
    InputError
        If the shares are not positive or do not sum to 1, if a split would get no item, or if it is
        unclear which items are to be divided, or into which splits.

    Examples
    --------
    >>> from edokit import simulate
    >>> from edokit.datasets.split import split_items
    >>> annotations = simulate("two-camps", items=(100, 0, 40)).annotations
    >>> parts = split_items(annotations, {"train": 0.7, "dev": 0.3}, from_splits=["train"])
    >>> {name: len(parts.split(name).items) for name in parts.split_names}
    {'train': 70, 'dev': 30, 'test': 40}
    """
    rows = _to_divide(annotations, shares, from_splits)
    if not len(rows):
        return annotations
    if shares is None:
        shares = SHARES
    names = list(shares)
    part = annotations.take(rows)
    n = len(rows)
    split_sizes = whole_numbers(_checked_shares(shares), n)
    rng = np.random.default_rng(random_state)
    groups = np.arange(n)
    if part.whole_texts is not None:
        groups = near_duplicate_groups(part.whole_texts)
    if part.item_groups is not None:
        groups = merge_groups(groups, group_codes(part.item_groups))
    # Groups are sorted by stratum, then the largest first, else in random order.
    sizes = np.bincount(groups)
    first_item = np.unique(groups, return_index=True)[1]
    strata = _strata(part, random_state)[first_item]
    order = np.lexsort((rng.permutation(len(sizes)), -sizes, strata))
    split_codes = _deal(sizes, order, split_sizes, rng)
    empty = [name for code, name in enumerate(names) if code not in split_codes]
    if empty:
        raise InputError(
            f"the split {examples(empty)} would get none of the {n} items, which are"
            f" {counted(len(sizes), 'group')} of items that stay together",
            "give it a larger share",
            code="empty-split",
        )
    splits = _splits(annotations).copy()
    splits[rows] = np.array(names, dtype=object)[split_codes[groups]]
    return replace(annotations, splits=splits)


def _splits(annotations: Annotations) -> Strings:
    """The split of each item [N]; empty for an item without a split."""
    if annotations.splits is None:
        return np.full(len(annotations.items), "", dtype=object)
    return annotations.splits


def _to_divide(
    annotations: Annotations,
    shares: Mapping[str, float] | None,
    from_splits: Sequence[str] | None,
) -> Ints:
    """The positions of the items to divide."""
    splits = _splits(annotations)
    split_counts = ", ".join(f"{name} {count}" for name, count in Counter(splits).items() if name)
    rows = np.flatnonzero(splits == "")
    if from_splits:
        annotations.split(*from_splits)  # refuses unknown names
        rows = np.flatnonzero(np.isin(splits, from_splits))
    if shares is None and split_counts and len(rows):
        raise InputError(
            f"{are(len(rows), len(splits), noun='item')} to be divided, but the new splits are not"
            f" given; the data have {split_counts}",
            f"name the new splits and their shares: {option('shares', {'train': 0.8, 'dev': 0.2})}",
            code="missing-option",
        )
    if shares is not None and not len(rows):
        raise InputError(
            f"every item is in a split already: {split_counts}",
            f"name the splits to divide again, as in {option('from_splits', ['train'])}",
            code="missing-option",
        )
    return rows


def _checked_shares(shares: Mapping[str, float]) -> Floats:
    """The shares of the splits, which must be positive and sum to 1."""
    values = np.array(list(shares.values()), dtype=np.float64)
    if not len(values) or not (values > 0).all() or abs(values.sum() - 1) > 1e-6:
        listed = ", ".join(f"{name}={share:g}" for name, share in shares.items())
        raise InputError(
            f"the shares of the splits ({listed or 'none'}) are not positive or do not sum to 1",
            "write for example train=0.8, dev=0.1, test=0.1",
            code="invalid-shares",
        )
    return np.asarray(values / values.sum())


def _strata(annotations: Annotations, random_state: int) -> Ints:
    """The stratum of each item [N]: its hard label and its level of disagreement."""
    # Ties are broken at random, since that causes no warning; it matters little for strata.
    labels = annotations.hard_labels(ties="random", random_state=random_state)
    # For multi-label data, a hard label is a row of the array.
    label_rows = labels.reshape(len(labels), -1)
    label_codes = np.unique(label_rows, axis=0, return_inverse=True)[1].reshape(-1)
    most_entropy = np.log(max(2, len(annotations.scale.row_classes(annotations.classes))))
    levels = np.ceil(annotations.entropy / most_entropy * _LEVELS - 1e-9)
    strata: Ints = label_codes.astype(np.int64) * (_LEVELS + 1) + levels.astype(np.int64)
    return strata


def whole_numbers(shares: Floats, n: int) -> Ints:
    """Whole numbers in proportion to the shares that sum to n (largest remainders)."""
    exact = shares / shares.sum() * n
    numbers: Ints = np.floor(exact + 1e-9).astype(np.int64)
    by_remainder = np.argsort(numbers - exact, kind="stable")
    numbers[by_remainder[: n - numbers.sum()]] += 1
    return numbers


def _deal(sizes: Ints, order: Ints, wanted: Ints, rng: np.random.Generator) -> Ints:
    """The split of each group [G].

    Parameters
    ----------
    sizes : ndarray of int of shape (G,)
        The number of items of each group.
    order : ndarray of int of shape (G,)
        The groups in the order in which they are dealt.
    wanted : ndarray of int of shape (S,)
        The number of items that each split should get.
    rng : numpy.random.Generator
    """
    split_codes = np.empty(len(sizes), dtype=np.int64)
    remaining = wanted.astype(np.float64)
    # A group of several items goes to the split that is the least filled afterwards.
    for group in order[sizes[order] > 1]:
        split = int(np.argmax((remaining - sizes[group]) / np.maximum(wanted, 0.5)))
        split_codes[group] = split
        remaining[split] -= sizes[group]
    # Single items are dealt in turns, so that each split has its share of every stratum.
    single = order[sizes[order] == 1]
    if len(single):
        numbers = whole_numbers(np.maximum(remaining, 0), len(single))
        # A split that gets n items has its turns at 0.5/n, 1.5/n, …
        turns = np.concatenate([(np.arange(n) + 0.5) / n for n in numbers if n])
        owners = np.repeat(np.arange(len(numbers)), numbers)[np.argsort(turns, kind="stable")]
        split_codes[single] = np.roll(owners, rng.integers(len(single)))
    return split_codes
