"""Which estimate of a trial predicts its score on new items, and which makes the better choice?

    python benchmarks/selection.py            # simulated people, and LeWiDi 2023 where it is
    python benchmarks/selection.py --quick    # one seed

A search judges its trials on the data they were fitted on (optimistic) or on held-out folds of
them (cross-fitted). New items are the simulation's test split; of LeWiDi they are one half of dev,
and the search has the other: no test set chooses a default. Every CE is taken less that of the
uniform mean of the members on the same items, since one part may be harder than the other. Prints
Markdown tables; ``docs/search.md`` says what follows from them. LeWiDi's files are looked for at
EDO_LEWIDI2023, else beside the repository; its members are those of ``benchmarks/lewidi2023``.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import spearmanr

from edokit.analysis.search import search
from edokit.analysis.search.options import SearchOptions
from edokit.analysis.search.space import SearchSpace
from edokit.datasets.read import read_annotations
from edokit.datasets.simulate.regimes import REGIMES
from edokit.datasets.simulate.simulation import simulate
from edokit.metrics import ce
from edokit.objective.pools import softmax
from edokit.predictions.shards import read_predictions

HERE = Path(__file__).resolve().parent
LEWIDI = Path(os.environ.get("EDO_LEWIDI2023", HERE.parent.parent / "shared" / "lewidi2023"))
KINDS = ("three of ten", "graded", "alike")
DATASETS = ("HS-Brexit", "ConvAbuse", "MD-Agreement")
JUDGES = ("optimistic", "cross-fitted")
MEMBERS = 10


class Pool(NamedTuple):
    """Ten members on the items to fit on (dev) and on new ones (test)."""

    name: str
    dev: np.ndarray  # [N, K, C]
    dev_labels: np.ndarray  # [N, C]
    test: np.ndarray
    test_labels: np.ndarray


class Row(NamedTuple):
    """What one search tells of the two estimates."""

    error: dict[str, float]  # mean |estimate − test| over the trials
    bias: dict[str, float]  # mean (estimate − test)
    chosen_bias: dict[str, float]  # the same for the trial that the estimate chooses
    ranks: dict[str, float]  # Spearman correlation of estimate and test over the trials
    test: dict[str, float]  # test score of the trial that a search by this estimate chooses


def simulated(seeds: int) -> Iterator[Pool]:
    """Simulated people, and members whose errors are planted."""
    for regime in REGIMES:
        for kind in KINDS:
            for seed in range(seeds):
                simulation = simulate(regime, random_state=seed)
                rng = np.random.default_rng(seed)
                parts = {}
                for split in ("dev", "test"):
                    truth = simulation.truth[simulation.rows(split)]
                    parts[split] = members(truth, kind, rng)
                people = simulation.annotations
                labels = [np.asarray(people.split(split).soft_labels) for split in ("dev", "test")]
                yield Pool(f"{regime}, {kind}", parts["dev"], labels[0], parts["test"], labels[1])


def members(truth: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Ten members [N, K, C] that know the truth [N, C] more or less (see ``gumbel_pools.py``)."""
    own = rng.normal(size=(len(truth), MEMBERS, truth.shape[1]))
    together = rng.normal(size=(len(truth), 1, truth.shape[1]))
    known = np.repeat(np.log(truth + 1e-3)[:, None], MEMBERS, axis=1)
    if kind == "three of ten":
        known[:, 3:] = np.log(truth.mean(axis=0))
        return softmax(known + np.repeat([0.7, 1.0], [3, MEMBERS - 3])[:, None] * own)
    if kind == "graded":
        return softmax(known + np.linspace(0.3, 3.0, MEMBERS)[:, None] * own)
    return softmax(known + 0.8 * together + 0.2 * own)


def real(seeds: int) -> Iterator[Pool]:
    """Ten of the twenty transformer members of each LeWiDi dataset on the two halves of dev, both
    drawn anew for every seed."""
    if not (LEWIDI / DATASETS[0]).is_dir():
        print(f"(no LeWiDi 2023 at {LEWIDI}: set EDO_LEWIDI2023)\n")
        return
    for dataset in DATASETS:
        people = read_annotations(LEWIDI / dataset, split="dev")
        table = read_predictions(HERE / "lewidi2023" / dataset / "random-select" / "dev.npz")
        table = table.align(people.items).order_classes(people.classes)
        P = np.asarray(table.probabilities, dtype=np.float64)
        q = np.asarray(people.soft_labels)
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            chosen = np.sort(rng.permutation(P.shape[1])[:MEMBERS])
            halves = np.array_split(rng.permutation(len(P)), 2)
            dev, test = (P[np.ix_(half, chosen)] for half in halves)
            yield Pool(dataset, dev, q[halves[0]], test, q[halves[1]])


