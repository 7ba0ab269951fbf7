"""Simulated predictions and labels in shards, of any length, for benchmarks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from joblib import Parallel, delayed

from edokit import Predictions, write_predictions

CLASSES = 2
PER_SHARD = 100_000


def write_shard(
    folder: Path, number: int, items: int, members: int, annotators: int, kind: str
) -> None:
    """Write predictions and labels, both of which follow the leaning of an item with noise.

    Without annotators, soft labels are written.
    """
    rng = np.random.default_rng([7, number])
    ids = np.arange(number * PER_SHARD, number * PER_SHARD + items)
    leaning = rng.normal(size=(items, 1)) * 1.5
    noise = rng.normal(size=(items, members)) * np.linspace(0.4, 2.0, members)
    yes = (1 / (1 + np.exp(-(leaning + noise)))).astype(np.float32)
    probabilities = np.stack([1 - yes, yes], axis=2)
    names = [f"member-{k}" for k in range(members)]
    file = folder / "predictions" / f"part-{number:05d}.{kind}"
    if kind == "npz":
        arrays = {"items": ids, "members": np.array(names), "classes": np.array(["0", "1"])}
        np.savez(file, probabilities=probabilities, **arrays)
    else:
        items_as_text = [str(number) for number in ids]
        predictions = Predictions.from_arrays(
            probabilities, items=items_as_text, members=names, classes=["0", "1"], layout="NKC"
        )
        write_predictions(predictions, file)
    truth = 1 / (1 + np.exp(-leaning))
    if annotators:
        answers = rng.random((items, annotators)) < truth
        people = rng.integers(500, size=(items, 1)) + np.arange(annotators)
        columns = {
            "item": np.repeat(ids, annotators),
            "annotator": people.ravel(),
            "label": answers.ravel().astype(np.int8),
        }
    else:
        share = rng.binomial(5, truth[:, 0]) / 5
        columns = {"item": ids, "p_0": 1 - share, "p_1": share}
    pq.write_table(pa.table(columns), folder / "annotations" / f"part-{number:05d}.parquet")


def write_shards(
    folder: Path,
    items: int,
    members: int = 10,
    annotators: int = 3,
    kind: str = "npz",
    per_shard: int = PER_SHARD,
) -> int:
    """Write shards of predictions and labels, and return their size in bytes."""
    for name in ("predictions", "annotations"):
        (folder / name).mkdir(parents=True)
    sizes = [min(per_shard, items - start) for start in range(0, items, per_shard)]
    Parallel(n_jobs=2)(
        delayed(write_shard)(folder, number, size, members, annotators, kind)
        for number, size in enumerate(sizes)
    )
    return sum(file.stat().st_size for file in folder.rglob("*.*"))
