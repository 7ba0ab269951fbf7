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
    arguments = parser.parse_args()
    arguments.pool.mkdir(parents=True, exist_ok=True)
    predictions_folder = arguments.run / "predictions"
    for name in ("fit", "test"):
        shutil.copy(predictions_folder / f"{name}.npz", arguments.pool / f"{name}.npz")
    shutil.copy(arguments.run / "manifest.json", arguments.pool / "manifest.json")
    fitted = read_predictions(predictions_folder / "fit.npz")
    dev_items = set(read_annotations(arguments.data).split("dev").items)
    rows = [place for place, item in enumerate(fitted.items) if item in dev_items]
    write_predictions(fitted.take(rows), arguments.pool / "dev.npz")
    print(f"{arguments.pool}: {len(fitted.items)} items to fit on, {len(rows)} of them dev")


if __name__ == "__main__":
    main()
