"""Shares of the labels' variance: items, annotators, groups by items, rest."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit  # quantiles of Student's t

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
"""Blocks of items that are left out in turn, as far as there are items."""


class Part(NamedTuple):
    """A share of the total variance, with a 95 % interval over items (a block jackknife)."""

    share: float
    low: float
    high: float


def decompose(
    vectors: LabelVectors,
    design: Design,
    groupings: list[Clusters],
    random_state: int = 0,
    item_groups: Ints | None = None,
) -> tuple[float, dict[str, Part]] | None:
    """The variance of the label of a random item by a random annotator, and its parts.

    ``item``: differences between items; ``annotator``: between annotators, whatever the item;
    ``group_item``: groups of annotators see items differently; ``rest``: noise, and views of single
    annotators. Shares sum to 1; NaN is unknown, and counts as 0. Groups are as declared (one
    grouping) or found on other items (several). Intervals keep items together that have the same
    number in ``item_groups`` [N]. None where no item has two labels, or all labels are the same.
    """
    n_units = vectors.items
    if item_groups is not None:
        n_units = len(np.unique(item_groups))
    blocks = min(BLOCKS, n_units)
    block = random_folds(vectors.items, blocks, [random_state, 2], groups=item_groups)
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
    variances = [BiasDesign.from_vectors(part).variance(part) for part in parts]
    bias_variance = np.array([*variances, design.bias.variance(vectors)])
    bias = estimate_bias(vectors, float(bias_variance[-1]), design.within)
    numbers = vectors.values - bias[vectors.annotator]
    usable = [grouping for grouping in groupings if grouping.count >= 2]
    # Halves without any group to be found have groups that explain nothing.
    group_item = np.full(blocks + 1, np.nan)
    if usable:
        by_grouping = []
        for grouping in usable:
            by_grouping.append(_group_item_variance(vectors, numbers, grouping, block, blocks))
        group_item = np.sum(by_grouping, axis=0) / len(groupings)
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
    """The share with its interval; it comes last, after those with one block of items left out."""
    blocks = len(values) - 1
    scatter = float(np.sum((values[:-1] - values[:-1].mean()) ** 2))
    width = _t_quantile(blocks) * np.sqrt(scatter * (blocks - 1) / blocks)
    share = float(values[-1])
    # What can't be estimated with some items left out may be anything.
    if not np.isfinite(width) and not np.isnan(share):
        width = np.inf
    return Part(share, float(share - width), float(share + width))


def _t_quantile(blocks: int) -> float:
    """Half the width of a 95 % interval from this many blocks, in standard errors."""
    if blocks < 2:
        return float("inf")
    # Three decimals, as in printed tables: 2.093 for 20 blocks.
    return round(float(stdtrit(blocks - 1, 0.975)), 3)


def _leave_out(numbers: Floats, block: Ints, blocks: int) -> Floats:
    """Means of numbers with each block left out, then of all: [B + 1]."""
    sums = totals(block, numbers, blocks)
    counts = np.bincount(block, minlength=blocks)
    remaining = np.append(sums.sum() - sums, sums.sum())
    number = np.append(counts.sum() - counts, counts.sum())
    unknown = np.full(len(remaining), np.nan)
    means: Floats = np.divide(remaining, number, out=unknown, where=number > 0)
    return means


def _group_item_variance(
    vectors: LabelVectors, numbers: Floats, grouping: Clusters, block: Ints, blocks: int
) -> Floats:
    """Variance of what groups see in an item beyond what everybody sees [B + 1].

    ``numbers`` [M, D] are the labels without biases. There is a value for each block that is left
    out, then that of all; NaN where it can't be known.
    """
    group = grouping.group
    label_group = group[vectors.annotator]
    rows = label_group >= 0
    if grouping.items is not None:
        rows &= grouping.items[vectors.item]
    item = vectors.item[rows]
    label_group = label_group[rows]
    # Kinds of pairs of labels [T]: by the groups of the two annotators.
    kinds = list(combinations_with_replacement(range(grouping.count), 2))
    n, pairs, sums = _pair_sums(
        item, label_group, numbers[rows], vectors.items, grouping.count, kinds
    )
    # An item with n labels counts in proportion to n − 1, however many pairs it has.
    total = pairs.sum(axis=1)
    weight = np.where(total > 0, 2.0 / np.maximum(n.sum(axis=1), 1.0), 0.0)
    safe = np.maximum(total, 1.0)
    excess = weight[:, None] * (sums - pairs * (sums.sum(axis=1) / safe)[:, None])
    # How much pairs of each kind agree beyond the pairs of their items [B, T], and the normal
    # equations of this regression on kinds [B, T, T].
    agreement = totals(block, excess, blocks)
    normal = np.zeros((blocks, len(kinds), len(kinds)))
    for b in range(blocks):
        block_pairs = pairs[block == b]
        weighed = weight[block == b, None] * block_pairs
        shares = weighed / safe[block == b, None]
        normal[b] = np.diag(weighed.sum(axis=0)) - shares.T @ block_pairs
    # Declared groups weigh by annotators; found ones by labels, since annotators with few labels
    # are assigned poorly.
    weighing = label_group
    if grouping.items is None:
        weighing = group[group >= 0]
    sizes = np.bincount(weighing, minlength=grouping.count)
    share = sizes / sizes.sum()
    # How two groups' views of an item agree, S[g, h], is known up to a constant, which cancels in
    # Σ_g π_g S[g, g] − Σ_gh π_g π_h S[g, h]. The second sum has each kind g ≠ h twice.
    contrast = np.empty(len(kinds))
    for k, (g, h) in enumerate(kinds):
        if g == h:
            contrast[k] = share[g] - share[g] * share[g]
        else:
            contrast[k] = -2 * share[g] * share[h]
    result = []
    for left_out in range(blocks + 1):
        remaining = np.arange(blocks) != left_out
        matrix = normal[remaining].sum(axis=0)
        sides = np.stack([agreement[remaining].sum(axis=0), contrast], axis=1)
        solved = np.linalg.lstsq(matrix, sides, rcond=1e-10)[0]
        # The contrast is known if it is a combination of the equations.
        value = float("nan")
        if np.allclose(matrix @ solved[:, 1], contrast, atol=1e-6):
            value = float(contrast @ solved[:, 0])
        result.append(value)
    return np.array(result)


def _pair_sums(
    item: Ints,
    group: Ints,
    numbers: Floats,
    items: int,
    count: int,
    kinds: list[tuple[int, int]],
) -> tuple[Floats, Floats, Floats]:
    """Labels per item and group [N, G], pairs of each kind and sums of their products [N, T]."""
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
