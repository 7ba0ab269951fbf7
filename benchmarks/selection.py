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
    """The quality of the two estimates in one search, by estimate."""

    error: dict[str, float]  # mean |estimate − test| over the trials
    bias: dict[str, float]  # mean (estimate − test)
    chosen_bias: dict[str, float]  # estimate − test of the trial that the estimate chooses
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
    member_noise = rng.normal(size=(len(truth), MEMBERS, truth.shape[1]))
    shared_noise = rng.normal(size=(len(truth), 1, truth.shape[1]))
    logits = np.repeat(np.log(truth + 1e-3)[:, None], MEMBERS, axis=1)
    if kind == "three of ten":
        logits[:, 3:] = np.log(truth.mean(axis=0))
        return softmax(logits + np.repeat([0.7, 1.0], [3, MEMBERS - 3])[:, None] * member_noise)
    if kind == "graded":
        return softmax(logits + np.linspace(0.3, 3.0, MEMBERS)[:, None] * member_noise)
    return softmax(logits + 0.8 * shared_noise + 0.2 * member_noise)


def real(seeds: int) -> Iterator[Pool]:
    """Ten of the twenty transformer members of each LeWiDi dataset on the two halves of dev.

    Members and halves are drawn anew for every seed.
    """
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
            drawn_members = np.sort(rng.permutation(P.shape[1])[:MEMBERS])
            dev, test = np.array_split(rng.permutation(len(P)), 2)
            P_dev = P[np.ix_(dev, drawn_members)]
            P_test = P[np.ix_(test, drawn_members)]
            yield Pool(dataset, P_dev, q[dev], P_test, q[test])


def evaluated(pool: Pool, solver: str, space: SearchSpace, seed: int) -> Row:
    """A search by each estimate, and all their trials on test."""
    warnings.simplefilter("ignore")
    plan = SearchOptions(solver=solver, space=space, random_state=seed).plan()
    base = ce(pool.dev.mean(axis=1), pool.dev_labels)
    trials = []
    chosen_trials = {}
    for judge in JUDGES:
        result = search(pool.dev, pool.dev_labels, replace(plan, judge=judge))
        trials += result.trials
        chosen_trials[judge] = result.chosen
    on_test = np.array([on_the_test(pool, trial.weights) for trial in trials])
    row = Row({}, {}, {}, {}, {})
    for judge, chosen_trial in chosen_trials.items():
        estimates = np.array([trial.estimates[judge]["ce"] for trial in trials]) - base
        row.error[judge] = float(np.abs(estimates - on_test).mean())
        row.bias[judge] = float((estimates - on_test).mean())
        row.ranks[judge] = rank_correlation(estimates, on_test)
        row.test[judge] = on_the_test(pool, chosen_trial.weights)
        row.chosen_bias[judge] = chosen_trial.ce - base - row.test[judge]
    return row


def on_the_test(pool: Pool, weights: tuple[float, ...]) -> float:
    """Test CE less that of the uniform mean."""
    pooled = np.einsum("k,nkc->nc", np.array(weights), pool.test)
    return ce(pooled, pool.test_labels) - ce(pool.test.mean(axis=1), pool.test_labels)


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's correlation; trials that differ by rounding alone are ties."""
    a = np.round(a, 9)
    b = np.round(b, 9)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b)[0])


COLUMNS = {
    "bias": ("bias", "+.4f"),
    "chosen": ("chosen_bias", "+.4f"),
    "error": ("error", ".4f"),
    "ranks": ("ranks", ".2f"),
}
"""By title, the field of a row and the format of its mean."""


def report(title: str, pools: list[Pool], solver: str, space: SearchSpace, jobs: int) -> None:
    """Print the table of one search space."""
    print(f"\n{title}\n")
    header = ["people, members", "searches"]
    for column in COLUMNS:
        header += [f"{judge} {column}" for judge in JUDGES]
    header += ["test CE, optimistic", "cross-fitted less it"]
    print("| " + " | ".join(header) + " |")
    print("|---" * len(header) + "|")
    rows = Parallel(jobs)(
        delayed(evaluated)(pool, solver, space, seed) for seed, pool in enumerate(pools)
    )
    names = list(dict.fromkeys(pool.name for pool in pools))
    for name in [*names, "all"]:
        pool_rows = [
            row for row, pool in zip(rows, pools, strict=True) if name in (pool.name, "all")
        ]
        cells = [str(len(pool_rows))]
        for field, form in COLUMNS.values():
            for judge in JUDGES:
                cells.append(mean([getattr(row, field)[judge] for row in pool_rows], form))
        cells.append(mean([row.test["optimistic"] for row in pool_rows], "+.4f"))
        gains = np.array([row.test["cross-fitted"] - row.test["optimistic"] for row in pool_rows])
        error = np.nan
        if len(gains) > 1:
            error = 1.96 * gains.std(ddof=1) / np.sqrt(len(gains))
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
    seeds = arguments.seeds
    draws = arguments.draws
    if arguments.quick:
        seeds = 1
        draws = 1
    pools = {"Simulated": list(simulated(seeds)), "LeWiDi 2023": list(real(draws))}
    print("CE throughout; 50 trials, population 10, five folds; lowest CE on the front is chosen.")
    for solver, space in (
        ("gumbel", SearchSpace()),
        ("gumbel", SearchSpace.paper()),
        ("exact", SearchSpace(diversity="preserve", class_weights=[True, False])),
    ):
        for source, source_pools in pools.items():
            title = f"{source}, `{solver}`"
            if space == SearchSpace.paper():
                title += ", the paper's space"
            if source_pools:
                report(title, source_pools, solver, space, arguments.jobs)


if __name__ == "__main__":
    main()
