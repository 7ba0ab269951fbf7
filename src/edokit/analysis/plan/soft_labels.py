"""The error of soft labels, simulated from a pilot.

A pilot shows how the annotators of an item differ. What n of them would answer is simulated from
the distribution that each item may have given its pilot labels: Dirichlet, fitted so that two
answers to an item differ as much as those of two annotators in the pilot. So every metric of every
answer scale is computed in one way. Two or three labels do not show the shape of these
distributions, so the intervals of F1 and MD span other shapes, too (`kinds`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edokit._types import Floats, Ints
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.plan.kinds import (
    Kinds,
    agreements,
    error_bounds,
    make_kinds,
    same_mode,
)
from edokit.metrics import item_values, main_metrics
from edokit.scales import Scale


class _Range(NamedTuple):
    """Where the search for a parameter starts, and its bounds."""

    lowest: float
    start: float
    highest: float


_LOG_KAPPA = _Range(-6.0, 0.0, 7.0)
_SMOOTHING = _Range(0.0, 0.3, 0.95)
# Items of a pilot that are simulated at most; more change little.
_MOST_ITEMS = 4000
# Items that are simulated for an estimate: those of the pilot, as often as it takes.
_ESTIMATE_DRAWS = 10_000
# Metrics left out for soft labels, whose zeros may make the CE infinite.
_NOT_FOR_SOFT_LABELS = ("ce", "exact_match")


@dataclass(frozen=True, eq=False)
class SoftLabelError:
    """The error of the soft label of each number of annotators [counts], in one metric."""

    estimates: Floats
    low: Floats
    high: Floats

    def at(self, place: int) -> list[float]:
        """Estimate and ends of the interval of one number of annotators."""
        return [float(self.estimates[place]), float(self.low[place]), float(self.high[place])]


def soft_label_errors(
    labels: HumanLabels,
    counts: Sequence[int],
    samples: int,
    random_state: int,
    reference: int | None = None,
    level: float = 0.95,
    item_groups: Ints | None = None,
) -> dict[str, SoftLabelError]:
    """By metric, the error of the soft label of each number of annotators.

    The soft label is compared with that of ``reference`` other annotators; None: of all who could
    be asked. Each sample of the interval draws the items of the pilot again, those with the same
    number in ``item_groups`` [N] together, and the distribution of each item. The items to draw
    from include one that is not in the pilot, on which two annotators differ: a pilot that shows no
    disagreement does not show that there is none.
    """
    rng = np.random.default_rng(random_state)
    pilot = _Items(labels.soft_labels[labels.has_several], labels.counts[labels.has_several])
    simulation = _Simulation(labels.scale, counts, reference)
    kinds = simulation.kinds(pilot, rng)
    repeats = math.ceil(_ESTIMATE_DRAWS / len(pilot.counts))
    repeated_items = np.tile(np.arange(len(pilot.counts)), repeats)
    estimates = simulation.errors(pilot.take(repeated_items), rng)
    groups = None
    if item_groups is not None:
        pilot_groups = np.unique(item_groups[labels.has_several], return_inverse=True)[1]
        # The item that is not in the pilot is a group of its own.
        groups = np.append(pilot_groups, pilot_groups.max() + 1)
    resampled: dict[str, list[Floats]] = {name: [] for name in estimates}
    observed = []
    for _ in range(samples):
        extended = pilot.with_divided_item(labels.scale, rng)
        sampled_items = extended.take(_draw_items(len(extended.counts), groups, rng))
        for name, values in simulation.errors(sampled_items, rng).items():
            resampled[name].append(values)
        rows, row_counts = sampled_items.rows(labels.scale)
        observed.append(agreements(rows, row_counts, kinds.orders))
    bounds = error_bounds(kinds, np.array(observed))
    errors = {}
    for name, estimate in estimates.items():
        values = np.array(resampled[name])
        lower, upper = bounds.get(name, (values, values))
        lowest = np.minimum(values, lower)
        highest = np.maximum(values, upper)
        low = np.quantile(lowest, (1 - level) / 2, axis=0)
        high = np.quantile(highest, (1 + level) / 2, axis=0)
        errors[name] = SoftLabelError(
            estimate, np.minimum(low, estimate), np.maximum(high, estimate)
        )
    return errors


def _draw_items(n_items: int, groups: Ints | None, rng: np.random.Generator) -> Ints:
    """Positions of items, drawn with replacement; whole groups [N] where there are some."""
    if groups is None:
        return rng.integers(n_items, size=min(n_items, _MOST_ITEMS))
    n_groups = int(groups.max()) + 1
    by_group = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups))
    members = np.split(by_group, ends[:-1])
    drawn_groups = [members[group] for group in rng.integers(n_groups, size=n_groups)]
    return np.concatenate(drawn_groups)[:_MOST_ITEMS]


@dataclass(frozen=True, eq=False)
class _Items:
    """Soft labels [N, C] of items and how many annotators each has [N]."""

    soft_labels: Floats
    counts: Ints

    def take(self, items: Ints) -> _Items:
        return _Items(self.soft_labels[items], self.counts[items])

    def rows(self, scale: Scale) -> tuple[Floats, Ints]:
        """Soft labels as rows (see `Scale.rows`), and the number of annotators of each row."""
        rows = scale.rows(self.soft_labels)
        return rows, np.repeat(self.counts, len(rows) // len(self.counts))

    def with_divided_item(self, scale: Scale, rng: np.random.Generator) -> _Items:
        """These items and one more, on which two annotators differ as two random items do."""
        n_classes = self.soft_labels.shape[1]
        answers = scale.hard(self.soft_labels)
        first_labels = answers[rng.integers(len(answers))]
        differs = (answers != first_labels).reshape(len(answers), -1).any(axis=1)
        if differs.any():
            second_labels = rng.choice(answers[differs])
        else:
            # Everybody gives the same answer.
            second_labels = scale.different_label(first_labels, n_classes)
        pair = scale.indicators(np.array([first_labels, second_labels]), n_classes)
        return _Items(
            np.vstack([self.soft_labels, pair.mean(axis=0)]),
            np.append(self.counts, 2),
        )


@dataclass(frozen=True, eq=False)
class _Simulation:
    """Numbers of annotators to simulate, and how many others their soft label is compared with."""

    scale: Scale
    counts: Sequence[int]
    reference: int | None

    def errors(self, items: _Items, rng: np.random.Generator) -> dict[str, Floats]:
        """By metric, the simulated error of each number of annotators [counts]."""
        scale = self.scale
        names = [name for name in main_metrics(scale) if name not in _NOT_FOR_SOFT_LABELS]
        formulas = item_values(scale)
        q = draw_distributions(items.soft_labels, items.counts, scale, rng)
        target = q
        if self.reference is not None:
            target = draw_soft_labels(q, self.reference, scale, rng)
        errors = {name: np.empty(len(self.counts)) for name in names}
        for place, count in enumerate(self.counts):
            drawn_soft_labels = draw_soft_labels(q, count, scale, rng)
            for name in names:
                if name == "f1":
                    values = same_mode(scale.rows(drawn_soft_labels), scale.rows(target))
                else:
                    values = formulas[name](drawn_soft_labels, target, scale.hard(target))
                errors[name][place] = values.mean()
        return errors

    def kinds(self, pilot: _Items, rng: np.random.Generator) -> Kinds:
        """The kinds of items that the pilot may be mixed from."""
        rows, row_counts = pilot.rows(self.scale)
        next_answers = answers_given_another(rows, row_counts[:, None])
        return make_kinds(rows, row_counts, next_answers, self.counts, self.reference, rng)


def draw_distributions(
    soft_labels: Floats, label_counts: Ints, scale: Scale, rng: np.random.Generator
) -> Floats:
    """A distribution that each item may have [N, C], given its soft label and number of labels.

    Every item has two labels or more. For multi-label data, each label is drawn on its own.
    """
    tables = [
        _draw(table, label_counts[:, None], scale, rng) for table in scale.tables(soft_labels)
    ]
    return scale.from_tables(tables)


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
    next_answers = soft_labels @ answers_given_another(soft_labels, label_counts)
    vectors = scale.vectors(classes, absolute=True)
    distance = np.square(vectors[:, None] - vectors).sum(axis=2)
    steps = distance * (classes - 1)
    # Two draws of an item shall have the mean distance of two annotators ...
    distances = [distance]
    ranges = [_LOG_KAPPA]
    if scale.positions is not None and classes > 2:
        # ... and differ as often. Where both can't be met, the distance has priority.
        distances.append(0.1 * (1 - np.eye(classes)))
        ranges.append(_SMOOTHING)
    targets = []
    for d in distances:
        # n / (n − 1) leaves out the pairs of an annotator with themselves.
        observed = soft_labels @ d * soft_labels * label_counts / (label_counts - 1)
        targets.append(observed.sum(axis=1).mean())

    def concentrations(log_kappa: float) -> Floats:
        return np.asarray((label_counts - 1) * soft_labels + np.exp(log_kappa) * next_answers)

    def kernel(smoothing: float) -> Floats:
        """How draws are smoothed over near points [C, C]."""
        near = soft_labels.mean(axis=0) * smoothing ** np.square(steps) + 1e-12 * np.eye(classes)
        return np.asarray(near / near.sum(axis=1, keepdims=True))

    def smoothing_of(parameters: Floats) -> float:
        return float(parameters[1]) if len(parameters) > 1 else 0.0

    def gaps(parameters: Floats) -> Floats:
        """How much more two draws of an item differ than two annotators do."""
        a = concentrations(parameters[0])
        smooth = kernel(smoothing_of(parameters))
        total = a.sum(axis=1)
        disagreements = []
        for d in distances:
            product = smooth @ d @ smooth.T
            pairs = (a @ product * a).sum(axis=1) + a @ np.diag(product)
            disagreements.append((pairs / total / (total + 1)).mean())
        return np.subtract(disagreements, targets)

    start = [parameter.start for parameter in ranges]
    lowest = [parameter.lowest for parameter in ranges]
    highest = [parameter.highest for parameter in ranges]
    parameters = least_squares(gaps, start, bounds=(lowest, highest)).x
    draws = np.maximum(rng.standard_gamma(concentrations(parameters[0])), 1e-300)
    draws = draws / draws.sum(axis=1, keepdims=True)
    return np.asarray(draws @ kernel(smoothing_of(parameters)))


def answers_given_another(soft_labels: Floats, label_counts: Ints) -> Floats:
    """The distribution of another annotator's answer, given the label of one [C, C].

    It is estimated from the n(n − 1) ordered pairs of annotators of each item, which together weigh
    as many labels as the item has. Rows of unused classes are zero. Classes that are near on a
    scale stay together in it.
    """
    counts = soft_labels * label_counts
    weighted = counts / (label_counts * (label_counts - 1))
    pairs = np.maximum(weighted.T @ counts - np.diag(weighted.sum(axis=0)), 0.0)
    return np.asarray(pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1e-300))


def draw_soft_labels(q: Floats, annotators: int, scale: Scale, rng: np.random.Generator) -> Floats:
    """The soft label [N, C] of this many annotators of items with these distributions."""
    rows = scale.rows(q)
    labels = rng.multinomial(annotators, rows / rows.sum(axis=1, keepdims=True))
    return scale.from_rows(labels / annotators, q.shape[1])
