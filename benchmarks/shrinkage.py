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
from typing import NamedTuple

import numpy as np
from defaults import REGIMES, pools

from edokit import EDOEnsemble, Objective, Predictions, simulate
from edokit._types import Ints
from edokit.analysis.compare.method import Method, make_method
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
METHODS: dict[str, Callable[[], Method]] = {
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
    """ΔCE vs uniform of one fit, and its standard error over items (0 if the truth is known)."""

    difference: float
    error: float = 0.0


def joined_pools(folder: Path, names: tuple[str, ...], dev: Annotations) -> Predictions | None:
    """The predictions of several pools on dev as one, or None if one is missing."""
    files = [folder / name / "dev.npz" for name in names]
    if not all(file.exists() for file in files):
        return None
    parts = [read_predictions(file).align(dev.items) for file in files]
    members: list[str] = []
    for part in parts:
        members += part.members
    return Predictions.from_arrays(
        np.concatenate([part.probabilities for part in parts], axis=1),
        items=dev.items,
        members=members,
        classes=parts[0].classes,
        layout="NKC",
    )


def fitted(name: str, pool: Predictions, labels: Annotations, rows: Ints) -> Method:
    """A method that learned from some items."""
    return METHODS[name]().fit(pool.take(rows), labels.take(rows))


def on_simulator(names: list[str], seeds: int) -> Iterator[tuple[str, str, Draw]]:
    """Each draw of 100, 140 or 200 dev items, for every method."""
    for regime in REGIMES:
        for seed in range(seeds):
            simulation = simulate(regime, random_state=seed, items=(500, 600, 500))
            dev = simulation.annotations.split("dev")
            truth = simulation.truth[simulation.rows("test")]
            for kind, pool in pools(simulation.annotations, seed).items():
                base = ce(np.asarray(pool["test"].uniform), truth)
                for size in SIZES:
                    shuffled = np.random.default_rng([seed, size]).permutation(600)
                    for k in range(600 // size):
                        rows = shuffled[k * size : (k + 1) * size]
                        for name in names:
                            p = fitted(name, pool["dev"], dev, rows).predict_proba(pool["test"])
                            difference = ce(np.asarray(p), truth) - base
                            yield f"{kind}, {size} items", name, Draw(difference)


def on_lewidi(
    names: list[str], data: Path, seeds: int, only: str | None
) -> Iterator[tuple[str, str, Draw]]:
    """Each part of dev that was held out, for every method."""
    for folder in sorted(path for path in HERE.iterdir() if (path / "random-select").is_dir()):
        if only not in (None, folder.name):
            continue
        dev = read_annotations(data / folder.name, split="dev")
        for kind, pool_names in POOLS.items():
            pool = joined_pools(folder, pool_names, dev)
            if pool is None:
                continue
            for size, learn, judge in cuts(len(pool), seeds):
                q = np.asarray(dev.soft_labels)[judge]
                uniform = ce_items(np.asarray(pool.uniform)[judge], q)
                for name in names:
                    p = fitted(name, pool, dev, learn).predict_proba(pool.take(judge))
                    above = ce_items(np.asarray(p), q) - uniform
                    draw = Draw(float(above.mean()), float(above.std() / len(above) ** 0.5))
                    yield f"{folder.name}, {kind}, {size}", name, draw


def cuts(items: int, seeds: int) -> Iterator[tuple[str, Ints, Ints]]:
    """The size of the part to learn from, its rows, and the rows to judge on."""
    for seed in range(seeds):
        rows = np.random.default_rng([1000, seed]).permutation(items)
        for part in np.array_split(rows, 5):
            yield "four fifths", np.setdiff1d(rows, part), part
    for size in SIZES:
        if size > 0.8 * items:
            continue
        for seed in range(seeds):
            rows = np.random.default_rng([1000, seed]).permutation(items)
            for k in range(min(3, items // size)):
                part = rows[k * size : (k + 1) * size]
                yield f"{size} items", part, np.setdiff1d(rows, part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the LeWiDi 2023 files")
    parser.add_argument("--dataset", help="only this one of them")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--methods", default=",".join(USUAL), help=f"of {', '.join(METHODS)}")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    names = args.methods.split(",")
    if args.data is None:
        draws = on_simulator(names, args.seeds)
    else:
        draws = on_lewidi(names, args.data, args.seeds, args.dataset)
    draws_by_case: dict[str, dict[str, list[Draw]]] = {}
    for case, name, draw in draws:
        draws_by_case.setdefault(case, {}).setdefault(name, []).append(draw)
    print(
        "ΔCE vs uniform in thousandths: mean over draws, the worst draw, and the share of draws"
        " above 0 by more than two standard errors (simulated: above one thousandth).\n"
    )
    print("| learned on | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    everything: dict[str, list[Draw]] = {}
    for case, row in draws_by_case.items():
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
