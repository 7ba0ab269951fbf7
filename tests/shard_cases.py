"""Small data cut into shards on disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edokit import Annotations, Predictions, Scale, write_predictions
from edokit._io.tables import write_table
from edokit._types import Floats
from edokit.scales import NOMINAL


class Cut(NamedTuple):
    """The whole data, and the folders of its shards."""

    pool: Predictions
    people: Annotations
    predictions: Path
    annotations: Path


def data(
    items: int, members: int = 4, classes: int = 2, seed: int = 0, scale: Scale = NOMINAL
) -> tuple[Predictions, Annotations]:
    """Members that see each item's leaning through more or less noise, and three annotators."""
    rng = np.random.default_rng(seed)
    leaning = rng.normal(size=(items, classes)) * 1.5
    noise = rng.normal(size=(items, members, classes)) * np.linspace(0.3, 2, members)[:, None]
    names = [f"item-{i}" for i in range(items)]
    probabilities = _softmax
    if scale.is_multi_label:
        probabilities = _sigmoid
    pool = Predictions.from_arrays(
        probabilities(leaning[:, None] + noise).astype(np.float32),
        items=names,
        groups=[f"g{k // 2}" for k in range(members)],
        layout="NKC",
        classes=range(classes),
        scale=scale,
    )
    shares = probabilities(leaning)
    if scale.is_multi_label:
        is_chosen = rng.random((items, 3, classes)) < shares[:, None]
        labels = []
        for row in is_chosen.reshape(-1, classes):
            labels.append(np.flatnonzero(row).astype(str).tolist())
        table = {
            "item": np.repeat(names, 3),
            "annotator": np.tile(["x", "y", "z"], items),
            "label": labels,
        }
        return pool, Annotations.from_table(table, classes=range(classes), scale=scale)
    answers = (rng.random((items, 3))[:, :, None] > shares.cumsum(axis=1)[:, None]).sum(axis=2)
    # A class that nobody chose is a class, too.
    people = Annotations.from_matrix(
        np.minimum(answers, classes - 1), items=names, classes=range(classes), scale=scale
    )
    return pool, people


def cut(
    folder: Path,
    items: int,
    ends: Sequence[int] = (),
    *,
    members: int = 4,
    classes: int = 2,
    seed: int = 0,
    suffix: str = "npz",
    scale: Scale = NOMINAL,
) -> Cut:
    """Shards that end at these items, with annotations in reversed order."""
    pool, people = data(items, members, classes, seed, scale)
    bounds = sorted({0, items, *(end for end in ends if 0 < end < items)})
    for number, (start, end) in enumerate(pairwise(bounds)):
        part = list(range(start, end))
        write_predictions(pool.take(part), folder / "predictions" / f"part-{number}.{suffix}")
        table = people.take(part[::-1]).to_table()
        write_table(table, folder / "annotations" / f"part-{number}.csv")
    return Cut(pool, people, folder / "predictions", folder / "annotations")


def _sigmoid(scores: Floats) -> Floats:
    return 1 / (1 + np.exp(-scores))


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
