"""A small pool with one good, one fair and two useless members."""

from __future__ import annotations

import numpy as np

from edokit import Annotations, Predictions

CLASSES = ("no", "yes")
MEMBERS = ("good", "fair", "noise-1", "noise-2")


def people_and_pool(items: int = 120, seed: int = 0) -> tuple[Annotations, Predictions]:
    """Five annotators per item, and four members of falling quality."""
    rng = np.random.default_rng(seed)
    share = rng.beta(0.7, 0.9, size=items)
    answers = (rng.random((items, 5)) < share[:, None]).astype(int)
    names = [f"item-{i}" for i in range(items)]
    people = Annotations.from_matrix(np.array(CLASSES, dtype=object)[answers], items=names)
    columns = [
        np.clip(share + rng.normal(scale=0.08, size=items), 0.02, 0.98),
        np.clip(share + rng.normal(scale=0.3, size=items), 0.02, 0.98),
        rng.uniform(0.02, 0.98, size=items),
        rng.uniform(0.02, 0.98, size=items),
    ]
    pool = Predictions.from_arrays(
        np.stack(columns, axis=1),
        items=names,
        members=MEMBERS,
        classes=CLASSES,
        groups=["a", "a", "b", "b"],
        layout="NK",
    )
    return people, pool
