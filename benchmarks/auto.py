"""Does it pay to settle the kind of pool on the fit data? Held-out cross-entropy, dev sets only.

    python benchmarks/auto.py --data ../shared/lewidi2023    # the committed LeWiDi pools
    python benchmarks/auto.py --simulated 6                  # simulated people, truth known

LeWiDi: each method learns on four fifths of the development set and is judged on the last fifth,
in turns, for several ways to cut it; whatever a method settles by cross-fitting, it settles within
the four fifths. Test sets are not looked at. `random-select` are its twenty members, `mixed` those
of the mixed pool, `all` every committed member, in the groups that they were trained in. Simulated:
the pools of `defaults.py`, with the groups that they were built from, with groups at random, and
without any; judged by the true distribution of the test items.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from defaults import REGIMES, pools

from edokit import EDOEnsemble, Predictions, simulate
from edokit.annotations import Annotations
from edokit.baselines import make_method
from edokit.datasets import read_annotations
from edokit.metrics import ce, ce_items
from edokit.predictions import read_predictions

HERE = Path(__file__).resolve().parent / "lewidi2023"
POOLS = {
    "random-select": ("random-select",),
    "mixed": ("mixed",),
    "all": ("random-select", "mixed", "per-annotator", "soft-ce", "soft-md"),
}
METHODS = ("uniform", "best-single", "greedy", "linear-pool", "log-pool")
PRESETS = ("default", "auto")
GROUPS = {"alike": "a" * 10, "noise": "aaabbbbbbb", "mixed": "aaaabbbccc"}


def made(name: str) -> Any:
    """The method or the preset of this name."""
    return EDOEnsemble(name) if name in PRESETS else make_method(name)


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
        groups=[name for part in parts for name in part.groups or ()],
        layout="NKC",
    )


def held_out(pool: Predictions, dev: Annotations, name: str, cuts: int) -> np.ndarray:
    """Cross-entropy of each item when it was not learned from [N], mean over the cuts."""
    losses = np.zeros(len(pool))
    for cut in range(cuts):
        rows = np.random.default_rng([1000, cut]).permutation(len(pool))
        for part in np.array_split(rows, 5):
            rest = np.setdiff1d(rows, part)
            method = made(name).fit(pool.take(rest), dev.take(rest))
            p = method.predict_proba(pool.take(part))
            losses[part] += ce_items(p, dev.soft_labels[part]) / cuts
    return losses


def on_lewidi(data: Path, cuts: int) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """For each pool, the held-out losses of every method."""
    for folder in sorted(path for path in HERE.iterdir() if (path / "random-select").is_dir()):
        dev = read_annotations(data / folder.name, split="dev")
        for kind, names in POOLS.items():
            pool = together(folder, names, dev)
            if pool is not None:
                yield (
                    f"{folder.name}, {kind}",
                    {name: held_out(pool, dev, name, cuts) for name in (*METHODS, *PRESETS)},
                )


def on_people(seeds: int) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """For each simulated pool, the distance to the truth of every method, by seed."""
    found: dict[str, dict[str, list[float]]] = {}
    for regime, items in REGIMES.items():
        for seed in range(seeds):
            simulation = simulate(regime, random_state=seed, items=items)
            dev = simulation.annotations.split("dev")
            truth = simulation.truth[simulation.rows("test")]
            chance = [f"g{g}" for g in np.random.default_rng(seed).integers(0, 3, 10)]
            for kind, both in pools(simulation.annotations, seed).items():
                ways: dict[str, Any] = {"no": None, "true": GROUPS[kind], "random": chance}
                for way, groups in ways.items():
                    rows = found.setdefault(f"{regime}, {kind}, {way} groups", {})
                    for name in (*METHODS, *PRESETS):
                        fitted = made(name).fit(_grouped(both["dev"], groups), dev)
                        p = fitted.predict_proba(_grouped(both["test"], groups))
                        rows.setdefault(name, []).append(ce(p, truth))
    for name, rows in found.items():
        yield name, {method: np.array(values) for method, values in rows.items()}


def _grouped(pool: Predictions, groups: Any) -> Predictions:
    if groups is None:
        return pool
    return pool.grouped(dict(zip(pool.members, groups, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the LeWiDi 2023 files")
    parser.add_argument("--cuts", type=int, default=2)
    parser.add_argument("--simulated", type=int, default=0, help="seeds")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = on_people(args.simulated) if args.simulated else on_lewidi(args.data, args.cuts)
    print("Cross-entropy less that of the uniform mean, in thousandths, ± one standard error.\n")
    print("| pool | " + " | ".join((*METHODS[1:], *PRESETS)) + " |")
    print("|---" * (len(METHODS) + len(PRESETS)) + "|")
    means: dict[str, list[float]] = {}
    for name, losses in tables:
        cells = []
        for method in (*METHODS[1:], *PRESETS):
            gaps = 1000 * (losses[method] - losses["uniform"])
            means.setdefault(method, []).append(float(gaps.mean()))
            cells.append(f"{gaps.mean():+.1f} ± {gaps.std() / np.sqrt(len(gaps)):.1f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print("| mean | " + " | ".join(f"{np.mean(values):+.1f}" for values in means.values()) + " |")


if __name__ == "__main__":
    main()
