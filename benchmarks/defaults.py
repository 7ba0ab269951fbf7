"""Which choices bring the pool closest to the truth? Measured on the simulator, where it is known.

    python benchmarks/defaults.py            # 20 seeds, some minutes
    python benchmarks/defaults.py --seeds 3  # a quick look

Weights are learned on the dev split; what counts is the cross-entropy of the test split's *true*
distribution. Pools: `alike` (ten linear members), `noise` (three of them, and seven that answer
at random: their answers belong to other items), `mixed` (four linear members, three that saw a
tenth of the items, three that answer at random).
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.base import clone

from edokit import EDOEnsemble, Objective, Predictions, simulate
from edokit.annotations.core import Annotations
from edokit.demo import train_quick_members
from edokit.metrics import ce

REGIMES = {"three-voices": None, "two-camps": None, "partial-panel": 0.5}
# The pool's cross-entropy alone, exactly solved, and what each method changes in it.
OBJECTIVES = {
    "CE alone": Objective(f1=0.0, reg=0.0),
    "L2 0.001": Objective(f1=0.0, reg=1e-3),
    "L2 0.01": Objective(f1=0.0, reg=1e-2),
    "L2 0.03": Objective(f1=0.0, reg=3e-2),
    "L2 0.1": Objective(f1=0.0, reg=0.1),
    "F1 0.3, L2 0.01": Objective(f1=0.3, reg=1e-2),
    "F1 0.3, L2 0.03": Objective(f1=0.3, reg=3e-2),
    "F1 1, L2 0.01": Objective(f1=1.0, reg=1e-2),
    "preserve 0.03, L2 0.01": Objective(f1=0.0, div=0.03, reg=1e-2),
    "preserve 0.1, L2 0.01": Objective(f1=0.0, div=0.1, reg=1e-2),
    "preserve 1, L2 0.01": Objective(f1=0.0, div=1.0, reg=1e-2),
    "suppress 0.1, L2 0.01": Objective(f1=0.0, div=0.1, reg=1e-2, diversity="suppress"),
    "class weights, L2 0.01": Objective(f1=0.0, class_weights=True, reg=1e-2),
    "CE all, L2 0.01": Objective(f1=0.0, ce="all", reg=1e-2),
}
L2 = Objective(f1=0.0, reg=1e-2)
METHODS = {
    "EDO, default": EDOEnsemble(),
    **{name: EDOEnsemble(objective=objective) for name, objective in OBJECTIVES.items()},
    "log pool, L2 0.01": EDOEnsemble(objective=L2, pool="log"),
    "temperature, L2 0.01": EDOEnsemble(objective=L2, recalibrate="temperature"),
    "paper-fixed (gumbel)": EDOEnsemble("paper-fixed"),
    "paper-fixed, exact": EDOEnsemble("paper-fixed", solver="exact"),
}


def pools(people: Annotations, seed: int) -> dict[str, dict[str, Predictions]]:
    """The three pools, each with its predictions of dev and test."""
    rng = np.random.default_rng(seed)
    good = train_quick_members(people, 10, seed)
    train = np.flatnonzero(people.splits == "train")
    tenth = rng.permutation(train)[: len(train) // 10]
    not_train = np.flatnonzero(people.splits != "train")
    weak = train_quick_members(
        people.take(np.sort(np.concatenate([tenth, not_train]))), 3, seed + 100
    )
    built: dict[str, dict[str, Predictions]] = {"alike": good, "noise": {}, "mixed": {}}
    for split, answers in good.items():
        P = answers.probabilities
        random = np.stack([P[rng.permutation(len(P)), k] for k in range(7)], axis=1)
        parts = {
            "noise": [P[:, :3], random],
            "mixed": [P[:, :4], weak[split].probabilities, random[:, :3]],
        }
        for name, arrays in parts.items():
            built[name][split] = Predictions.from_arrays(
                np.concatenate(arrays, axis=1),
                items=answers.items,
                classes=answers.classes,
                layout="NKC",
            )
    return built


Gains = dict[str, list[tuple[float, int]]]
"""By method: cross-entropy to the truth less that of the uniform pool, and size, of each seed."""


def measure(seeds: int) -> dict[str, Gains]:
    """The gains of every method in each pool."""
    results: dict[str, Gains] = {}
    for regime, items in REGIMES.items():
        for seed in range(seeds):
            simulation = simulate(regime, random_state=seed, items=items)
            dev = simulation.annotations.split("dev")
            truth = simulation.truth[simulation.rows("test")]
            for name, pool in pools(simulation.annotations, seed).items():
                P = pool["test"].probabilities
                base = ce(P.mean(axis=1), truth)
                rows = results.setdefault(f"{regime}, {name}", {})
                single = EDOEnsemble().fit(pool["dev"], dev).member_ce_.argmin()
                rows.setdefault("best single", []).append((ce(P[:, single], truth) - base, 1))
                for method, ensemble in METHODS.items():
                    fitted = clone(ensemble).fit(pool["dev"], dev)
                    p = fitted.predict_proba(pool["test"])
                    gain = ce(np.asarray(p), truth) - base
                    rows.setdefault(method, []).append((gain, fitted.size_))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    results = measure(seeds)
    names = list(results)
    print(
        f"Cross-entropy to the truth less that of the uniform pool, in thousandths, mean over"
        f" {seeds} seeds ± 1.96 standard errors; in brackets the mean size.\n"
    )
    print("| method | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for method in ["best single", *METHODS]:
        cells = []
        for name in names:
            gains, sizes = np.array(results[name][method]).T * np.array([[1000.0], [1.0]])
            error = np.nan
            if len(gains) > 1:
                error = 1.96 * gains.std(ddof=1) / np.sqrt(len(gains))
            cells.append(f"{gains.mean():+.1f} ± {error:.1f} ({sizes.mean():.1f})")
        print(f"| {method} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
