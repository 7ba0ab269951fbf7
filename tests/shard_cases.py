"""Small data cut into shards on disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edokit import Annotations, Predictions, Scale, write_predictions
from edokit._io.tables import write_table
from edokit.scales import NOMINAL


class Cut(NamedTuple):
    """The whole, and where its shards lie."""

    pool: Predictions
    people: Annotations
    predictions: Path
    annotations: Path


def data(
    items: int, members: int = 4, classes: int = 2, seed: int = 0, scale: Scale = NOMINAL
) -> tuple[Any, Any]:
    """Members that see each item's leaning through more or less noise, and three annotators."""
    rng = np.random.default_rng(seed)
    leaning = rng.normal(size=(items, classes)) * 1.5
    noise = rng.normal(size=(items, members, classes)) * np.linspace(0.3, 2, members)[:, None]
    names = [f"item-{i}" for i in range(items)]
    probabilities = _sigmoid if scale.is_multi_label else _softmax
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
        chosen = rng.random((items, 3, classes)) < shares[:, None]
        table = {
            "item": np.repeat(names, 3),
            "annotator": np.tile(["x", "y", "z"], items),
            "label": [
                np.flatnonzero(one).astype(str).tolist() for one in chosen.reshape(-1, classes)
            ],
        }
        return pool, Annotations.from_table(table, classes=range(classes), scale=scale)
    answers = (rng.random((items, 3))[:, :, None] > shares.cumsum(axis=1)[:, None]).sum(axis=2)
    # A class that nobody chose is a class all the same.
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
    """Shards that end at these items, annotations with their rows turned round."""
    pool, people = data(items, members, classes, seed, scale)
    bounds = sorted({0, items, *(end for end in ends if 0 < end < items)})
    for number, (start, end) in enumerate(pairwise(bounds)):
        part = list(range(start, end))
        write_predictions(pool.take(part), folder / "predictions" / f"part-{number}.{suffix}")
        table = people.take(part[::-1]).to_table()
        write_table(table, folder / "annotations" / f"part-{number}.csv")
    return Cut(pool, people, folder / "predictions", folder / "annotations")


def _sigmoid(scores: Any) -> Any:
    return 1 / (1 + np.exp(-scores))


def _softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
