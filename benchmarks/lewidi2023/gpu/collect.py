"""Results of jobs into benchmarks/lewidi2023/<dataset>/<pool>/: predictions and a manifest.

    python benchmarks/lewidi2023/gpu/collect.py JOBS/out [--to benchmarks/lewidi2023]

prints the uniform pool's scores on dev, by which pools are chosen.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from edokit.files import write_json
from edokit.predictions import Predictions, write_predictions

CLASSES = ("0", "1")


def main() -> None:
    """Collect every pool of every dataset."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="the jobs' out folder")
    parser.add_argument("--to", type=Path, default=Path(__file__).resolve().parent.parent)
    given = parser.parse_args()
    for pool in sorted(path for path in given.out.glob("*/*") if path.is_dir()):
        reports = [json.loads(p.read_text("utf-8")) for p in sorted(pool.glob("*.json"))]
        if reports:
            collect(pool, reports, given.to / pool.parent.name / pool.name)


def collect(pool: Path, reports: list[dict[str, Any]], target: Path) -> None:
    """One pool: dev.npz, test.npz and manifest.json."""
    names = [report["name"] for report in reports]
    arrays = [dict(np.load(pool / f"{name}.npz", allow_pickle=False)) for name in names]
    for split in ("dev", "test"):
        items = arrays[0][f"{split}_items"]
        for name, one in zip(names, arrays, strict=True):
            if (one[f"{split}_items"] != items).any():
                raise SystemExit(f"{pool}: the {split} items of {name} differ from the others'")
        predictions = Predictions(
            np.stack([one[split] for one in arrays], axis=1),
            items.astype(object),
            tuple(names),
            CLASSES,
            (pool.name,) * len(names),
        )
        write_predictions(predictions, target / f"{split}.npz")
    write_json(
        {"dataset": pool.parent.name, "pool": pool.name, "members": reports},
        target / "manifest.json",
    )
    dev = np.mean([report["scores"]["dev"]["ce"] for report in reports])
    seconds = sum(report["seconds"] for report in reports)
    print(
        f"{pool.parent.name} {pool.name}: {len(names)} members, mean single dev CE {dev:.4f},"
        f" {seconds:.0f} s -> {target}"
    )


if __name__ == "__main__":
    main()
