"""What is in a predictions file, read shard by shard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from edokit.predictions.storage import read_shards


def describe_predictions(path: str | Path) -> dict[str, Any]:
    """Items, classes, and for each member its mean answer, entropy and distance to the mean."""
    items = shards = 0
    sums: dict[str, Any] = {}
    for shard in read_shards(path):
        shards += 1
        items += len(shard)
        probabilities = shard.probabilities.astype(np.float64, copy=False)
        logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
        for name, value in (
            ("mean", probabilities.sum(axis=0)),
            ("entropy", -(probabilities * logs).sum(axis=(0, 2))),
            ("distance", np.abs(probabilities - shard.uniform[:, None]).sum(axis=(0, 2))),
        ):
            sums[name] = sums.get(name, 0) + value
        last = shard
    groups = last.groups or (None,) * len(last.members)
    return {
        "items": items,
        "shards": shards,
        "classes": list(last.classes),
        "type": str(last.probabilities.dtype),
        "members": [
            {
                "name": name,
                "group": groups[k],
                "mean": dict(zip(last.classes, (sums["mean"][k] / items).tolist(), strict=True)),
                "entropy": float(sums["entropy"][k] / items),
                "distance": float(sums["distance"][k] / items),
            }
            for k, name in enumerate(last.members)
        ],
    }
