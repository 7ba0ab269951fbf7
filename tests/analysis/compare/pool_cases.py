"""Small pools of members of unequal quality, and methods that are quick to fit on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from edokit import Annotations, Predictions
from edokit.analysis.compare.method import make_method

CLASSES = ("no", "yes")


def sample(
    items: int = 60, *, seed: int = 0, classes: tuple[str, ...] = CLASSES, prefix: str = "item"
) -> tuple[Predictions, Annotations]:
    """What six members say of items that five people judged: two good, two fair, two at random."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(len(classes), 0.6), size=items)
    drawn = (rng.random((items, 5, 1)) > shares.cumsum(axis=1)[:, None]).sum(axis=2)
    names = [f"{prefix}-{i:03d}" for i in range(items)]
    people = Annotations.from_matrix(
        np.array(classes, dtype=object)[drawn], items=names, classes=classes
    )
    noise = (0.1, 0.12, 0.5, 0.6, None, None)
    columns = [
        rng.dirichlet(np.ones(len(classes)), size=items)
        if scale is None
        else _near(shares, scale, rng)
        for scale in noise
    ]
    members = ("good-1", "good-2", "fair-1", "fair-2", "noise-1", "noise-2")
    predictions = Predictions.from_arrays(
        np.stack(columns, axis=1),
        items=names,
        members=members,
        classes=classes,
        groups=[name.split("-")[0] for name in members],
        layout="NKC",
    )
    return predictions, people


def quick(name: str, seed: int = 0) -> Any:
    """The method of this name, with a short search where it has one."""
    method: Any = make_method(name, random_state=seed)
    for setting, value in (("trials", 4), ("generations", 8), ("population", 4)):
        if hasattr(method, setting):
            setattr(method, setting, value)
    return method


def _near(shares: Any, scale: float, rng: np.random.Generator) -> Any:
    powers = np.exp(np.log(shares + 0.05) + rng.normal(scale=scale, size=shares.shape))
    return powers / powers.sum(axis=1, keepdims=True)
