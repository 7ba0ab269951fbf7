"""Intervals of `edo plan`: soft labels of pilots of many shapes, and differences that show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import edokit
from coverage_scenarios.coverage_row import CoverageRow
from coverage_scenarios.metrics import LEVEL, Counts
from edokit import Annotations, Predictions, Scale
from edokit.analysis.plan.kinds import same_mode
from edokit.analysis.plan.soft_labels import draw_soft_labels
from edokit.metrics import METRIC, item_values

ANNOTATORS = (1, 3, 10)
POPULATION_ITEMS = 50_000
SHARE_OF_RUNS = 4
"""A plan is slow: it has one table for this many of other scenarios."""


def clear(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """Seven of ten annotators agree on each item."""
    return two_classes(rng.choice([0.3, 0.7], n_items))


def three_kinds(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """Clear items, and some on which annotators are divided."""
    return two_classes(rng.choice([0.05, 0.4, 0.9], n_items))


def rare_halves(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """All agree, but for 4 % of the items, which divide annotators in halves."""
    return two_classes(rng.choice([0.0, 1.0, 0.5], n_items, p=[0.5, 0.46, 0.04]))


def rare_slips(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """One of fifty annotators differs, whatever the item."""
    return two_classes(rng.choice([0.02, 0.98], n_items))


def smooth(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """Shares from a Beta distribution."""
    return two_classes(rng.beta(0.5, 0.5, n_items))


def three_classes(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """Three kinds of items with three classes."""
    kinds = np.array([[0.8, 0.1, 0.1], [0.4, 0.35, 0.25], [0.1, 0.6, 0.3]])
    return kinds[rng.integers(3, size=n_items)]


def ratings(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """Seven points: normal with standard deviation 0.8, and rounded."""
    means = rng.normal(3, 1.5, (n_items, 1)).clip(0, 6)
    powers = np.exp(-(((np.arange(7) - means) / 0.8) ** 2) / 2)
    return powers / powers.sum(axis=1, keepdims=True)


def two_classes(share: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - share, share])


@dataclass(frozen=True)
class Pilot:
    """The distribution that a pilot is drawn from, and its size."""

    name: str
    draw: Callable[[np.random.Generator, int], np.ndarray]
    n_items: int
    annotators: int
    is_ordinal: bool = False


PILOTS = (
    Pilot("two classes, each item 70:30", clear, 400, 3),
    Pilot("two classes, three kinds of items", three_kinds, 400, 3),
    Pilot("two classes, three kinds of items, five labels", three_kinds, 400, 5),
    Pilot("two classes, 4 % of items divided, two labels", rare_halves, 60, 2),
    Pilot("two classes, 2 % slips, two labels", rare_slips, 60, 2),
    Pilot("two classes, smooth, two labels", smooth, 60, 2),
    Pilot("three classes, three kinds of items", three_classes, 400, 3),
    Pilot("seven points", ratings, 150, 3, is_ordinal=True),
)


def plan(runs: int, seed: int) -> Iterator[CoverageRow]:
    """Soft-label errors, and the difference between two models that shows."""
    for pilot in PILOTS:
        counts = Counts(pilot.name)
        classes = pilot.draw(np.random.default_rng(0), 1).shape[1]
        scale = Scale()
        if pilot.is_ordinal:
            scale = Scale("ordinal", tuple(range(classes)))
        truth = true_errors(pilot, scale, np.random.default_rng([seed, 1]))
        for run in range(max(runs // SHARE_OF_RUNS, 1)):
            rng = np.random.default_rng([seed, 2, run])
            q = pilot.draw(rng, pilot.n_items)
            plan_result = edokit.plan(
                pilot_annotations(q, pilot, rng),
                annotators=ANNOTATORS,
                train=False,
                random_state=run,
                level=LEVEL,
            )
            for row in plan_result.curve:
                for name, (_, low, high) in row["soft_label"].items():
                    count = row["annotators"]
                    covers = low - 1e-9 <= truth[name, count] <= high + 1e-9
                    quantity = f"{METRIC[name].short} of soft labels"
                    counts.add(quantity, count, covers)
        for row in counts.rows():
            yield sized_by_annotators(row)
    yield from differences(runs, seed)


def sized_by_annotators(row: CoverageRow) -> CoverageRow:
    """The row with annotators as its size, where `Counts` writes items."""
    number = int(row.size.split()[0])
    size = "1 annotator"
    if number > 1:
        size = f"{number} annotators"
    return CoverageRow(row.shown, row.data, row.promise, row.nominal, row.count, row.runs, size)


def true_errors(
    pilot: Pilot, scale: Scale, rng: np.random.Generator
) -> dict[tuple[str, int], float]:
    """The error of soft labels by metric and number of annotators, ties broken at random."""
    q = pilot.draw(rng, POPULATION_ITEMS)
    truth = {}
    for count in ANNOTATORS:
        soft_labels = draw_soft_labels(q, count, scale, rng)
        for name, formula in item_values(scale).items():
            truth[name, count] = float(formula(soft_labels, q, scale.hard(q)).mean())
        truth["f1", count] = float(same_mode(soft_labels, q).mean())
    return truth


def pilot_annotations(q: np.ndarray, pilot: Pilot, rng: np.random.Generator) -> Annotations:
    """Labels of the items with these distributions [N, C]."""
    draws = rng.random((len(q), pilot.annotators, 1))
    codes = (draws > np.cumsum(q, axis=1)[:, None, :-1]).sum(axis=2)
    scale = None
    if pilot.is_ordinal:
        scale = f"ordinal:{','.join(map(str, range(q.shape[1])))}"
    return Annotations.from_matrix(codes, classes=range(q.shape[1]), scale=scale)


def differences(runs: int, seed: int) -> Iterator[CoverageRow]:
    """The smallest difference in CE of two models that a comparison of 1,000 labels shows."""
    for n_items in (60, 300):
        pilot = Pilot("two classes, smooth", smooth, n_items, 3)
        normal = 1.959964 + 0.841621  # of level 5 % and power 80 %
        population = smooth(np.random.default_rng([seed, 1]), POPULATION_ITEMS)
        gain = model_gains(population)
        means = (population * gain).sum(axis=1)
        within = ((population * gain**2).sum(axis=1) - means**2).mean()
        counts = Counts(pilot.name)
        for run in range(max(runs // SHARE_OF_RUNS, 1)):
            rng = np.random.default_rng([seed, 3, run])
            q = smooth(rng, n_items)
            people = pilot_annotations(q, pilot, rng)
            jury = Predictions.from_arrays(
                models(q), items=people.items, classes=people.classes, layout="NKC"
            )
            plan_result = edokit.plan(
                people, predictions=jury, annotators=(2,), budget=1000, train=False, level=LEVEL
            )
            (row,) = plan_result.curve
            _, low, high = row["comparison"]["ce"]
            expected = normal * np.sqrt((means.var() + within / 2) / row["items"])
            counts.add("difference in CE that shows", n_items, bool(low <= expected <= high))
        yield from counts.rows()


def models(q: np.ndarray) -> np.ndarray:
    """Two models [N, 2, 2], which lean to one class or the other."""
    p = np.clip(q[:, 1:] + [[-0.1, 0.15]], 0.05, 0.95)
    return np.stack([1 - p, p], axis=2)


def model_gains(q: np.ndarray) -> np.ndarray:
    """How much lower the CE of the second model is, by item and label [N, 2]."""
    logs = np.log(models(q))
    return logs[:, 1] - logs[:, 0]
