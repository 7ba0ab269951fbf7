"""Metrics of data that come in parts, as sums that add over shards."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.metrics import calibration, scores
from edokit.metrics.evaluation import ITEM_VALUES, METRICS

_BINS = 10


@dataclass(frozen=True, eq=False)
class MetricSums:
    """Sums over items. ``a + b`` are the sums of both shards together."""

    items: int
    """N."""
    totals: Floats
    """[M] sum over items of each metric that is a plain mean: f1, ce, md, bs, jsd."""
    hits: Floats
    """[C] items rightly predicted, by class."""
    members: Floats
    """[C] items predicted plus items labelled, by class."""
    gaps: Floats
    """[B] predicted minus observed, summed over each bin of the calibration curve."""

    @classmethod
    def of(cls, p: Floats, q: Floats, y: Ints) -> MetricSums:
        """Of probabilities p [N, C], soft labels q [N, C] and hard labels y [N], not checked."""
        hits, members = scores.macro_parts(p, y)
        totals = [each(p, q, y).sum() for each in ITEM_VALUES.values()]
        gaps = calibration.gap_parts(p, q, _BINS, "width").sum(axis=0)
        return cls(len(y), np.array(totals), hits.sum(axis=0), members.sum(axis=0), gaps)

    def __add__(self, other: MetricSums) -> MetricSums:
        if not isinstance(other, MetricSums):
            return NotImplemented
        return MetricSums(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )

    def __radd__(self, other: object) -> MetricSums:
        # sum(shards) starts at 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def values(self) -> dict[str, float | None]:
        """The metrics by name, as `evaluate` gives them.

        ``entropy_correlation`` is None: ranks among all items are no sum over shards.
        """
        if self.items == 0:
            raise InputError("a mean needs items, but these sums have none", "add a shard")
        found: dict[str, float | None] = {
            name: float(total / self.items)
            for name, total in zip(ITEM_VALUES, self.totals, strict=True)
        }
        found["macro_f1"] = float(scores.macro_from_parts(self.hits, self.members))
        found["ece"] = float(np.abs(self.gaps).sum() / self.items)
        return {name: found.get(name) for name in METRICS}
