"""Similar texts, which share most of their words without being near-duplicates.

Texts made from one template are an example. A model that learned from one of them knows much about
the others. Folds do not keep them together unless they are declared as a group, since in some data
most texts share their words for other reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from edokit._errors import EDOWarning, InputError, are, examples, option, warn
from edokit._types import Bools, Ints
from edokit.annotations.core import Annotations
from edokit.datasets.near_duplicates import near_duplicate_groups, normal_form, ranked_sets
from edokit.datasets.near_duplicates import similar_pairs as pairs_of_sets
from edokit.folds import merge_groups

THRESHOLD = 0.5
"""Smallest overlap (Jaccard index) of the word sets of similar texts."""
FEWEST_WORDS = 6
"""Texts with fewer different words are not compared, since they may share most by chance."""
FEWEST_TEXTS = 3
"""Smallest number of similar texts that counts as a group; near-duplicates count as one text."""
NOTICEABLE = 0.1
"""Smallest share of items in such groups for which there is a warning.

Tables of ordinary texts have fewer. With a quarter of the items, a comparison may already claim a
gain that does not exist (`benchmarks/similar_texts.py`).
"""
FEWEST_ITEMS = 100
"""With fewer items there is no warning, since intervals are wide anyway."""
MOST_TEXTS = 20_000
"""With more items, similar texts are not looked for."""


class SimilarTextsWarning(EDOWarning):
    """Many texts share most of their words, and no item groups are declared."""


def similar_text_groups(texts: Sequence[str]) -> Ints:
    """Return the group number of each text [N]; similar texts and near-duplicates share one.

    Two texts that are similar to the same third text share one, too.

    Examples
    --------
    >>> similar_text_groups(["a b c d e f", "f e d c b a", "u v w x y z"])
    array([0, 0, 1])
    """
    groups = near_duplicate_groups(texts)
    word_sets = [sorted(set(normal_form(text).split())) for text in texts]
    compared = np.flatnonzero([len(words) >= FEWEST_WORDS for words in word_sets])
    if len(compared) < 2:
        return groups
    sizes = [len(word_sets[position]) for position in compared]
    words: list[str] = []
    for position in compared:
        words += word_sets[position]
    ranked = ranked_sets(np.array(words, dtype=object), sizes)
    no_pairs = np.zeros((2, 0), np.int64)
    pairs = np.concatenate([no_pairs, *pairs_of_sets(ranked, THRESHOLD)], axis=1)
    return merge_groups(groups, _components(compared[pairs], len(texts)))


@dataclass(frozen=True, eq=False)
class SimilarItems:
    """The items with texts that are similar to others without being near-duplicates.

    Attributes
    ----------
    groups : ndarray of int of shape (n_items,)
        The group number of each item, which similar texts and near-duplicates share.
    is_similar : ndarray of bool of shape (n_items,)
        Whether the group of each item has at least `FEWEST_TEXTS` different texts.
    """

    groups: Ints
    is_similar: Bools


def similar_items(texts: Sequence[str]) -> SimilarItems:
    """Find the items whose texts are similar to at least two others."""
    groups = similar_text_groups(texts)
    table = pd.DataFrame({"group": groups, "text": near_duplicate_groups(texts)})
    n_texts = table.groupby("group")["text"].transform("nunique")
    return SimilarItems(groups, np.asarray(n_texts >= FEWEST_TEXTS))


def _components(pairs: Ints, count: int) -> Ints:
    """The connected component of each text [N], from pairs [2, P] of them."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    edges = (np.ones(pairs.shape[1], dtype=bool), (pairs[0], pairs[1]))
    graph = sparse.coo_matrix(edges, shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def group_similar_texts(annotations: Annotations) -> Annotations:
    """Return the annotations with similar texts as item groups, merged with existing groups."""
    from edokit.datasets.item_groups import group_codes

    if annotations.texts is None:
        raise InputError(
            f"{option('group_similar')} compares texts, but the data has none",
            f"name the column of texts: {option('columns', {'text': 'NAME'})}",
            code="missing-texts",
        )
    groups = similar_text_groups(annotations.texts.tolist())
    if annotations.item_groups is not None:
        groups = merge_groups(groups, group_codes(annotations.item_groups))
    codes = pd.factorize(groups)[0]
    is_alone = np.bincount(codes)[codes] == 1
    names = np.array([f"similar-{code + 1}" for code in codes], dtype=object)
    names[is_alone] = ""
    return replace(annotations, item_groups=names)


def warn_of_similar_texts(annotations: Annotations) -> None:
    """Warn if many texts share most of their words, unless item groups are declared."""
    note = similar_texts_note(annotations)
    if note is not None:
        warn(
            f"{note} If they come from templates, threads or the like, name the column of these"
            f" groups: {option('columns', {'group': 'NAME'})}; `edo data convert SOURCE OUT"
            " --group-similar` makes such a column from the texts",
            SimilarTextsWarning,
        )


def similar_texts_note(annotations: Annotations) -> str | None:
    """A note if many texts share most of their words, unless item groups are declared."""
    texts = annotations.texts
    if texts is None or annotations.item_groups is not None:
        return None
    if not FEWEST_ITEMS <= len(texts) <= MOST_TEXTS:
        return None
    similar_texts = similar_items(texts.tolist())
    if similar_texts.is_similar.mean() < NOTICEABLE:
        return None
    first_group = similar_texts.groups[similar_texts.is_similar][0]
    items = annotations.items[similar_texts.groups == first_group]
    similar = are(int(similar_texts.is_similar.sum()), len(texts), noun="item")
    return (
        f"{similar} similar to others without being"
        f" near-duplicates: their texts share most of their words, as {examples(items)} do. Folds"
        " do not keep them together, so gains on held-out items may be those of words seen"
        " before."
    )
