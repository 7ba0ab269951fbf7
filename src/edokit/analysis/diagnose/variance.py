"""Shares of the labels' variance: items, annotators, groups by items, rest."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from edokit._types import Floats, Ints
from edokit.analysis.diagnose.clusters import Clusters, Design
from edokit.analysis.diagnose.vectors import (
    BiasDesign,
    LabelVectors,
    estimate_bias,
    products,
    squares,
    totals,
)
from edokit.folds import random_folds

BLOCKS = 20
# Width of a 95 % interval from 20 blocks, in standard errors.
_T = 2.093


class Part(NamedTuple):
    """A share of the total variance, with a 95 % interval over items."""

    share: float
    low: float
    high: float


def decompose(
    vectors: LabelVectors, design: Design, groupings: list[Clusters], random_state: int = 0
) -> tuple[float, dict[str, Part]] | None:
    """The variance of the label of a random item by a random annotator, and its parts.

    ``item``: differences between items; ``annotator``: between annotators, whatever the item;
    ``group_item``: groups of annotators see items differently; ``rest``: noise, and views of single
    annotators. Shares sum to 1; NaN is unknown, and counts as 0. Groups are as declared (one
    grouping) or found on other items (several). None where no item has two labels, or all labels
    are the same.
    """
    blocks = min(BLOCKS, vectors.items)
    block = random_folds(vectors.items, blocks, [random_state, 2])
    several = vectors.per_item >= 2
    spread = vectors.scatter[several] / (vectors.per_item[several] - 1)
    within = _leave_out(spread, block[several], blocks)
    # The variance of a label for a random item.
    total = _leave_out(vectors.means_by_item(vectors.values**2).sum(axis=1), block, blocks)
    for column in vectors.item_means.T:
        total = total - _leave_out(column, block, blocks) ** 2
    if not total[-1] > 1e-12 or np.isnan(within[-1]):
        return None
    parts = [vectors.take(block != b) for b in range(blocks)]
    bias_variance = np.array(
        [
            *(BiasDesign.from_vectors(part).variance(part) for part in parts),
            design.bias.variance(vectors),
        ]
    )
    bias = estimate_bias(vectors, float(bias_variance[-1]), design.within)
    numbers = vectors.values - bias[vectors.annotator]
    usable = [grouping for grouping in groupings if grouping.count >= 2]
    # Halves without any group to be found have groups that explain nothing.
    group_item = np.full(blocks + 1, np.nan)
    if usable:
        views = [_views(vectors, numbers, grouping, block, blocks) for grouping in usable]
        group_item = np.sum(views, axis=0) / len(groupings)
    annotators = int((vectors.per_annotator > 0).sum())
    annotator = bias_variance * (annotators - 1) / annotators
    systematic = np.nan_to_num(annotator) + np.nan_to_num(group_item)
    # Two different annotators out of few lie further apart than two drawn with replacement.
    disagreement = within - systematic / max(annotators - 1, 1)
    noise = disagreement - systematic
    # With very few items, leaving some out may leave nothing that varies.
    varying = np.where(total > 1e-12, total, np.nan)
    return float(total[-1]), {
        "item": _part((total - disagreement) / varying),
        "annotator": _part(annotator / varying),
        "group_item": _part(group_item / varying),
        "rest": _part(noise / varying),
    }


def _part(values: Floats) -> Part:
    """The estimate comes last, after those with one block of items left out."""
    blocks = len(values) - 1
    scatter = float(np.sum((values[:-1] - values[:-1].mean()) ** 2))
    width = _T * np.sqrt(scatter * (blocks - 1) / blocks)
    share = float(values[-1])
    # What can't be estimated with some items left out may be anything.
    if not np.isfinite(width) and not np.isnan(share):
        width = np.inf
    return Part(share, float(share - width), float(share + width))


def _leave_out(numbers: Floats, block: Ints, blocks: int) -> Floats:
    """Means of numbers with each block left out, then of all: [B + 1]."""
    sums = totals(block, numbers, blocks)
    counts = np.bincount(block, minlength=blocks)
    remaining = np.append(sums.sum() - sums, sums.sum())
    number = np.append(counts.sum() - counts, counts.sum())
    unknown = np.full(len(remaining), np.nan)
    means: Floats = np.divide(remaining, number, out=unknown, where=number > 0)
    return means


def _views(
    vectors: LabelVectors, numbers: Floats, grouping: Clusters, block: Ints, blocks: int
) -> Floats:
    """Variance of what groups see in an item beyond what all see, from labels without biases.

    By block left out, then of all [B + 1]; NaN where it can't be known.
    """
    group = grouping.group
    label_group = group[vectors.annotator]
    rows = label_group >= 0
    if grouping.items is not None:
        rows &= grouping.items[vectors.item]
    item = vectors.item[rows]
    label_group = label_group[rows]
    kinds = list(combinations_with_replacement(range(grouping.count), 2))
    n, pairs, sums = _pair_sums(item, label_group, numbers[rows], vectors.items, kinds)
    # An item of n labels knows about n − 1 things, however many pairs it has.
    total = pairs.sum(axis=1)
    weight = np.where(total > 0, 2.0 / np.maximum(n.sum(axis=1), 1.0), 0.0)
    safe = np.maximum(total, 1.0)
    excess = weight[:, None] * (sums - pairs * (sums.sum(axis=1) / safe)[:, None])
    # How much pairs of each kind agree [B, T], and how much is known of two kinds [B, T, T].
    agreement = totals(block, excess, blocks)
    normal = np.zeros((blocks, len(kinds), len(kinds)))
    for b in range(blocks):
        block_pairs = pairs[block == b]
        weighed = weight[block == b, None] * block_pairs
        shares = weighed / safe[block == b, None]
        normal[b] = np.diag(weighed.sum(axis=0)) - shares.T @ block_pairs
    # Found groups weigh by labels, since annotators with few are assigned poorly.
    counted_groups = label_group
    if grouping.items is None:
        counted_groups = group[group >= 0]
    members = np.bincount(counted_groups, minlength=len(n[0]))
    share = members / members.sum()
    # How two groups' views of an item agree, S[g, h], is known up to a constant, which cancels in
    # Σ_g π_g S[g, g] − Σ_gh π_g π_h S[g, h].
    contrast = np.array(
        [(g == h) * share[g] - (1 + (g != h)) * share[g] * share[h] for g, h in kinds]
    )
    result = []
    for left_out in range(blocks + 1):
        remaining = np.arange(blocks) != left_out
        matrix = normal[remaining].sum(axis=0)
        sides = np.stack([agreement[remaining].sum(axis=0), contrast], axis=1)
        solved = np.linalg.lstsq(matrix, sides, rcond=1e-10)[0]
        is_identified = np.allclose(matrix @ solved[:, 1], contrast, atol=1e-6)
        result.append(float(contrast @ solved[:, 0]) if is_identified else float("nan"))
    return np.array(result)


def _pair_sums(
    item: Ints, group: Ints, numbers: Floats, items: int, kinds: list[tuple[int, int]]
) -> tuple[Floats, Floats, Floats]:
    """Labels per item and group [N, G], pairs of each kind and sums of their products [N, T]."""
    count = kinds[-1][1] + 1
    cell = item * count + group
    n = totals(cell, np.ones(len(cell)), items * count).reshape(items, count)
    sums = totals(cell, numbers, items * count).reshape(items, count, -1)
    lengths = totals(cell, squares(numbers), items * count).reshape(items, count)
    pairs = np.empty((items, len(kinds)))
    pair_products = np.empty((items, len(kinds)))
    for k, (g, h) in enumerate(kinds):
        product = products(sums[:, g], sums[:, h])
        if g == h:
            # Each pair once, and no label with itself.
            pairs[:, k] = n[:, g] * (n[:, g] - 1) / 2
            pair_products[:, k] = (product - lengths[:, g]) / 2
        else:
            pairs[:, k] = n[:, g] * n[:, h]
            pair_products[:, k] = product
    return n, pairs, pair_products
