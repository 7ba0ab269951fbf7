"""Where the variance of the labels comes from, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._types import Floats


@dataclass(frozen=True)
class Variance:
    """The variance of a label when a random item is shown to a random annotator, by source.

    Half the sum over classes of the variance of "the label is this class"; with two classes that
    is the variance of the label. The five sources add up to `total`.
    """

    total: float
    item: float
    """Items differ, whoever is asked."""
    annotator: float
    """People differ, whatever they are shown: thresholds."""
    group_item: float
    """Groups see different things in an item."""
    annotator_item: float
    """People see different things in an item than their group does."""
    noise: float
    """The same person, asked about the same item again, answers otherwise."""

    @property
    def disagreement(self) -> float:
        """What is left within items: everything but `item`."""
        return self.annotator + self.group_item + self.annotator_item + self.noise

    @property
    def shares(self) -> dict[str, float]:
        """Each source as a share of the total."""
        names = ("item", "annotator", "group_item", "annotator_item", "noise")
        return {name: getattr(self, name) / self.total for name in names}

    @property
    def structured_share(self) -> float:
        """Share of the disagreement within items that is lasting, not noise (NaN if none)."""
        within = self.disagreement
        return (within - self.noise) / within if within > 0 else float("nan")


def decompose(blocks: Callable[[], Iterator[Floats]], group: npt.NDArray[np.int64]) -> Variance:
    """The variance by source, from the answer probabilities of all annotators on all items.

    `blocks()` yields them as [n, A, C] tables, the same each time; group [A] is each one's group.
    """
    sizes = np.bincount(group)
    belongs = (group[:, None] == np.arange(len(sizes))) / sizes
    item_means, group_means = [], []
    people_sum: Floats | float = 0.0
    noise = 0.0
    for p in blocks():
        item_means.append(p.mean(axis=1))
        group_means.append(belongs.T @ p)
        people_sum = people_sum + p.sum(axis=0)
        noise += float(np.sum(p * (1.0 - p)))
    by_item = np.concatenate(item_means)  # [N, C]
    by_group = np.concatenate(group_means)  # [N, G, C]
    by_person = np.asarray(people_sum) / len(by_item)  # [A, C]
    mean = by_item.mean(axis=0)

    # What remains of a group's view of an item once item and group averages are taken out.
    seen = by_group - by_item[:, None] - by_group.mean(axis=0) + mean
    own, start = 0.0, 0
    for p in blocks():
        rows = slice(start, start + len(p))
        rest = p - by_group[rows][:, group]
        rest -= by_person - by_group.mean(axis=0)[group]
        own += float(np.sum(rest**2))
        start += len(p)

    cells = len(by_item) * len(group)
    return Variance(
        total=0.5 * float(np.sum(mean * (1.0 - mean))),
        item=0.5 * float(np.mean(np.sum((by_item - mean) ** 2, axis=1))),
        annotator=0.5 * float(np.mean(np.sum((by_person - mean) ** 2, axis=1))),
        group_item=0.5 * float(np.sum((seen**2).sum(axis=2) @ (sizes / cells))),
        annotator_item=0.5 * own / cells,
        noise=0.5 * noise / cells,
    )
