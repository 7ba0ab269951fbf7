"""The error of soft labels, simulated from a pilot.

A pilot shows how the annotators of an item differ. What n of them would answer is simulated from
the distribution that each item may have given its pilot labels: Dirichlet, fitted so that two
answers to an item differ as much as those of two annotators in the pilot. So every metric of every
answer scale is computed in one way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edokit._types import Floats, Ints
from edokit.analysis.human_labels import HumanLabels
from edokit.metrics import item_values, main_metrics
from edokit.scales import Scale

# Lowest, first and highest value of log κ, and of the smoothing of draws.
_LOG_WEIGHT = (-6.0, 0.0, 7.0)
_SMOOTHING = (0.0, 0.3, 0.95)
# Items of a pilot that are simulated at most; more change little.
_MOST_ITEMS = 4000
# Metrics left out for soft labels, whose zeros may make the CE infinite.
_NOT_FOR_SOFT_LABELS = ("ce", "exact_match")


def soft_label_errors(
    labels: HumanLabels,
    counts: Sequence[int],
    samples: int,
    random_state: int,
    reference: int | None = None,
) -> dict[str, Floats]:
    """By metric, the error [samples, counts] of the soft label of each number of annotators.

    It is compared with that of ``reference`` other annotators; None: of all that could be asked.
    Each sample draws the items of the pilot again, and the distribution of each item.
    """
    scale = labels.scale
    rng = np.random.default_rng(random_state)
    soft_labels = labels.soft_labels[labels.has_several]
    label_counts = labels.counts[labels.has_several]
    names = [name for name in main_metrics(scale) if name not in _NOT_FOR_SOFT_LABELS]
    values = item_values(scale)
    errors = {name: np.zeros((samples, len(counts))) for name in names}
    for sample in range(samples):
        items = rng.integers(len(soft_labels), size=min(len(soft_labels), _MOST_ITEMS))
        q = draw_distributions(soft_labels[items], label_counts[items], scale, rng)
        target = q
        if reference is not None:
            target = draw_soft_labels(q, reference, scale, rng)
        for k, count in enumerate(counts):
            drawn = draw_soft_labels(q, count, scale, rng)
            for name in names:
                errors[name][sample, k] = values[name](drawn, target, scale.hard(target)).mean()
    return errors


def draw_distributions(
    soft_labels: Floats, label_counts: Ints, scale: Scale, rng: np.random.Generator
) -> Floats:
    """A distribution that each item may have [N, C], given its soft label and number of labels.

    Every item has two labels or more. For multi-label data, each label is drawn on its own.
    """
    tables = [
        _draw(table, label_counts[:, None], scale, rng) for table in scale.tables(soft_labels)
    ]
    rows = np.stack(tables, axis=1).reshape(-1, tables[0].shape[1])
    return scale.from_rows(rows, soft_labels.shape[1])


def _draw(
    soft_labels: Floats, label_counts: Ints, scale: Scale, rng: np.random.Generator
) -> Floats:
    """Distributions [N, C] from Dirichlet((n − 1) · soft label + κ · what others answer).

    For κ = 1 + α this is the posterior where the distributions of items are Dirichlet with
    concentration α. On an ordinal scale, draws are smoothed over near points. κ and the smoothing
    are such that two answers to an item differ as much as those of two annotators do.
    """
    from scipy.optimize import least_squares

    classes = soft_labels.shape[1]
    others = others_answers(soft_labels, label_counts)
    vectors = scale.vectors(classes, absolute=True)
    distance = np.square(vectors[:, None] - vectors).sum(axis=2)
    steps = distance * (classes - 1)
    # What two draws of an item are to have as two annotators do: their mean distance ...
    distances = [distance]
    ranges = [_LOG_WEIGHT]
    if scale.positions is not None and classes > 2:
        # ... and whether they differ. Where both can't be met, the distance has priority.
        distances.append(0.1 * (1 - np.eye(classes)))
        ranges.append(_SMOOTHING)
    targets = []
    for d in distances:
        # Without the pairs of an annotator with themselves.
        observed = soft_labels @ d * soft_labels * label_counts / (label_counts - 1)
        targets.append(observed.sum(axis=1).mean())

    def concentrations(log_weight: float) -> Floats:
        return np.asarray((label_counts - 1) * soft_labels + np.exp(log_weight) * others)

    def kernel(smoothing: float) -> Floats:
        near = soft_labels.mean(axis=0) * smoothing ** np.square(steps) + 1e-12 * np.eye(classes)
        return np.asarray(near / near.sum(axis=1, keepdims=True))

    def smoothing_of(parameters: Floats) -> float:
        return float(parameters[1]) if len(parameters) > 1 else 0.0

    def gaps(parameters: Floats) -> Floats:
        """How much more two draws of an item differ than two annotators do."""
        a = concentrations(parameters[0])
        smooth = kernel(smoothing_of(parameters))
        total = a.sum(axis=1)
        drawn = []
        for d in distances:
            product = smooth @ d @ smooth.T
            pairs = (a @ product * a).sum(axis=1) + a @ np.diag(product)
            drawn.append((pairs / total / (total + 1)).mean())
        return np.subtract(drawn, targets)

    lower, start, upper = zip(*ranges, strict=True)
    parameters = least_squares(gaps, start, bounds=(lower, upper)).x
    draws = np.maximum(rng.standard_gamma(concentrations(parameters[0])), 1e-300)
    draws = draws / draws.sum(axis=1, keepdims=True)
    return np.asarray(draws @ kernel(smoothing_of(parameters)))


def others_answers(soft_labels: Floats, label_counts: Ints) -> Floats:
    """What another annotator would answer [N, C], given one label of an item.

    The n(n − 1) ordered pairs of annotators of each item show it, every item counting by its
    number of labels. So what is near on a scale stays together.
    """
    counts = soft_labels * label_counts
    weighted = counts / (label_counts * (label_counts - 1))
    pairs = np.maximum(weighted.T @ counts - np.diag(weighted.sum(axis=0)), 0.0)
    given = pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(soft_labels @ given)


def draw_soft_labels(q: Floats, annotators: int, scale: Scale, rng: np.random.Generator) -> Floats:
    """The soft label [N, C] of this many annotators of items with these distributions."""
    rows = scale.rows(q)
    labels = rng.multinomial(annotators, rows / rows.sum(axis=1, keepdims=True))
    return scale.from_rows(labels / annotators, q.shape[1])
