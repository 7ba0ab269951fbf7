"""Structure or noise? A permutation test: labels are permuted within their items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from edokit._progress import Progress, no_progress
from edokit._types import Floats, Ints
from edokit.analysis.diagnose.clusters import Design, Structure, find_structure
from edokit.analysis.diagnose.vectors import LabelVectors, finite, products
from edokit.analysis.sequential import FIRST_LOOK, LEVEL, RISK, Verdict, look_sizes, p_interval

_OPEN: Verdict = "can't tell"
# P-values of permutations of all labels; ``views`` is tested beside permutations that keep
# strictness.
_PLAIN = ("annotator", "group_item", "any")
# Sweeps in which strictness is estimated, so that the labels forget where they came from.
_LEARNING_SWEEPS = 40
# Keeps annotators with few labels near the others; with this value their bias after permutation is
# about that of the data, in full panels and in sparse crowds.
_PRIOR = 0.25
# Sweeps between two permutations that are used.
_SWEEPS_BETWEEN = 6


def permutation_test(
    vectors: LabelVectors,
    design: Design,
    structure: Structure,
    permutations: int,
    random_state: int,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Test whether labels are more structured than the same labels permuted within items.

    Bias and groups are estimated anew for every permutation. The result has, as plain values, the
    statistic of the data, its p-value and the statistics after permutation for ``annotator``
    (do annotators differ in their base rates?), ``group_item`` (do groups of annotators see items
    differently?) and ``views`` (the same, beyond what strictness alone explains), and ``p`` of the
    first two together; None where it can't be tested. Permutations stop once it is clear for every
    p-value on which side of 5 % it is; ``verdict`` is "yes", "no", or "can't tell" if it is not
    clear after the largest number of permutations.
    """
    shuffles = np.random.default_rng([random_state, 3])
    with_strictness = strict_permutations(vectors, np.random.default_rng([random_state, 4]))
    # The data come first, then their permutations.
    plain_statistics = [_statistics(structure)]
    strict_statistics = [_statistics(structure)]
    sizes = look_sizes(permutations)
    risk = RISK / len(sizes)
    is_fixed = permutations < FIRST_LOOK
    verdicts: dict[str, Verdict] = {}

    def report() -> None:
        done = len(plain_statistics) + len(strict_statistics) - 2
        progress(done, 2 * permutations, "permuting labels")

    # Many small products: threads only wait for each other.
    with threadpool_limits(1):
        for size in sizes:
            plain_is_open = any(verdicts.get(name, _OPEN) == _OPEN for name in _PLAIN)
            strict_is_open = verdicts.get("views", _OPEN) == _OPEN
            while plain_is_open and len(plain_statistics) <= size:
                permuted = vectors.permuted(shuffles)
                plain_statistics.append(_statistics(find_structure(permuted, design)))
                report()
            while strict_is_open and len(strict_statistics) <= size:
                permuted = next(with_strictness)
                strict_statistics.append(_statistics(find_structure(permuted, design)))
                report()
            columns = {
                "annotator": np.array([bias for bias, _ in plain_statistics]),
                "group_item": np.array([score for _, score in plain_statistics]),
                "views": np.array([score for _, score in strict_statistics]),
            }
            p_of_tables = {name: _p_values(column) for name, column in columns.items()}
            p_values = {name: float(p[0]) for name, p in p_of_tables.items()}
            p_values["any"] = _combined_p(p_of_tables["annotator"], p_of_tables["group_item"])
            for name, p in p_values.items():
                n_permutations = len(plain_statistics) - 1
                if name == "views":
                    n_permutations = len(strict_statistics) - 1
                verdicts[name] = _verdict(p, n_permutations, risk, is_fixed)
            if _OPEN not in verdicts.values():
                break
    progress(2 * permutations, 2 * permutations, "permuting labels")
    result: dict[str, Any] = {"permutations": len(plain_statistics) - 1, "seed": random_state}
    for name, column in columns.items():
        is_known = np.isfinite(p_values[name])
        result[name] = {
            "statistic": finite(column[0]),
            "p": finite(p_values[name]),
            "verdict": verdicts[name] if is_known else None,
            "null": [finite(value) for value in column[1:]],
        }
    result["p"] = finite(p_values["any"])
    result["verdict"] = verdicts["any"] if result["p"] is not None else None
    result["structured"] = verdicts["any"] == "yes"
    return result


