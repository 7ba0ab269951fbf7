"""Is the default ever worse than the uniform mean? Small draws of the simulator, and dev folds.

    python benchmarks/shrinkage.py                              # simulated annotators, truth known
    python benchmarks/shrinkage.py --data ../shared/lewidi2023  # the committed LeWiDi pools

Simulated: weights are learned on 100, 140 or 200 dev items and evaluated by the true distribution
of the test items, draw by draw; the pools are those of ``defaults.py``. LeWiDi: each method learns
on four fifths of the development set, or on 100, 140 or 200 of its items, and is evaluated on the
rest. What a method chooses, it chooses on the items it learns from. Test sets are not looked at.
`random-select` are its twenty members, `mixed` those of the mixed pool, `all` all of its members.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from defaults import REGIMES, pools

from edokit import EDOEnsemble, Objective, Predictions, simulate
from edokit.analysis.compare.method import make_method
from edokit.annotations.core import Annotations
from edokit.datasets.read import read_annotations
from edokit.metrics import ce, ce_items
from edokit.predictions.shards import read_predictions

HERE = Path(__file__).resolve().parent / "lewidi2023"
POOLS = {
    "random-select": ("random-select",),
    "mixed": ("mixed",),
    "all": ("random-select", "mixed", "per-annotator", "soft-ce", "soft-md"),
}
SIZES = (100, 140, 200)
# The default, before it was one (a fixed penalty), without a penalty, and others.
METHODS: dict[str, Callable[[], Any]] = {
    "edo": EDOEnsemble,
    "L2 0.03": lambda: EDOEnsemble(objective=Objective(reg=0.03)),
    "L2 0.3": lambda: EDOEnsemble(objective=Objective(reg=0.3)),
    "linear-pool": lambda: make_method("linear-pool"),
    "greedy": lambda: make_method("greedy"),
    "best-single": lambda: make_method("best-single"),
    "edo-paper": lambda: make_method("edo-paper"),
}
USUAL = ("edo", "L2 0.03", "L2 0.3", "linear-pool", "greedy", "best-single")


class Draw(NamedTuple):
    """ΔCE vs uniform of one fit, and its standard error over the items (0: the truth is known)."""

    difference: float
    error: float = 0.0


def together(folder: Path, names: tuple[str, ...], dev: Annotations) -> Predictions | None:
    """The predictions of several pools on dev, in one."""
    files = [folder / name / "dev.npz" for name in names]
    if not all(file.exists() for file in files):
        return None
    parts = [read_predictions(file).align(dev.items) for file in files]
    return Predictions.from_arrays(
        np.concatenate([part.probabilities for part in parts], axis=1),
        items=dev.items,
        members=[name for part in parts for name in part.members],
        classes=parts[0].classes,
        layout="NKC",
    )


def fitted(name: str, pool: Predictions, labels: Annotations, rows: Any) -> Any:
    return METHODS[name]().fit(pool.take(rows), labels.take(rows))


def on_simulator(names: list[str], seeds: int) -> Iterator[tuple[str, str, Draw]]:
    """Each draw of 100, 140 or 200 dev items, for every method."""
    for regime in REGIMES:
        for seed in range(seeds):
            simulation = simulate(regime, random_state=seed, items=(500, 600, 500))
            dev = simulation.annotations.split("dev")
            truth = simulation.truth[simulation.rows("test")]
            for kind, both in pools(simulation.annotations, seed).items():
                base = ce(np.asarray(both["test"].uniform), truth)
                for size in SIZES:
                    shuffled = np.random.default_rng([seed, size]).permutation(600)
                    for k in range(600 // size):
                        rows = shuffled[k * size : (k + 1) * size]
                        for name in names:
                            p = fitted(name, both["dev"], dev, rows).predict_proba(both["test"])
                            yield (
                                f"{kind}, {size} items",
                                name,
                                Draw(ce(np.asarray(p), truth) - base),
                            )


def on_lewidi(
    names: list[str], data: Path, seeds: int, only: str | None
) -> Iterator[tuple[str, str, Draw]]:
    """Each part of dev that was held out, for every method."""
    for folder in sorted(path for path in HERE.iterdir() if (path / "random-select").is_dir()):
        if only not in (None, folder.name):
            continue
        dev = read_annotations(data / folder.name, split="dev")
        for kind, several in POOLS.items():
            pool = together(folder, several, dev)
            if pool is None:
                continue
            for size in ("folds", *(size for size in SIZES if size <= 0.8 * len(pool))):
                for learn, judge in cuts(len(pool), size, seeds):
                    q = np.asarray(dev.soft_labels)[judge]
                    uniform = ce_items(np.asarray(pool.uniform)[judge], q)
                    for name in names:
                        p = fitted(name, pool, dev, learn).predict_proba(pool.take(judge))
                        above = ce_items(np.asarray(p), q) - uniform
                        found = Draw(float(above.mean()), float(above.std() / len(above) ** 0.5))
                        what = "four fifths" if size == "folds" else f"{size} items"
                        yield f"{folder.name}, {kind}, {what}", name, found


def cuts(items: int, size: Any, seeds: int) -> Iterator[tuple[Any, Any]]:
    """Rows to learn from and to judge on: five folds, or so many items and the rest."""
    for seed in range(seeds):
        rows = np.random.default_rng([1000, seed]).permutation(items)
        if size == "folds":
            for part in np.array_split(rows, 5):
                yield np.setdiff1d(rows, part), part
        else:
            for k in range(min(3, items // size)):
                part = rows[k * size : (k + 1) * size]
                yield part, np.setdiff1d(rows, part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the LeWiDi 2023 files")
    parser.add_argument("--dataset", help="only this one of them")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--methods", default=",".join(USUAL), help=f"of {', '.join(METHODS)}")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    names = args.methods.split(",")
    draws = (
        on_simulator(names, args.seeds)
        if args.data is None
        else on_lewidi(names, args.data, args.seeds, args.dataset)
    )
    found: dict[str, dict[str, list[Draw]]] = {}
    for case, name, draw in draws:
        found.setdefault(case, {}).setdefault(name, []).append(draw)
    print(
        "ΔCE vs uniform in thousandths: mean over draws, the worst draw, and the share of draws"
        " above 0 by more than two standard errors (simulated: above one thousandth).\n"
    )
    print("| learned on | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    everything: dict[str, list[Draw]] = {}
    for case, row in found.items():
        for name in names:
            everything.setdefault(name, []).extend(row[name])
        print(f"| {case} | " + " | ".join(cell(row[name]) for name in names) + " |")
    print("| all | " + " | ".join(cell(everything[name]) for name in names) + " |")


def cell(draws: list[Draw]) -> str:
    """Mean, worst, and share that is clearly worse than uniform."""
    differences, errors = 1000 * np.array(draws).T
    worse = (differences > np.where(errors > 0, 2 * errors, 1.0)).mean()
    return f"{differences.mean():+.1f}, {differences.max():+.1f}, {worse:.0%}"


if __name__ == "__main__":
    main()
