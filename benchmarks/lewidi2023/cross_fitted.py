"""From a run of `edo train … --cross-fit` to a pool: fit.npz, its dev part as dev.npz, test.npz.

python benchmarks/lewidi2023/cross_fitted.py LEWIDI_FOLDER/ArMIS RUN POOL_FOLDER
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from edokit import read_annotations, read_predictions, write_predictions


def main() -> None:
    """Copy predictions and manifest; dev items by their own split."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("pool", type=Path)
    given = parser.parse_args()
    given.pool.mkdir(parents=True, exist_ok=True)
    found = given.run / "predictions"
    for name in ("fit", "test"):
        shutil.copy(found / f"{name}.npz", given.pool / f"{name}.npz")
    shutil.copy(given.run / "manifest.json", given.pool / "manifest.json")
    fitted = read_predictions(found / "fit.npz")
    wanted = set(read_annotations(given.data).split("dev").items)
    rows = [place for place, item in enumerate(fitted.items) if item in wanted]
    write_predictions(fitted.take(rows), given.pool / "dev.npz")
    print(f"{given.pool}: {len(fitted.items)} items to fit on, {len(rows)} of them dev")


if __name__ == "__main__":
    main()
