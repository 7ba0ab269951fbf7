"""Methods on parts of the items: every value of an item column, and whether one is clearly worse.

Annotators are more divided on some items than on others, which alone makes the CE higher there. A
slice is therefore called worse only if its CE is also further above the lowest possible one. (The
lowest RPS, the headline metric of ordinal scales, is always 0.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from edokit._errors import InputError, counted, option
from edokit._io.markup import Table
from edokit._names import class_order
from edokit._types import Bools, Floats
from edokit.annotations.core import Annotations
from edokit.annotator_effects import label_shares
from edokit.baselines.scores import CONSTANT, Score, score_methods, signed
from edokit.metrics import METRIC, Interval, floor_items, headline_metric
from edokit.metrics.resampling import Resampling, quantiles, resampled_sums

# Values of a column; of more, each slice has too few items to say anything.
MOST_VALUES = 50
# A slice with fewer items has no intervals: resampled, they would be far too narrow.
FEWEST_ITEMS = 10
MISSING = "(missing)"
AGREEMENT = "agreement"
"""What items are sliced by where they have no such column: how their votes are divided."""
# Divisions of votes that are a slice each; of more, slices go by the share of the largest part.
_MOST_DIVISIONS = 12
# Resamples beyond each end of an interval, so that it is no matter of chance.
_TAIL = 10


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
    against_rest : mapping of str to Interval
        How much ``ce``, ``ce_above_floor`` (``rps`` … on an ordinal scale) and ``f1`` of the first
        method differ from those on all other items; the intervals are corrected for the number of
        slices.
    """

    column: str
    value: str | None
    items: int
    floor: float
    scores: tuple[Score, ...]
    against_rest: Mapping[str, Interval] = field(default_factory=dict)

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
            "against_rest": {metric: asdict(ends) for metric, ends in self.against_rest.items()},
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
    """The methods on each slice; the first of ``scores`` is the one compared with the rest.

    ``losses[name][metric]`` [N] are those of all items.
    """
    masks = [(c, value, mask) for c, parts in slices.items() for value, mask in parts.items()]
    headline, clusters = headline_metric(labels.scale), resampling.clusters
    floor, ours = floor_items(labels.soft_labels, headline, labels.scale), losses[scores[0].name]
    above = ours[headline] - floor
    measures = {headline: ours[headline], f"{headline}_above_floor": above, "f1": ours["f1"]}
    codes = np.arange(len(floor)) if clusters is None else clusters
    sizes = [[len(np.unique(codes[part])) for part in (mask, ~mask)] for _, _, mask in masks]
    tested = [k for k, both_sizes in enumerate(sizes) if min(both_sizes) >= FEWEST_ITEMS]
    # Two slices are one comparison, each the rest of the other; a single one has no rest.
    comparisons = sum({1: 0, 2: 1}.get(len(parts), len(parts)) for parts in slices.values())
    corrected = replace(resampling, level=1 - (1 - resampling.level) / max(comparisons, 1))
    intervals = _against_rest([masks[k][2] for k in tested], measures, corrected)
    against_rest = dict(zip(tested, intervals, strict=False))
    scored = []
    for k, (column, value, mask) in enumerate(masks):
        within = replace(
            resampling,
            clusters=None if clusters is None else np.unique(codes[mask], return_inverse=True)[1],
            samples=resampling.samples if sizes[k][0] >= FEWEST_ITEMS else 0,
        )
        slice_scores = score_methods(
            [Score(score.name, score.about) for score in scores],
            {
                name: {m: v[mask] for m, v in by_metric.items()}
                for name, by_metric in losses.items()
            },
            "uniform",
            within,
            labels.scale,
        )
        floor_mean = float(floor[mask].mean())
        results = (tuple(slice_scores), against_rest.get(k, {}))
        scored.append(Slice(column, value, int(mask.sum()), floor_mean, *results))
    return tuple(scored)


def _against_rest(
    masks: Sequence[Bools], measures: Mapping[str, Floats], resampling: Resampling
) -> list[dict[str, Interval]]:
    """The difference between each slice and the rest, for each measure."""
    if not resampling.samples or not masks:
        return []
    samples = max(resampling.samples, math.ceil(2 * _TAIL / (1 - resampling.level)))
    everybody = np.ones(len(masks[0]), dtype=bool)
    groups = [mask.astype(np.float64) for mask in (*masks, everybody)]
    # By group the number of items, then each measure; of all items at the end.
    columns = [group * values for values in (everybody, *measures.values()) for group in groups]

    def differences(sums: Floats) -> Floats:
        """Sums [B, M] -> [B, measures, slices]."""
        by_group = sums.reshape(len(sums), -1, len(groups))
        inside, outside = by_group[..., :-1], by_group[..., -1:] - by_group[..., :-1]
        means: Floats = inside[:, 1:] / inside[:, :1] - outside[:, 1:] / outside[:, :1]
        return means

    rng = np.random.default_rng(resampling.random_state)
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = resampled_sums(columns, samples, rng, resampling.clusters)[:, :-1]
        resampled = differences(sums)
        measured = differences(np.array([[column.sum() for column in columns]]))[0]

    def interval(k: int, s: int) -> Interval:
        values = resampled[:, k, s]
        ends = quantiles(values[np.isfinite(values)], resampling.level)
        return Interval(float(measured[k, s]), *ends)

    return [
        {metric: interval(k, s) for k, metric in enumerate(measures)} for s in range(len(masks))
    ]


def worst_slice(slices: Sequence[Slice], level: float) -> list[str]:
    """A sentence that names the slice that is clearly worst in the headline metric, if any is."""
    if not slices:
        return []
    metric = slices[0].scores[0].headline
    measures = (metric, f"{metric}_above_floor")
    worse = [
        part
        for part in slices
        # Items are divided by their votes, so that divided ones are worse by construction.
        if part.column != AGREEMENT
        and part.against_rest
        and all((part.against_rest[name].low or 0.0) > 0 for name in measures)
    ]
    if not worse:
        return []
    worst = max(worse, key=lambda part: part.against_rest[metric].estimate or 0.0)
    ends, constant = worst.against_rest[metric], worst.score(CONSTANT)
    constant_text = "" if constant is None else f" (constant {constant.metrics[metric]:.4f})"
    ours = worst.scores[0].metrics[metric]
    reason = ", and not only because annotators are more divided there"
    return [
        f"Worst slice in {METRIC[metric].short}: {worst.name}"
        f" ({counted(worst.items, 'item')}) has {ours:.4f}"
        f"{constant_text} against {ours - (ends.estimate or 0.0):.4f} on the rest"
        f" (difference {signed(ends.low or 0.0)} to {signed(ends.high or 0.0)}, {level:.0%}"
        f" corrected for the number of slices){reason if metric == 'ce' else ''}."
    ]


def slice_table(slices: Sequence[Slice], level: float, subject: str = "") -> Table:
    """Items, F1 and headline metric (CE) of each slice with its interval, uniform and constant."""
    metric = slices[0].scores[0].headline
    name, records = METRIC[metric].short, []
    for part in slices:
        ours, ends = part.scores[0], part.scores[0].intervals.get(metric)
        interval_text = None if ends is None else f"{ends[0]:.3f}–{ends[1]:.3f}".replace("0.", ".")
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
        f"F1 and {name} of {subject or slices[0].scores[0].name}; beside it the {name} of the"
        " uniform mean, of the constant answer, and the lowest possible on these items."
    )
    return Table.of("Slices", records, [note])
