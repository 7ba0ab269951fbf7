"""Items that belong together: named groups, near-duplicate texts, pairs that are about one item.

Folds, splits and resamples keep such items together. Otherwise a model is judged on items that it
has all but seen, and intervals count as several items what is one.
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
"""Largest number of items that are searched for near-duplicates, which takes a minute."""


def named_groups(annotations: Annotations) -> Ints | None:
    """Return a number per row [N] that rows of one item, and of one item group, share.

    None where every row is on its own.
    """
    if annotations.item_groups is None:
        return annotations.rows.clusters
    return np.unique(group_keys(annotations), return_inverse=True)[1]


def group_keys(annotations: Annotations) -> Keys:
    """Return a 64-bit hash of the item group of each row [N]; of the item where it has none.

    Rows with the same key belong together, whichever shard they are in.
    """
    item_keys = Rows.from_names(annotations.rows.item_names).keys
    if annotations.item_groups is None:
        return item_keys
    keys = ~Rows.from_names(annotations.item_groups).keys  # a group may be called like an item
    return np.where(annotations.item_groups == "", item_keys, keys)


def item_clusters(annotations: Annotations, most_texts: int | None = MOST_TEXTS) -> Ints | None:
    """Return a number per row [N] that rows share which are kept together.

    These are rows of one item, of one item group, and with near-duplicate texts. None where every
    row is on its own. Texts of more than ``most_texts`` items are not compared.
    """
    groups = named_groups(annotations)
    texts = annotations.whole_texts
    n_items = len(annotations.rows.items)
    if texts is not None and (most_texts is None or n_items <= most_texts):
        alike = _near_duplicates(tuple(texts))
        if groups is None:
            groups = alike
        else:
            groups = merge_groups(groups, alike)
    if groups is not None and len(np.unique(groups)) == len(groups):
        return annotations.rows.clusters
    return groups


def group_codes(item_groups: Strings) -> Ints:
    """Return a number per item [N] that the items of a group share; an item without one is alone.

    Examples
    --------
    >>> group_codes(np.array(["t1", "", "t1", ""], dtype=object))
    array([0, 1, 0, 2])
    """
    names = [name or number for number, name in enumerate(item_groups)]
    return pd.factorize(np.array(names, dtype=object))[0].astype(np.int64)


@lru_cache(maxsize=2)
def _near_duplicates(texts: tuple[str, ...]) -> Ints:
    """The near-duplicate group of each text; the steps of a run ask for the same texts."""
    return near_duplicate_groups(texts)
