"""Small pools of members of unequal quality, and methods that are quick to fit on them."""

from __future__ import annotations

import numpy as np

from edokit import Annotations, Predictions
from edokit._types import Floats
from edokit.analysis.compare.method import Method, make_method

CLASSES = ("no", "yes")


def sample(
    items: int = 60, *, seed: int = 0, classes: tuple[str, ...] = CLASSES, prefix: str = "item"
) -> tuple[Predictions, Annotations]:
    """Five annotators per item and six members: two good ones, two fair ones, two at random."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(len(classes), 0.6), size=items)
    codes = (rng.random((items, 5, 1)) > shares.cumsum(axis=1)[:, None]).sum(axis=2)
    names = [f"{prefix}-{i:03d}" for i in range(items)]
    people = Annotations.from_matrix(
        np.array(classes, dtype=object)[codes], items=names, classes=classes
    )
    columns = [_near(shares, noise, rng) for noise in (0.1, 0.12, 0.5, 0.6)]
    for _ in range(2):
        columns.append(rng.dirichlet(np.ones(len(classes)), size=items))
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


def quick(name: str, seed: int = 0) -> Method:
    """The method of this name, with a short search if it has one."""
    method = make_method(name, random_state=seed)
    for setting, value in (("trials", 4), ("generations", 8), ("population", 4)):
        if hasattr(method, setting):
            setattr(method, setting, value)
    return method


def _near(shares: Floats, scale: float, rng: np.random.Generator) -> Floats:
    """Probabilities that differ from the shares by noise in the log."""
    powers = np.exp(np.log(shares + 0.05) + rng.normal(scale=scale, size=shares.shape))
    return powers / powers.sum(axis=1, keepdims=True)