def _combined_p(annotator: Floats, group_item: Floats) -> float:
    """The p-value of two tests together: how often the smaller p-value is that small by chance."""
    defined = [p for p in (annotator, group_item) if np.isfinite(p[0])]
    if not defined:
        return float("nan")
    least = np.min(defined, axis=0)
    return float(np.mean(least <= least[0] + 1e-12))


def _verdict(p: float, permutations: int, risk: float, is_fixed: bool) -> Verdict:
    """Whether a p-value is at most 5 %, as far as these permutations can tell.

    With a fixed number of permutations, below the first look, the estimate decides.
    """
    if is_fixed or not np.isfinite(p):
        return "yes" if p <= LEVEL else "no"
    # The data themselves are among the tables that reach the statistic.
    exceeding = np.array([round(p * (permutations + 1)) - 1])
    low, high = p_interval(exceeding, np.array([permutations]), risk)
    if high[0] <= LEVEL:
        return "yes"
    return "no" if low[0] > LEVEL else _OPEN


def _statistics(structure: Structure) -> tuple[float, float]:
    """The variance of biases, and how clearly groups are separated; NaN where unknown."""
    score = structure.groups.score
    return structure.bias_variance, score if np.isfinite(score) else float("nan")


def _p_values(column: Floats) -> Floats:
    """The p-value of each statistic in a column, the share of them that reach it.

    NaN where all are equal. Unknown statistics count as the lowest.
    """
    lowest = np.where(np.isnan(column), -np.inf, column)
    if not np.isfinite(lowest[0]) or np.all(lowest == lowest[0]):
        return np.full(len(column), np.nan)
    ordered = np.sort(lowest)
    reached: Floats = (len(column) - np.searchsorted(ordered, lowest - 1e-12)) / len(column)
    return reached


def strict_permutations(vectors: LabelVectors, rng: np.random.Generator) -> Iterator[LabelVectors]:
    """Endless permutations in which annotators differ in strictness and in nothing else.

    Two annotators exchange their labels of an item in proportion to how well these fit the
    strictness of each (a Rasch model given the labels of each item; Metropolis' rule).
    """
    # Only items with different labels have something to exchange.
    contested = vectors.scatter > 1e-12
    rows = np.flatnonzero(contested[vectors.item])
    labels = vectors.take(contested)
    target = labels.sums_by_annotator(labels.values)
    spread = labels.means_by_item(labels.deviations**2)
    precision = labels.sums_by_annotator(spread[labels.item]) + _PRIOR
    strictness = np.zeros_like(target)
    values = labels.values
    # In each sweep, labels are shuffled within items: the first of an item then meets the second,
    # the third the fourth, and so on. A label without a partner stays.
    row = np.arange(len(labels.item))
    last_row = np.cumsum(labels.per_item)[labels.item] - 1
    position = row - (last_row + 1 - labels.per_item[labels.item])
    starts = np.flatnonzero((position % 2 == 0) & (row < last_row))
    for sweep in range(_LEARNING_SWEEPS):
        values = _sweep(labels, starts, values, strictness, rng)
        gap = target - labels.sums_by_annotator(values) - _PRIOR * strictness
        strictness = strictness + gap / precision / (1.0 + sweep / 8.0)
    while True:
        for _ in range(_SWEEPS_BETWEEN):
            values = _sweep(labels, starts, values, strictness, rng)
        table = vectors.values.copy()
        table[rows] = values
        yield replace(vectors, values=table)


def _sweep(
    vectors: LabelVectors,
    starts: Ints,
    values: Floats,
    strictness: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Pair the annotators of each item at random; each pair may exchange its labels.

    ``starts`` are the positions of the first labels of the pairs.
    """
    order = np.argsort(vectors.item + rng.random(len(vectors.item)), kind="stable")
    label = order[starts]
    partner = order[starts + 1]
    difference = strictness[vectors.annotator[label]] - strictness[vectors.annotator[partner]]
    gain = products(values[partner] - values[label], difference)
    is_accepted = np.log(np.maximum(rng.random(len(gain)), 1e-300)) < gain
    label = label[is_accepted]
    partner = partner[is_accepted]
    exchanged = values.copy()
    exchanged[label] = values[partner]
    exchanged[partner] = values[label]
    return exchanged
