"""The true sources of the variance of simulated labels, which a diagnosis estimates."""

from __future__ import annotations

import numpy as np

from edokit._types import Floats, Ints
from edokit.datasets.simulate.simulation import Simulation


def true_variance(simulation: Simulation) -> dict[str, float]:
    """The variance of all annotators' labels by source; see `sources_of_variance`."""
    p = simulation.annotator_probabilities()
    if simulation.regime.labels:
        p = np.concatenate([1 - p, p], axis=-1)
    return sources_of_variance(p, simulation.population.group)


def sources_of_variance(p: Floats, group: Ints) -> dict[str, float]:
    """The variance of a label when a random item is shown to a random annotator, by source.

    Half the sum over classes of the variance of "the label is this class"; with two classes that
    is the variance of the label. For sets, the sum over labels. ``item``: items differ, whoever
    annotates; ``annotator``: annotators differ, whatever they are shown (thresholds);
    ``group_item``: groups see different things in an item; ``annotator_item``: annotators see
    different things in an item than their group does; ``noise``: the same annotator labels the
    same item differently the next time. They add up to the variance of all labels.

    ``p`` are the class probabilities of all annotators [N, A, C], ``group`` [A] is each one's
    group.
    """
    sizes = np.bincount(group)
    by_item = p.mean(axis=1)  # [N, C]
    by_annotator = p.mean(axis=0)  # [A, C]
    by_group = ((group[:, None] == np.arange(len(sizes))) / sizes).T @ p  # [N, G, C]
    mean = by_item.mean(axis=0)
    # What remains of a group's view of an item once item and group averages are taken out.
    group_effects = by_group - by_item[:, None] - by_group.mean(axis=0) + mean
    residuals = p - by_group[:, group] - (by_annotator - by_group.mean(axis=0)[group])
    cells = len(by_item) * len(group)
    return {
        "item": 0.5 * float(np.mean(np.sum((by_item - mean) ** 2, axis=1))),
        "annotator": 0.5 * float(np.mean(np.sum((by_annotator - mean) ** 2, axis=1))),
        "group_item": 0.5 * float(np.sum((group_effects**2).sum(axis=2) @ (sizes / cells))),
        "annotator_item": 0.5 * float(np.sum(residuals**2)) / cells,
        "noise": 0.5 * float(np.sum(p * (1.0 - p))) / cells,
    }
