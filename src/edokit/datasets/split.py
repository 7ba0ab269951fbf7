"""Dividing items into splits that are alike; groups and near-duplicates stay together."""

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
"""Steps from full agreement to the most even division."""


def split_items(
    annotations: Annotations,
    shares: Mapping[str, float] | None = None,
    *,
    from_splits: Sequence[str] | None = None,
    random_state: int = 0,
) -> Annotations:
    """Divide items into splits, stratified by hard label and disagreement.

    Items that are in a split stay there unless ``from_splits`` names it. Near-duplicate texts among
    the items that are divided stay in one split, and so do the items of a group.

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
        If the shares are not positive and do not sum to 1, a split would get no item, or it is not
        clear which items are divided into what.

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
    names, targets = _shares(SHARES if shares is None else shares)
    part = annotations.take(rows)
    n = len(rows)
    rng = np.random.default_rng(random_state)
    texts = part.whole_texts
    groups = np.arange(n) if texts is None else near_duplicate_groups(texts)
    if part.item_groups is not None:
        groups = merge_groups(groups, group_codes(part.item_groups))
    # Groups in random order, but those of one stratum side by side.
    sizes = np.bincount(groups)
    first_item = np.unique(groups, return_index=True)[1]
    strata = _strata(part, random_state)[first_item]
    order = np.lexsort((rng.permutation(len(sizes)), -sizes, strata))
    dealt = _deal(sizes, order, whole_numbers(targets, n), rng)
    empty = [name for k, name in enumerate(names) if k not in dealt]
    if empty:
        raise InputError(
            f"the split {examples(empty)} would get none of the {n} items, which are"
            f" {counted(len(sizes), 'group')} of items that stay together",
            "give it a larger share",
            code="empty-split",
        )
    splits = _splits(annotations).copy()
    splits[rows] = np.array(names, dtype=object)[dealt[groups]]
    return replace(annotations, splits=splits)


def _splits(annotations: Annotations) -> Strings:
    """The split of each item, empty where there is none."""
    none = np.full(len(annotations.items), "", dtype=object)
    return none if annotations.splits is None else annotations.splits


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
            f"{are(len(rows), len(splits), noun='item')} to be divided, but the splits to divide"
            f" those into are not given; there are {split_counts}",
            f"name the splits to divide them into: {option('shares', {'train': 0.8, 'dev': 0.2})}",
            code="missing-option",
        )
    if shares is not None and not len(rows):
        raise InputError(
            f"every item is in a split already: {split_counts}",
            f"name the splits to divide, as in {option('from_splits', ['train'])}",
            code="missing-option",
        )
    return rows


def _shares(shares: Mapping[str, float]) -> tuple[list[str], Floats]:
    """Names and shares that sum to one."""
    names = list(shares)
    weights = np.array(list(shares.values()), dtype=np.float64)
    if not names or not (weights > 0).all() or abs(weights.sum() - 1) > 1e-6:
        shares_text = ", ".join(f"{name}={share:g}" for name, share in shares.items()) or "none"
        raise InputError(
            f"the shares of the splits ({shares_text}) are not positive or do not sum to 1",
            "write for example train=0.8, dev=0.1, test=0.1",
            code="invalid-shares",
        )
    return names, weights / weights.sum()


def _strata(annotations: Annotations, random_state: int) -> Ints:
    """A number per item [N] for its hard label and how divided its annotators are."""
    # It matters little here how ties are broken, hence without a warning.
    labels = annotations.hard_labels(ties="random", random_state=random_state)
    maximum = np.log(max(2, len(annotations.scale.row_classes(annotations.classes))))
    level = np.ceil(annotations.entropy / maximum * _LEVELS - 1e-9)
    sets = np.unique(labels.reshape(len(labels), -1), axis=0, return_inverse=True)[1]
    strata: Ints = sets.reshape(-1).astype(np.int64) * (_LEVELS + 1) + level.astype(np.int64)
    return strata


def whole_numbers(shares: Floats, n: int) -> Ints:
    """Whole numbers that sum to n, by largest remainder."""
    exact = shares / shares.sum() * n
    floors: Ints = np.floor(exact + 1e-9).astype(np.int64)
    floors[np.argsort(floors - exact, kind="stable")[: n - floors.sum()]] += 1
    return floors


def _deal(sizes: Ints, order: Ints, wanted: Ints, rng: np.random.Generator) -> Ints:
    """The split of each group [G], given its size and how many items each split wants."""
    assigned = np.empty(len(sizes), dtype=np.int64)
    remaining = wanted.astype(np.float64)
    # Groups of several items go one by one to the split that is then the least filled.
    for group in order[sizes[order] > 1]:
        split = int(np.argmax((remaining - sizes[group]) / np.maximum(wanted, 0.5)))
        assigned[group] = split
        remaining[split] -= sizes[group]
    # Single items are dealt like cards: of those dealt in a row each split has its share.
    single = order[sizes[order] == 1]
    if len(single):
        hands = whole_numbers(np.maximum(remaining, 0), len(single))
        turns = np.concatenate([(np.arange(hand) + 0.5) / hand for hand in hands if hand])
        owner = np.repeat(np.arange(len(hands)), hands)[np.argsort(turns, kind="stable")]
        assigned[single] = np.roll(owner, rng.integers(len(single)))
    return assigned
