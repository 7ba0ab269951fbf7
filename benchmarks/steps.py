"""How many items can choose a step for a metric? The lowest loss against the shrunk choice.

    python benchmarks/steps.py LEWIDI2025_FOLDER

A step is fitted on n items of dev and measured on all others, 300 draws; pools are the uniform
means of ``benchmarks/lewidi2025``. Shown are the mean change of the metric, and the share of draws
in which the step is worse than none.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from edokit import read_predictions
from edokit.ensemble.answers import _STEPS, LOG_TEMPERATURES, ORDERED_STEP, best_temperature
from edokit.metrics import md_items, w1_items
from reproduction.lewidi2025.data import read_labelled

POOLS = (("MP", "annotators"), ("MP", "small"), ("CSC", "annotators"), ("CSC", "anonymous"))
SIZES = (20, 50, 100, 200, 400)
DRAWS = 300


def losses_of(lewidi: Path, dataset: str, pool: str) -> np.ndarray:
    """The metric of each temperature and dev item [T, N]."""
    dev = read_labelled(lewidi, dataset).split("dev")
    path = Path(__file__).parent / "lewidi2025" / dataset / pool / "dev.npz"
    predictions = read_predictions(path).order_classes(dev.classes).on_scale(dev.scale)
    p = np.asarray(predictions.align(dev.items).uniform)
    q = np.asarray(dev.soft_labels)
    step = ORDERED_STEP
    metric = w1_items
    if dataset == "MP":
        step = "temperature"
        metric = md_items
    return np.array([metric(_STEPS[step](p, float(np.exp(log))), q) for log in LOG_TEMPERATURES])


def main(lewidi: Path) -> None:
    """Print a row per pool and number of items."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    print("| pool | items | lowest loss: change | worse | shrunk: change | worse | best possible |")
    print("|---|---|---|---|---|---|---|")
    for dataset, pool in POOLS:
        losses = losses_of(lewidi, dataset, pool)
        best = losses.mean(axis=1).min() - losses[0].mean()
        for size in SIZES:
            changes = np.empty((DRAWS, 2))
            for draw in range(DRAWS):
                order = rng.permutation(losses.shape[1])
                fit = losses[:, order[:size]]
                test_losses = losses[:, order[size:]].mean(axis=1)
                lowest = fit.mean(axis=1).argmin()
                changes[draw] = test_losses[[lowest, best_temperature(fit)]] - test_losses[0]
            cells = [f"{c.mean():+.4f} | {(c > 1e-12).mean():.0%}" for c in changes.T]
            print(f"| {dataset} {pool} | {size} | {' | '.join(cells)} | {best:+.4f} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
