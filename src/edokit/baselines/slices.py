"""Methods on parts of the items: every value of an item column.

Annotators are more divided on some items than on others, which alone makes the CE higher there: so
every slice has the lowest possible value beside it. (That of the RPS is always 0.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from edokit._errors import InputError, counted, option
from edokit._io.markup import Table
from edokit._names import class_order
from edokit._types import Bools, Floats
from edokit.annotations.core import Annotations
from edokit.annotator_effects import label_shares
from edokit.baselines.scores import CONSTANT, Score, score_methods
from edokit.metrics import METRIC, headline_metric
from edokit.metrics.compute import floor_items
from edokit.metrics.resampling import Resampling

# Values of a column; of more, each slice has too few items to say anything.
MOST_VALUES = 50
# A slice with fewer items has no intervals: resampled, they would be far too narrow.
FEWEST_ITEMS = 10
MISSING = "(missing)"
AGREEMENT = "agreement"
"""What items are sliced by where they have no such column: how their votes are divided."""
# Divisions of votes that are a slice each; of more, slices go by the share of the largest part.
_MOST_DIVISIONS = 12


@dataclass(frozen=True)
class Slice:
    """The methods on the items with one value of a column.

    Attributes
    ----------
    column : str
    value : str or None
        None where items have no value.
    items : int
    floor : float
        The lowest possible value of the headline metric on these items.
    scores : tuple of Score
        One per method, with intervals and tests where there are enough items.
    """

    column: str
    value: str | None
    items: int
    floor: float
    scores: tuple[Score, ...]

    @property
    def name(self) -> str:
        """``lang: en``."""
        return f"{self.column}: {MISSING if self.value is None else self.value}"

    def score(self, method: str) -> Score | None:
        """The scores of one method."""
        return next((score for score in self.scores if score.name == method), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "column": self.column,
            "value": self.value,
            "items": self.items,
            f"{self.scores[0].headline}_floor": self.floor,
            "methods": [score.on_items() for score in self.scores],
        }


def find_slices(annotations: Annotations, by: str | Sequence[str] | None) -> dict[str, Any]:
    """The items [N] of each value of each column: ``{column: {value: mask}}``.

    None stands for items without a value. ``agreement`` is how the votes are divided, unless a
    column has this name.
    """
    slices: dict[str, dict[str | None, Bools]] = {}
    parts: dict[str | None, Bools]
    for column in [by] if isinstance(by, str) else by or ():
        if column == AGREEMENT and column not in annotations.item_columns:
            slices[column] = agreement_strata(annotations)
            continue
        values = annotations.item_column(column, parameter="by")
        distinct = class_order(set(values) - {""})
        if len(distinct) > MOST_VALUES:
            raise InputError(
                f"column {column!r} has {len(distinct)} different values on"
                f" {counted(len(values), 'item')}; slices take at most {MOST_VALUES}",
                f"choose a column with fewer values for {option('by')}, or group them in another"
                " column",
            )
        parts = {value: values == value for value in distinct}
        if (values == "").any():
            parts[None] = values == ""
        slices[column] = parts
    return slices


def agreement_strata(annotations: Annotations) -> dict[str | None, Bools]:
    """The items [N] of each division of votes, such as ``3:0`` and ``2:1``, agreement first.

    With more than twelve divisions: by the share of the answer that was given most often.
    """
    shares = label_shares(annotations, len(annotations.classes))
    _, answers = np.unique(shares, axis=0, return_inverse=True)
    votes = pd.DataFrame({"item": annotations.item_codes, "answer": answers.reshape(-1)})
    counts = votes.groupby(["item", "answer"]).size().groupby("item")
    largest = (counts.max() / counts.sum()).to_numpy()
    divided = counts.agg(lambda item: ":".join(map(str, sorted(item, reverse=True))))
    names = np.array([name if ":" in name else f"{name}:0" for name in divided], dtype=object)
    if len(set(names)) > _MOST_DIVISIONS:
        above = np.array(["all agree", "≥ 75%", "> 50%", "≤ 50%"], dtype=object)
        names = above[np.select([largest == 1, largest >= 0.75, largest > 0.5], [0, 1, 2], 3)]
    size = counts.sum().to_numpy()
    order = np.lexsort([size, -largest])
    return {str(name): names == name for name in dict.fromkeys(names[order])}


def score_slices(
    slices: Mapping[str, Mapping[str | None, Bools]],
    scores: Sequence[Score],
    losses: Mapping[str, Mapping[str, Floats]],
    labels: Annotations,
    resampling: Resampling,
) -> tuple[Slice, ...]:
    """The methods on each slice, from their losses on all items, ``losses[name][metric]`` [N]."""
    headline, clusters = headline_metric(labels.scale), resampling.clusters
    floor = floor_items(labels.soft_labels, headline, labels.scale)
    codes = np.arange(len(floor)) if clusters is None else clusters
    scored = []
    for column, parts in slices.items():
        for value, mask in parts.items():
            distinct, within = np.unique(codes[mask], return_inverse=True)
            slice_scores = score_methods(
                [Score(score.name, score.about) for score in scores],
                {
                    name: {m: v[mask] for m, v in by_metric.items()}
                    for name, by_metric in losses.items()
                },
                "uniform",
                replace(
                    resampling,
                    clusters=None if clusters is None else within,
                    samples=resampling.samples if len(distinct) >= FEWEST_ITEMS else 0,
                ),
                labels.scale,
            )
            floor_mean = float(floor[mask].mean())
            scored.append(Slice(column, value, int(mask.sum()), floor_mean, tuple(slice_scores)))
    return tuple(scored)


def slice_table(slices: Sequence[Slice], level: float, subject: str) -> Table:
    """Items, F1 and headline metric (CE) of each slice with its interval, uniform and constant."""
    metric = slices[0].scores[0].headline
    name, records = METRIC[metric].short, []
    for part in slices:
        ours, ends = part.scores[0], part.scores[0].intervals.get(metric)
        interval_text = ends and "–".join(f"{end:.3f}".removeprefix("0") for end in ends)
        rivals = {rival: part.score(rival) for rival in ("uniform", CONSTANT)}
        records.append(
            {
                "slice": part.name,
                "items": part.items,
                METRIC["f1"].label: ours.f1,
                METRIC[metric].label: ours.metrics[metric],
                f"{level:.0%}": interval_text,
                **{rival: score and score.metrics[metric] for rival, score in rivals.items()},
                "lowest": part.floor,
            }
        )
    note = (
        f"F1 and {name} of {subject}; beside it the {name} of the uniform mean, of the constant"
        " answer, and the lowest possible on these items."
    )
    return Table.of("Slices", records, [note])
