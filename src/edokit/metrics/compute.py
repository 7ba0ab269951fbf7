"""All metrics of one set of predictions, at once or as sums over shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, one_of
from edokit._types import Floats, Ints
from edokit.metrics import _checks, calibration, scores
from edokit.metrics.scores import spearman

METRICS = ("f1", "macro_f1", "ce", "md", "bs", "jsd", "entropy_correlation", "ece")
"""The names of the metrics, in the order of every table."""

# Metrics that are plain means of one value per item.
ITEM_VALUES: dict[str, Callable[[Floats, Floats, Ints], Floats]] = {
    "f1": lambda p, q, y: scores.right(p, y),
    "ce": lambda p, q, y: scores.cross_entropy(p, q),
    "md": lambda p, q, y: scores.manhattan(p, q),
    "bs": lambda p, q, y: scores.brier(p, q),
    "jsd": lambda p, q, y: scores.jensen_shannon(p, q),
}


def compute_metrics(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    metrics: Iterable[str] = METRICS,
    bins: int = 10,
    binning: str = "width",
) -> dict[str, float | None]:
    """The metrics of predicted probabilities p [N, C] by name.

    q are soft labels [N, C], y hard labels [N] (class codes). ``entropy_correlation`` is None
    where it is undefined. ``bins`` and ``binning`` are those of `reliability_curve`.
    """
    names = checked_names(metrics)
    predicted, soft, hard = _checks.triple(p, q, y)
    return values(names, predicted, soft, hard, *calibration.checked_bins(bins, binning))


def values(
    names: Iterable[str], p: Floats, q: Floats, y: Ints, bins: int, binning: str
) -> dict[str, float | None]:
    """`compute_metrics` on checked arguments."""
    found: dict[str, float | None] = {}
    for name in names:
        if name == "macro_f1":
            hits, members = scores.macro_parts(p, y)
            found[name] = float(scores.macro_from_parts(hits.sum(axis=0), members.sum(axis=0)))
        elif name == "entropy_correlation":
            found[name] = spearman(scores.rounded_entropy(p), scores.rounded_entropy(q))
        elif name == "ece":
            found[name] = calibration.curve(p, q, bins, binning).ece
        else:
            found[name] = float(np.mean(ITEM_VALUES[name](p, q, y)))
    return found


def checked_names(metrics: Iterable[str]) -> list[str]:
    """The names of metrics, each known."""
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not names:
        raise InputError(
            "metrics must name at least one metric, but it is empty", 'choose metrics=["ce"]'
        )
    for name in names:
        one_of("metrics", name, METRICS)
    return names


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
        """The metrics by name, as `compute_metrics` gives them.

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
