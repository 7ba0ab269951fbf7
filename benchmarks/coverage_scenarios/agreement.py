"""Intervals of the coefficients of agreement of `edokit.agreement` and `edo diagnose`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import edokit
from coverage_scenarios.coverage_row import CoverageRow
from coverage_scenarios.metrics import LEVEL, Counts
from edokit import Annotations

POPULATION_ITEMS = 40_000
ANNOTATORS = 4
GROUP = 5
"""Items of a group, where items come in groups."""
NAMES = {
    "krippendorff_alpha": "Krippendorff's alpha",
    "fleiss_kappa": "Fleiss' kappa",
    "cohen_kappa": "mean Cohen's kappa",
    "gwet_ac1": "Gwet's AC1",
    "gwet_ac2": "Gwet's AC2",
}


@dataclass(frozen=True)
class Labels:
    """Labels of items, as annotations."""

    name: str
    draw: Callable[[np.random.Generator, int], Annotations]


def even(rng: np.random.Generator, n_items: int) -> Annotations:
    """Two classes, each as frequent."""
    shares = rng.beta(0.5, 0.5, (n_items, 1))
    return Annotations.from_matrix(votes(rng, shares), classes=[0, 1])


def skewed(rng: np.random.Generator, n_items: int) -> Annotations:
    """Two classes, one of which is rare."""
    shares = rng.beta(0.15, 1.35, (n_items, 1))
    return Annotations.from_matrix(votes(rng, shares), classes=[0, 1])


def gaps(rng: np.random.Generator, n_items: int) -> Annotations:
    """Two classes, and a third of the labels are missing."""
    shares = rng.beta(0.5, 0.5, (n_items, 1))
    labels = votes(rng, shares).astype(object)
    missing = rng.random(labels.shape) < 1 / 3
    missing[:, 0] = False
    labels[missing] = None
    return Annotations.from_matrix(labels, classes=[0, 1])


def points(rng: np.random.Generator, n_items: int) -> Annotations:
    """Seven points of a scale."""
    rating = rng.normal(4, 1.2, (n_items, 1)) + rng.normal(0, 1, (n_items, ANNOTATORS))
    labels = np.clip(np.rint(rating), 1, 7).astype(int)
    return Annotations.from_matrix(labels, scale="ordinal:1,2,3,4,5,6,7")


def grouped(rng: np.random.Generator, n_items: int) -> Annotations:
    """Two classes; the items of a group are divided alike."""
    shares = np.repeat(rng.beta(0.5, 0.5, n_items // GROUP), GROUP)[:, None]
    labels = votes(rng, shares)
    items, annotators = np.indices(labels.shape)
    table = {
        "item": items.ravel(),
        "annotator": annotators.ravel(),
        "label": labels.ravel(),
        "thread": items.ravel() // GROUP,
    }
    return Annotations.from_table(table, columns={"group": "thread"}, classes=[0, 1])


def votes(rng: np.random.Generator, shares: np.ndarray) -> np.ndarray:
    return (rng.random((len(shares), ANNOTATORS)) < shares).astype(int)


def agreement(runs: int, seed: int) -> Iterator[CoverageRow]:
    """The coefficients of annotators who are alike."""
    for labels in (
        Labels("two classes, four labels", even),
        Labels("two classes, one of them rare", skewed),
        Labels("two classes, a third of the labels missing", gaps),
        Labels("seven points", points),
        Labels("two classes, in groups of five", grouped),
    ):
        large = np.random.default_rng([seed, 7])
        truth = edokit.agreement(labels.draw(large, POPULATION_ITEMS)).coefficients()
        counts = Counts(labels.name)
        for n_items in (30, 100, 300):
            for run in range(runs):
                rng = np.random.default_rng([seed, n_items, run])
                coefficients = edokit.agreement(
                    labels.draw(rng, n_items), level=LEVEL
                ).coefficients()
                for name, interval in coefficients.items():
                    if interval is None or interval["low"] is None:
                        continue
                    value = truth[name]["estimate"]
                    covers = interval["low"] <= value <= interval["high"]
                    counts.add(NAMES[name], n_items, bool(covers))
        yield from counts.rows()
