"""The registry of metrics: their names, formulas and answer scales.

A metric is one entry of `METRIC`. Evaluations, comparisons, the page and the table in
``docs/metrics.md`` use only these entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, one_of
from edokit._types import Floats, HardLabels
from edokit.metrics.calibration import gap_parts
from edokit.metrics.formulas import (
    absolute_distance,
    brier,
    cross_entropy,
    information_contrast,
    is_correct,
    jensen_shannon,
    manhattan,
    overlap,
    ranked_probability,
    soft_f1_parts,
    wasserstein,
)
from edokit.scales import NOMINAL, Scale, ScaleKind

# Per-item contributions of p, q and y on a scale: one value [N], or several [N, m].
Formula = Callable[[Floats, Floats, HardLabels, Scale], Floats]
# A formula for a given scale, as a function of p, q and y.
ItemFormula = Callable[[Floats, Floats, HardLabels], Floats]
# The metric from the sums of the contributions, [m] or [..., m], and the number of items.
Combine = Callable[[Floats, "int | Floats"], npt.ArrayLike]

ALL_SCALES: tuple[ScaleKind, ...] = ("nominal", "ordinal", "multi-label")


def mean(sums: Floats, items: int | Floats) -> Floats:
    """The mean over items."""
    return sums / items


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric: its names, its formula, its direction and its scales.

    Parameters
    ----------
    name : str
        The key in results and JSON.
    short : str
        The name in the heading of a column.
    title : str
        The name in full.
    help : str
        What it measures, in a few words.
    formula : callable or None
        Value of each item [N] from p, q, y and the scale, or several parts [N, m]; None for
        a metric that can't be computed from sums over items.
    relative : callable or None, default=None
        If ``formula`` is None, the value of each item [N] relative to all items, NaN if undefined;
        the metric is its mean. It can't be computed for a folder of shards.
    combine : callable, default: the mean over items
        The metric from the sums of the parts and the number of items.
    direction : {"lower", "higher"}, default="lower"
        Which values are better.
    scales : tuple of {"nominal", "ordinal", "multi-label"}, default: all
        The answer scales for which it is defined.
    main : tuple of {"nominal", "ordinal", "multi-label"}, default=()
        The answer scales on which it is a main metric, which comparisons and pages show for every
        method. A main metric is a mean over items.
    hard : bool, default=False
        Whether it depends on hard labels only; the best answer is then y, else q.
    best : str, default=""
        The best possible value in words; empty for 0, or 1 if higher values are better.

    Examples
    --------
    >>> from edokit.metrics import METRIC
    >>> METRIC["ce"].label, METRIC["ce"].scales
    ('CE ↓', ('nominal', 'ordinal', 'multi-label'))
    """

    name: str
    short: str
    title: str
    help: str
    formula: Formula | None
    relative: Formula | None = None
    combine: Combine = mean
    direction: Literal["lower", "higher"] = "lower"
    scales: tuple[ScaleKind, ...] = ALL_SCALES
    main: tuple[ScaleKind, ...] = ()
    hard: bool = False
    best: str = ""

    def __post_init__(self) -> None:
        one_of("direction", self.direction, ("lower", "higher"))
        for kind in (*self.scales, *self.main):
            one_of("scales", kind, ALL_SCALES)
        if not self.name.isidentifier():
            raise InputError(
                f"the name of a metric is {self.name!r}",
                "use letters, digits and underscores, as in macro_f1",
                code="invalid-name",
            )
        if not set(self.main) <= set(self.scales):
            raise InputError(
                f"the metric {self.name!r} is a main metric on scales for which it is not defined",
                "name them in scales, too",
                code="invalid-plugin",
            )
        if self.main and not self.is_mean:
            raise InputError(
                f"the metric {self.name!r} is not a mean over items and can't be a main metric",
                "leave out main, or give a formula with one value per item",
                code="invalid-plugin",
            )

    @property
    def higher(self) -> bool:
        """Whether higher values are better."""
        return self.direction == "higher"

    @property
    def arrow(self) -> str:
        """The direction of better values."""
        if self.higher:
            return "↑"
        return "↓"

    @property
    def label(self) -> str:
        """The short name with the direction, such as ``CE ↓``."""
        return f"{self.short} {self.arrow}"

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of one value per item."""
        return self.formula is not None and self.combine is mean


def by_row(values: ItemFormula) -> Formula:
    """A formula of distributions [n, C]; for multi-label data, the mean over an item's labels."""

    def per_item(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
        rows = values(scale.rows(p), scale.rows(q), scale.row_codes(y))
        return scale.per_item(rows, len(p))

    return per_item


def by_position(values: Callable[[Floats, Floats, Floats], Floats]) -> Formula:
    """A formula of distributions and of the positions [C] of the classes on an ordinal scale."""

    def per_item(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
        return values(p, q, np.array(scale.positions))

    return per_item


def _exact_match(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
    return np.asarray((scale.hard(p) == y).all(axis=1).astype(np.float64))


def _label_error(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
    return np.asarray(np.abs(scale.hard(p) - q).mean(axis=1))


def _macro_parts(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
    """Whether each class is correctly predicted, and in how many of ŷ and y it occurs [N, 2C]."""
    predicted = scale.indicators(scale.hard(p), p.shape[1])
    hard = scale.indicators(y, p.shape[1])
    return np.hstack([predicted & hard, predicted.astype(np.float64) + hard])


def _macro_f1(sums: Floats, items: int | Floats) -> Floats:
    """The mean over the classes that occur; 1 if all label sets are empty and so predicted."""
    hits, occurrences = np.split(sums, 2, axis=-1)
    count = (occurrences > 0).sum(axis=-1)
    by_class = 2 * hits / np.maximum(occurrences, 1.0)
    return np.where(count > 0, by_class.sum(axis=-1) / np.maximum(count, 1), 1.0)


def _soft_f1(sums: Floats, items: int | Floats) -> Floats:
    """Twice the intersection over the total size; 1 if both are empty."""
    intersection = sums[..., 0]
    size = sums[..., 1]
    return np.where(size > 0, 2 * intersection / np.where(size > 0, size, 1.0), 1.0)


def _calibration_error(gaps: Floats, items: int | Floats) -> Floats:
    return np.asarray(np.abs(gaps).sum(axis=-1) / items)


_METRICS = (
    Metric(
        name="f1",
        short="F1",
        title="accuracy (micro-F1)",
        help="whether the likeliest class is the hard label; for multi-label data, the share of"
        " correct labels",
        formula=by_row(lambda p, q, y: is_correct(p, y)),
        direction="higher",
        main=ALL_SCALES,
        hard=True,
    ),
    Metric(
        name="macro_f1",
        short="macro-F1",
        title="macro-F1",
        help="the mean of the F1 of each class or label",
        formula=_macro_parts,
        combine=_macro_f1,
        direction="higher",
        hard=True,
    ),
    Metric(
        name="exact_match",
        short="exact",
        title="exact match",
        help="whether the set of labels above one half is the hard one",
        formula=_exact_match,
        direction="higher",
        scales=("multi-label",),
        main=("multi-label",),
        hard=True,
    ),
    Metric(
        name="label_error",
        short="error",
        title="label error",
        help="share of an annotator's labels that the labels above one half get wrong",
        formula=_label_error,
        scales=("multi-label",),
        best="that of the labels that most annotators of an item chose",
    ),
    Metric(
        name="ce",
        short="CE",
        title="cross-entropy",
        help="log loss against the soft labels",
        formula=by_row(lambda p, q, y: cross_entropy(p, q)),
        main=ALL_SCALES,
        best="entropy of the soft labels",
    ),
    Metric(
        name="rps",
        short="RPS",
        title="ranked probability score",
        help="squared distance of cumulative distributions; proper",
        formula=by_position(ranked_probability),
        scales=("ordinal",),
        main=("ordinal",),
    ),
    Metric(
        name="w1",
        short="W1",
        title="Wasserstein distance",
        help="absolute distance of cumulative distributions, in units of the scale",
        formula=by_position(wasserstein),
        scales=("ordinal",),
        main=("ordinal",),
    ),
    Metric(
        name="mad",
        short="MAD",
        title="mean absolute distance",
        help="distance between the predicted median and each annotator's answer",
        formula=by_position(absolute_distance),
        scales=("ordinal",),
        best="that of the annotators' median",
    ),
    Metric(
        name="md",
        short="MD",
        title="Manhattan distance",
        help="L1 distance to the soft labels",
        formula=by_row(lambda p, q, y: manhattan(p, q)),
        main=("nominal", "multi-label"),
    ),
    Metric(
        name="bs",
        short="BS",
        title="Brier score",
        help="squared distance to the soft labels",
        formula=by_row(lambda p, q, y: brier(p, q)),
        main=("nominal",),
    ),
    Metric(
        name="jsd",
        short="JSD",
        title="Jensen–Shannon divergence",
        help="divergence from the soft labels, in nats",
        formula=by_row(lambda p, q, y: jensen_shannon(p, q)),
    ),
    Metric(
        name="soft_accuracy",
        short="soft acc",
        title="soft accuracy",
        help="how much of the probability is where the soft labels have it, Σ min(p, q); 1 − MD/2",
        formula=by_row(lambda p, q, y: overlap(p, q)),
        direction="higher",
        scales=("nominal", "ordinal"),
    ),
    Metric(
        name="soft_f1",
        short="soft F1",
        title="soft micro-F1",
        help="2 Σ min(p, q) / Σ (p + q) over all items and labels; of classes the soft accuracy",
        formula=lambda p, q, y, scale: soft_f1_parts(p, q),
        combine=_soft_f1,
        direction="higher",
    ),
    Metric(
        name="icm_soft",
        short="ICM",
        title="ICM-Soft",
        help="information that answers and soft labels share less what is in one alone, in bits",
        formula=None,
        relative=lambda p, q, y, scale: information_contrast(p, q),
        direction="higher",
        scales=("nominal", "multi-label"),
        best="information of the soft labels",
    ),
    Metric(
        name="entropy_correlation",
        short="ρ(H)",
        title="entropy correlation",
        help="rank correlation of the entropies of answers and soft labels",
        formula=None,
        direction="higher",
    ),
    Metric(
        name="ece",
        short="ECE",
        title="calibration error to shares",
        help="difference between probabilities and shares of annotators, in ten bins",
        formula=gap_parts,
        combine=_calibration_error,
    ),
)
METRIC: dict[str, Metric] = {metric.name: metric for metric in _METRICS}
"""All metrics by name, in the order of every table."""


def register_metric(metric: Metric) -> Metric:
    """Add a metric to the registry.

    `edokit.evaluate` then computes it on its scales; on those where it is a main metric,
    `edokit.compare` and the page show it.

    Parameters
    ----------
    metric : Metric
        A metric with a formula of checked arrays: a mean over items, or with parts that are summed.

    Returns
    -------
    Metric

    Raises
    ------
    InputError
        If another metric has this name, or the formula is missing.

    Examples
    --------
    >>> from edokit.metrics import METRIC, register_metric
    >>> register_metric(METRIC["ce"])
    Traceback (most recent call last):
        ...
    edokit._errors.InputError: the metric name 'ce' is taken; choose another name
    """
    if metric.name in METRIC:
        raise InputError(
            f"the metric name {metric.name!r} is taken", "choose another name", code="taken-name"
        )
    if metric.formula is None:
        raise InputError(
            f"the metric {metric.name!r} needs a formula", "give it one", code="invalid-plugin"
        )
    METRIC[metric.name] = metric
    return metric


def metrics_of(scale: Scale = NOMINAL) -> tuple[str, ...]:
    """Return the names of all metrics of an answer scale, in the order of every table.

    Examples
    --------
    >>> metrics_of(Scale("ordinal", (1, 2, 3)))[:6]
    ('f1', 'macro_f1', 'ce', 'rps', 'w1', 'mad')
    """
    return tuple(name for name, metric in METRIC.items() if scale.kind in metric.scales)


def main_metrics(scale: Scale = NOMINAL) -> tuple[str, ...]:
    """Return the metrics of comparisons on an answer scale.

    F1 comes first, then the metrics of distributions, then further ones of hard labels.

    Examples
    --------
    >>> main_metrics()
    ('f1', 'ce', 'md', 'bs')
    """
    leading: list[str] = []
    of_hard_labels: list[str] = []
    for name, metric in METRIC.items():
        if scale.kind not in metric.main:
            continue
        if metric.hard and name != "f1":
            of_hard_labels.append(name)
        else:
            leading.append(name)
    return (*leading, *of_hard_labels)


def search_metrics(scale: Scale = NOMINAL) -> tuple[str, ...]:
    """Return the objectives of a search on an answer scale: F1, the headline metric, a distance.

    Examples
    --------
    >>> search_metrics(Scale("ordinal", (1, 2, 3)))
    ('f1', 'rps', 'w1')
    """
    distance = "md"
    if scale.kind == "ordinal":
        distance = "w1"
    return ("f1", headline_metric(scale), distance)


def headline_metric(scale: Scale = NOMINAL) -> str:
    """Return the metric that ranks methods on an answer scale: proper, and lower is better.

    Examples
    --------
    >>> headline_metric(), headline_metric(Scale("ordinal", (1, 2, 3)))
    ('ce', 'rps')
    """
    if scale.kind == "ordinal":
        return "rps"
    return "ce"


# The metrics of the paper's tables.
MAIN_METRICS = main_metrics()


def item_values(scale: Scale = NOMINAL) -> dict[str, ItemFormula]:
    """Return the metrics that are means of one value per item, as functions of p, q and y.

    Returns
    -------
    dict of str to callable
        Functions of checked arrays p, q and y that return an array [N].

    Examples
    --------
    >>> import numpy as np
    >>> sets = Scale("multi-label")
    >>> p, q = np.array([[0.9, 0.2]]), np.array([[1.0, 0.5]])
    >>> item_values(sets)["md"](p, q, sets.hard(q)).round(2)
    array([0.4])
    """
    formulas: dict[str, ItemFormula] = {}
    for name in metrics_of(scale):
        formula = METRIC[name].formula
        if formula is not None and METRIC[name].is_mean:
            formulas[name] = _on_scale(formula, scale)
    return formulas


def _on_scale(formula: Formula, scale: Scale) -> ItemFormula:
    def values(p: Floats, q: Floats, y: HardLabels) -> Floats:
        return formula(p, q, y, scale)

    return values


def checked_names(metrics: Iterable[str] | None, scale: Scale = NOMINAL) -> list[str]:
    """The names of metrics; names that are unknown on this scale are refused."""
    if metrics is None:
        return list(metrics_of(scale))
    if isinstance(metrics, str):
        metrics = [metrics]
    names = list(metrics)
    for name in names:
        one_of("metrics", name, metrics_of(scale))
    return names