def evaluated(pool: Pool, solver: str, space: SearchSpace, seed: int) -> Row:
    """A search by each estimate, and all their trials on test."""
    warnings.simplefilter("ignore")
    plan = SearchOptions(solver=solver, space=space, random_state=seed).plan()
    found = {
        judge: search(pool.dev, pool.dev_labels, replace(plan, judge=judge)) for judge in JUDGES
    }
    trials = [trial for result in found.values() for trial in result.trials]
    base = ce(pool.dev.mean(axis=1), pool.dev_labels)
    on_test = np.array([on_the_test(pool, trial.weights) for trial in trials])
    estimates = {
        name: np.array([t.estimates[name]["ce"] for t in trials]) - base for name in JUDGES
    }
    chosen = {name: found[name].chosen for name in JUDGES}
    test = {name: on_the_test(pool, trial.weights) for name, trial in chosen.items()}
    return Row(
        {name: float(np.abs(own - on_test).mean()) for name, own in estimates.items()},
        {name: float((own - on_test).mean()) for name, own in estimates.items()},
        {name: trial.ce - base - test[name] for name, trial in chosen.items()},
        {name: rank_correlation(own, on_test) for name, own in estimates.items()},
        test,
    )


def on_the_test(pool: Pool, weights: tuple[float, ...]) -> float:
    """Test CE less that of the uniform mean."""
    pooled = np.einsum("k,nkc->nc", np.array(weights), pool.test)
    return ce(pooled, pool.test_labels) - ce(pool.test.mean(axis=1), pool.test_labels)


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's; trials that differ by rounding alone are ties."""
    a = np.round(a, 9)
    b = np.round(b, 9)
    return float("nan") if np.ptp(a) == 0 or np.ptp(b) == 0 else float(spearmanr(a, b)[0])


def report(title: str, pools: list[Pool], solver: str, space: SearchSpace, jobs: int) -> None:
    print(f"\n{title}\n")
    both = [f"{judge} {what}" for what in ("bias", "chosen", "error", "ranks") for judge in JUDGES]
    header = ["people, members", "searches", *both, "test CE, optimistic", "cross-fitted less it"]
    print("| " + " | ".join(header) + " |")
    print("|---" * len(header) + "|")
    rows = Parallel(jobs)(
        delayed(evaluated)(pool, solver, space, seed) for seed, pool in enumerate(pools)
    )
    names = list(dict.fromkeys(pool.name for pool in pools))
    for name in [*names, "all"]:
        own = [row for row, pool in zip(rows, pools, strict=True) if name in (pool.name, "all")]
        cells = [str(len(own))]
        for part, form in (("bias", "+.4f"), ("chosen_bias", "+.4f"), ("error", ".4f")):
            cells += [mean([getattr(row, part)[judge] for row in own], form) for judge in JUDGES]
        cells += [mean([row.ranks[judge] for row in own], ".2f") for judge in JUDGES]
        cells.append(mean([row.test["optimistic"] for row in own], "+.4f"))
        gains = np.array([row.test["cross-fitted"] - row.test["optimistic"] for row in own])
        error = 1.96 * gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
        cells.append(f"{gains.mean():+.4f} ± {error:.4f}")
        print(f"| {name} | " + " | ".join(cells) + " |")


def mean(values: list[float], form: str) -> str:
    return format(float(np.nanmean(values)), form)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="of each simulated pool")
    parser.add_argument("--draws", type=int, default=10, help="of ten members of twenty, LeWiDi")
    parser.add_argument("--quick", action="store_true", help="one seed, one draw")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    seeds, draws = (1, 1) if arguments.quick else (arguments.seeds, arguments.draws)
    pools = {"Simulated": list(simulated(seeds)), "LeWiDi 2023": list(real(draws))}
    print("CE throughout; 50 trials, population 10, five folds; lowest CE on the front is chosen.")
    for solver, space in (
        ("gumbel", SearchSpace()),
        ("gumbel", SearchSpace.paper()),
        ("exact", SearchSpace(diversity="preserve", class_weights=[True, False])),
    ):
        for where, several in pools.items():
            if several:
                paper = ", the paper's space" if space == SearchSpace.paper() else ""
                report(f"{where}, `{solver}`{paper}", several, solver, space, arguments.jobs)


if __name__ == "__main__":
    main()
