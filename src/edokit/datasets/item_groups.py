"""Rows that belong together: named groups, near-duplicate texts, pairs of one item.

Folds, splits and resamples keep such rows together. Otherwise a model would be tested on items that
are almost the same as those it learned from, and intervals would be too narrow.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from edokit._types import Ints, Strings
from edokit.annotations.core import Annotations
from edokit.datasets.near_duplicates import near_duplicate_groups
from edokit.folds import merge_groups
from edokit.rows import Keys, Rows

MOST_TEXTS = 50_000
"""Largest number of items among which near-duplicates are looked for; this takes a minute."""


def named_groups(annotations: Annotations) -> Ints | None:
    """Return the group number of each row [N]: rows of one item or one item group share it.

    None if no two rows do.
    """
    if annotations.item_groups is None:
        return annotations.rows.clusters
    return np.unique(group_keys(annotations), return_inverse=True)[1]


def group_keys(annotations: Annotations) -> Keys:
    """Return a 64-bit hash of the item group of each row [N]; without a group, of its item.

    Rows with the same key belong together, also if they are in different shards.
    """
    item_keys = Rows.from_names(annotations.rows.item_names).keys
    if annotations.item_groups is None:
        return item_keys
    keys = ~Rows.from_names(annotations.item_groups).keys  # a group and an item may have one name
    return np.where(annotations.item_groups == "", item_keys, keys)


def item_clusters(annotations: Annotations, most_texts: int | None = MOST_TEXTS) -> Ints | None:
    """Return the cluster number of each row [N]; rows with the same number are kept together.

    These are rows of one item, of one item group, and with near-duplicate texts. None if every row
    is alone in its cluster. Texts of more than ``most_texts`` items are not compared.
    """
    groups = named_groups(annotations)
    texts = annotations.whole_texts
    n_items = len(annotations.rows.items)
    if texts is not None and (most_texts is None or n_items <= most_texts):
        text_groups = _near_duplicates(tuple(texts))
        if groups is None:
            groups = text_groups
        else:
            groups = merge_groups(groups, text_groups)
    if groups is not None and len(np.unique(groups)) == len(groups):
        return annotations.rows.clusters
    return groups


def group_codes(item_groups: Strings) -> Ints:
    """Return the group number of each item [N]; an item without a group has its own number.

    Examples
    --------
    >>> group_codes(np.array(["t1", "", "t1", ""], dtype=object))
    array([0, 1, 0, 2])
    """
    keys: list[str | int] = []
    for number, name in enumerate(item_groups):
        keys.append(name or number)
    return pd.factorize(np.array(keys, dtype=object))[0].astype(np.int64)


@lru_cache(maxsize=2)
def _near_duplicates(texts: tuple[str, ...]) -> Ints:
    """The near-duplicate group of each text [N]; cached, since the steps of a run share texts."""
    return near_duplicate_groups(texts)
