"""Simulated people whose behaviour is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit import Annotations

CLASSES = np.array(["no", "yes"], dtype=object)


def noise(
    items: int = 200, annotators: int = 6, per_item: int | None = None, seed: int = 0
) -> Annotations:
    """All annotators answer at random, with the same probability for an item."""
    rng = np.random.default_rng(seed)
    chance = np.repeat(rng.beta(0.8, 1.2, size=(items, 1)), annotators, axis=1)
    return answered(chance, per_item, rng)


def camps(
    items: int = 300,
    sizes: tuple[int, ...] = (4, 4),
    apart: float = 0.35,
    per_item: int | None = None,
    seed: int = 0,
) -> Annotations:
    """Camps with different views: each item is worse in the eyes of one of them."""
    rng = np.random.default_rng(seed)
    camp = np.repeat(np.arange(len(sizes)), sizes)
    view = rng.choice([-apart, apart], size=(items, len(sizes)))
    chance = np.clip(0.5 + view[:, camp], 0.02, 0.98)
    return answered(chance, per_item, rng, camp)


def with_careless(annotations: Annotations, who: list[str], rate: float, seed: int) -> Annotations:
    """The annotations, in which these annotators give a share of their labels at random."""
    rng = np.random.default_rng([seed, 7])
    table = annotations.to_table().to_pandas()
    hit = table["annotator"].isin(who) & (rng.random(len(table)) < rate)
    table.loc[hit, "label"] = rng.choice(CLASSES, size=int(hit.sum()))
    return Annotations.from_table(table, classes=["no", "yes"])


def strict(items: int = 400, annotators: int = 8, seed: int = 0) -> Annotations:
    """Annotators who differ only in their thresholds."""
    rng = np.random.default_rng(seed)
    score = rng.normal(scale=1.5, size=(items, 1)) + np.linspace(-1.5, 1.5, annotators)
    return answered(1 / (1 + np.exp(-score)), None, rng)


def answered(
    chance: npt.NDArray[np.float64],
    per_item: int | None,
    rng: np.random.Generator,
    camp: npt.NDArray[np.int64] | None = None,
) -> Annotations:
    """Answers of chance [N, A] to yes; some of the people per item, else all of them."""
    labels = CLASSES[(rng.random(chance.shape) < chance).astype(int)]
    item, person = np.nonzero(np.ones(chance.shape, dtype=bool))
    if per_item is not None:
        rank = rng.random(chance.shape).argsort(axis=1).argsort(axis=1)
        item, person = np.nonzero(rank < per_item)
    table = {
        "item": [f"item-{i}" for i in item],
        "annotator": [f"ann-{a}" for a in person],
        "label": labels[item, person].tolist(),
    }
    if camp is not None:
        table["camp"] = [f"camp-{camp[a]}" for a in person]
    return Annotations.from_table(table, classes=["no", "yes"])
