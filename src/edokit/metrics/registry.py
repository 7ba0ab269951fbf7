"""The registry of metrics: their names, formulas and answer scales.

A metric is one entry of `METRIC`. Evaluations, comparisons, the page and the table in
``docs/metrics.md`` use only these entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted, one_of
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

# The parts of a metric by item, from p, q, y and the scale: one value [N], or several [N, m].
Formula = Callable[[Floats, Floats, HardLabels, Scale], Floats]
# A formula for a given scale, as a function of p, q and y.
ItemFormula = Callable[[Floats, Floats, HardLabels], Floats]
# The metric, from the sums of its parts over items, [m] or [..., m], and the number of items.
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
        a metric that can't be computed from sums over items: one with ``relative``, or the entropy
        correlation, which `compute_metrics` computes itself.
    relative : callable or None, default=None
        If ``formula`` is None, the value of each item [N] relative to all items, NaN if undefined;
        the metric is its mean. It can't be computed for a folder of shards.
    combine : callable, default: the mean over items
        Function of the sums of the parts and the number of items that returns the metric.
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
        for kind in self.scales:
            one_of("scales", kind, ALL_SCALES)
        for kind in self.main:
            one_of("main", kind, ALL_SCALES)
        if not self.name.isidentifier():
            raise InputError(
                f"the name of a metric is {self.name!r}",
                "use letters, digits and underscores, and no digit first, as in macro_f1",
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


def by_row(row_formula: ItemFormula) -> Formula:
    """Make the formula of a metric from a function of distributions [n, C] and codes [n].

    For multi-label data, it is applied to the two-class distribution of each label, and the value
    of an item is the mean over its labels.
    """

    def formula(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
        row_values = row_formula(scale.rows(p), scale.rows(q), scale.row_codes(y))
        return scale.per_item(row_values, len(p))

    return formula


def by_position(position_formula: Callable[[Floats, Floats, Floats], Floats]) -> Formula:
    """Make the formula of a metric from a function of p, q and the positions [C] of the classes."""

    def formula(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
        return position_formula(p, q, np.array(scale.positions))

    return formula


def _exact_match(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
    """1 where all labels are those of y [N]."""
    return np.asarray((scale.hard(p) == y).all(axis=1).astype(np.float64))


def _label_error(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
    """The mean over labels of |ŷ − q|: the share of annotators who disagree with each label."""
    return np.asarray(np.abs(scale.hard(p) - q).mean(axis=1))


def _macro_parts(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
    """The parts of macro-F1 [N, 2C].

    The first C columns are 1 where a class is both in the predicted labels ŷ and in y; the others
    count in how many of the two it is (0, 1 or 2).
    """
    predicted = scale.indicators(scale.hard(p), p.shape[1])
    hard = scale.indicators(y, p.shape[1])
    return np.hstack([predicted & hard, predicted.astype(np.float64) + hard])


def _macro_f1(sums: Floats, items: int | Floats) -> Floats:
    """The mean F1 over the classes in ŷ or y; 1 if there are none, as when all sets are empty."""
    hits, occurrences = np.split(sums, 2, axis=-1)
    count = (occurrences > 0).sum(axis=-1)
    by_class = 2 * hits / np.maximum(occurrences, 1.0)
    return np.where(count > 0, by_class.sum(axis=-1) / np.maximum(count, 1), 1.0)


def _soft_f1(sums: Floats, items: int | Floats) -> Floats:
    """Twice the size of the intersection over the sum of the sizes; 1 if that sum is 0."""
    intersection = sums[..., 0]
    size = sums[..., 1]
    return np.where(size > 0, 2 * intersection / np.where(size > 0, size, 1.0), 1.0)


def _calibration_error(gaps: Floats, items: int | Floats) -> Floats:
    """The sum over bins of the absolute gaps, per item."""
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
        help="whether the labels above one half are exactly the hard labels",
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
        help="the share of the probability that agrees with the soft labels: Σ min(p, q),"
        " which is 1 − MD/2",
        formula=by_row(lambda p, q, y: overlap(p, q)),
        direction="higher",
        scales=("nominal", "ordinal"),
    ),
    Metric(
        name="soft_f1",
        short="soft F1",
        title="soft micro-F1",
        help="2 Σ min(p, q) / Σ (p + q) over all items and labels; without several labels per item,"
        " the soft accuracy",
        formula=lambda p, q, y, scale: soft_f1_parts(p, q),
        combine=_soft_f1,
        direction="higher",
    ),
    Metric(
        name="icm_soft",
        short="ICM",
        title="ICM-Soft",
        help="information that answers and soft labels share, minus that which only one of them"
        " has, in bits",
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
        Its formula gets checked arrays; ``relative`` metrics can't be added.

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
    metric = replace(metric, formula=_checked_formula(metric, metric.formula))
    METRIC[metric.name] = metric
    return metric


def _checked_formula(metric: Metric, formula: Formula) -> Formula:
    """The formula, which refuses results of a wrong shape and values that are not finite."""
    expected = "one value per item"
    most_axes = 1
    if not metric.is_mean:
        expected = "one value or one row of parts per item"
        most_axes = 2

    def checked(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
        values = np.asarray(formula(p, q, y, scale), dtype=np.float64)
        if not 1 <= values.ndim <= most_axes or len(values) != len(p):
            raise InputError(
                f"the formula of the metric {metric.name!r} returned the shape {values.shape} for"
                f" {counted(len(p), 'item')}",
                f"return {expected}",
                code="invalid-plugin",
            )
        is_wrong = ~np.isfinite(values)
        if is_wrong.any():
            raise InputError(
                f"the formula of the metric {metric.name!r} returned {values[is_wrong][0]} for"
                f" {int(is_wrong.sum())} of {values.size} values",
                "return finite numbers, for example with probabilities of at least 1e-12 in"
                " logarithms",
                code="invalid-plugin",
            )
        return values

    return checked


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


MAIN_METRICS = main_metrics()
"""The main metrics of the nominal scale, which are those of the paper's tables."""


def item_values(scale: Scale = NOMINAL) -> dict[str, ItemFormula]:
    """Return the formulas of the metrics that are means of one value per item.

    Returns
    -------
    dict of str to callable
        By metric, a function of checked arrays p, q and y that returns the values of items [N].

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
            formulas[name] = _with_scale(formula, scale)
    return formulas


def _with_scale(formula: Formula, scale: Scale) -> ItemFormula:
    """The formula on this scale, as a function of p, q and y."""

    def item_formula(p: Floats, q: Floats, y: HardLabels) -> Floats:
        return formula(p, q, y, scale)

    return item_formula


def checked_names(metrics: Iterable[str] | None, scale: Scale = NOMINAL) -> list[str]:
    """The names of metrics, all of the scale if None; others are refused."""
    if metrics is None:
        return list(metrics_of(scale))
    # A string is one name, although it is an iterable of letters.
    if isinstance(metrics, str):
        metrics = [metrics]
    names = list(metrics)
    for name in names:
        one_of("metrics", name, metrics_of(scale))
    return names
