"""Methods on parts of the items: every value of an item column.

Annotators are more divided on some items than on others, which alone makes the CE higher there: so
every slice has the lowest possible value beside it. (That of the RPS is always 0.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from edokit._errors import InputError, counted, option
from edokit._names import class_order
from edokit._types import Bools, Floats
from edokit.analysis.scores.result import UNIFORM, Score, Slice
from edokit.analysis.scores.statistics import score_methods
from edokit.annotations.core import Annotations
from edokit.annotator_effects import label_shares
from edokit.metrics import headline_metric
from edokit.metrics.compute import floor_items
from edokit.metrics.mean_intervals import FEWEST_UNITS
from edokit.metrics.resampling import Resampling

# With more values, each slice of a column has too few items.
MOST_VALUES = 50
# Intervals are computed for slices with at least this many items.
FEWEST_ITEMS = FEWEST_UNITS
# Where no column has this name, it asks for slices by how the votes of an item are divided.
AGREEMENT = "agreement"
# With more divisions of votes, items are sliced by the share of the most frequent answer instead.
_MOST_DIVISIONS = 12

# The items [N] with each value of a column; None for those without a value.
SliceItems = dict[str | None, Bools]


def find_slices(annotations: Annotations, by: str | Sequence[str] | None) -> dict[str, SliceItems]:
    """The items [N] with each value of each column: ``{column: {value: mask}}``."""
    columns: Sequence[str] = ()
    if isinstance(by, str):
        columns = [by]
    elif by is not None:
        columns = by
    slices: dict[str, SliceItems] = {}
    for column in columns:
        if column == AGREEMENT and column not in annotations.item_columns:
            slices[column] = agreement_strata(annotations)
        else:
            slices[column] = _column_slices(annotations, column)
    return slices


def _column_slices(annotations: Annotations, column: str) -> SliceItems:
    """The items [N] with each value of a column."""
    values = annotations.item_column(column, parameter="by")
    distinct = class_order(set(values) - {""})
    if len(distinct) > MOST_VALUES:
        raise InputError(
            f"column {column!r} has {len(distinct)} different values on"
            f" {counted(len(values), 'item')}; slices take at most {MOST_VALUES}",
            f"choose a column with fewer values for {option('by')}, or group them in another"
            " column",
            code="too-many-values",
        )
    parts: SliceItems = {value: values == value for value in distinct}
    if (values == "").any():
        parts[None] = values == ""
    return parts


def agreement_strata(annotations: Annotations) -> SliceItems:
    """The items [N] of each division of votes, such as ``3:0`` and ``2:1``, agreement first.

    With more than twelve divisions: by the share of the most frequent answer.
    """
    shares = label_shares(annotations, len(annotations.classes))
    _, answers = np.unique(shares, axis=0, return_inverse=True)
    votes = pd.DataFrame({"item": annotations.item_codes, "answer": answers.reshape(-1)})
    # How many annotators of an item gave each answer, item by item.
    counts = votes.groupby(["item", "answer"]).size().groupby("item")
    sizes = counts.sum().to_numpy()
    top_shares = counts.max().to_numpy() / sizes
    names = counts.agg(_division_name).to_numpy(dtype=object)
    if len(set(names)) > _MOST_DIVISIONS:
        names = np.full(len(names), "≤ 50%", dtype=object)
        names[top_shares > 0.5] = "> 50%"
        names[top_shares >= 0.75] = "≥ 75%"
        names[top_shares == 1] = "all agree"
    # By agreement, and of the same agreement the items with few votes first.
    order = np.lexsort([sizes, -top_shares])
    return {str(name): names == name for name in dict.fromkeys(names[order])}


def _division_name(counts: pd.Series[int]) -> str:
    """``2:1`` for the votes 1 and 2, and ``3:0`` for three votes for the same answer."""
    votes = sorted(counts, reverse=True)
    if len(votes) == 1:
        votes.append(0)
    return ":".join(map(str, votes))


def score_slices(
    slices: Mapping[str, SliceItems],
    scores: Sequence[Score],
    losses: Mapping[str, Mapping[str, Floats]],
    labels: Annotations,
    resampling: Resampling,
) -> tuple[Slice, ...]:
    """The methods on each slice, from their losses on all items, ``losses[name][metric]`` [N]."""
    scale = labels.scale
    floor = floor_items(labels.soft_labels, headline_metric(scale), scale)
    scored: list[Slice] = []
    for column, parts in slices.items():
        for value, mask in parts.items():
            slice_scores = score_methods(
                [Score(score.name, score.description) for score in scores],
                _slice_losses(losses, mask),
                UNIFORM,
                _slice_resampling(resampling, mask),
                scale,
            )
            floor_mean = float(floor[mask].mean())
            scored.append(Slice(column, value, int(mask.sum()), floor_mean, tuple(slice_scores)))
    return tuple(scored)


def _slice_losses(
    losses: Mapping[str, Mapping[str, Floats]], mask: Bools
) -> dict[str, dict[str, Floats]]:
    """The losses of the items of a slice, by method and metric."""
    parts: dict[str, dict[str, Floats]] = {}
    for name, by_metric in losses.items():
        parts[name] = {metric: values[mask] for metric, values in by_metric.items()}
    return parts


def _slice_resampling(resampling: Resampling, mask: Bools) -> Resampling:
    """The same with the clusters of the items of a slice, numbered from 0."""
    if resampling.clusters is None:
        return resampling
    clusters = np.unique(resampling.clusters[mask], return_inverse=True)[1]
    return replace(resampling, clusters=clusters)
