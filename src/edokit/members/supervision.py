"""What a member learns from: annotations, seed and epoch in, targets out."""

from __future__ import annotations

import numpy as np

from edokit.annotations import Annotations
from edokit.errors import InputError
from edokit.ids import Codes


def random_select(annotations: Annotations, seed: int, epoch: int = 0) -> Codes:
    """The class that one annotator gave each item [N], the annotator drawn uniformly.

    Over seeds and epochs the targets of an item are distributed like its soft label.
    """
    if annotations.label_codes is None:
        raise InputError(
            "random-select draws one annotator's class, but these annotations are probabilities",
            "use soft targets instead",
        )
    order = np.argsort(annotations.item_codes, kind="stable")
    counts = annotations.annotations_per_item
    starts = np.cumsum(counts) - counts
    draw = np.random.default_rng([seed, epoch]).random(len(counts))
    labels: Codes = annotations.label_codes[order[starts + (draw * counts).astype(np.int64)]]
    return labels
