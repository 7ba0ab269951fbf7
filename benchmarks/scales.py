"""Do terms of ordered classes earn their keep? On the simulator.

    python benchmarks/scales.py            # 10 seeds
    python benchmarks/scales.py --seeds 2  # a quick look

Weights are learned on the dev split of ``seven-points`` and ``three-labels``; what counts is the
distance of the pool to the *true* distributions of the test split. Members are logistic regressions
on TF-IDF words with one annotator's label per item: four of all training items, three of a tenth of
them, and three whose predictions belong to other items. Values are differences to the default, with
the standard error over seeds; the first row of a table is the default itself.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from edokit import EDOEnsemble, Objective, Predictions, simulate
from edokit.annotations.core import Annotations
from edokit.metrics import compute_metrics

METHODS = {
    "seven-points": {
        "default (CE)": Objective(),
        "CE + RPS": Objective(rps=1.0),
        "CE + 10 RPS": Objective(rps=10.0),
        "RPS alone": Objective(f1=0.0, ce_weight=0.0, rps=1.0),
        "CE + W1": Objective(w1=1.0),
        "W1 alone": Objective(f1=0.0, ce_weight=0.0, w1=1.0),
    },
    "three-labels": {"default": Objective()},
}
METRICS = {"seven-points": ("ce", "rps", "w1"), "three-labels": ("ce", "md", "bs")}


def pool(people: Annotations, seed: int) -> dict[str, Predictions]:
    """Ten members, and their predictions of dev and test."""
    rng = np.random.default_rng(seed)
    scale = people.scale
    parts = {name: people.split(name) for name in ("train", "dev", "test")}
    words = TfidfVectorizer(min_df=2, sublinear_tf=True)
    X = {"train": words.fit_transform(parts["train"].texts)}
    X |= {name: words.transform(parts[name].texts) for name in ("dev", "test")}
    shares = np.cumsum(scale.rows(parts["train"].soft_labels), axis=1)[:, :-1]
    items = len(parts["train"].items)
    labels = len(people.classes)
    columns: dict[str, list[Any]] = {"dev": [], "test": []}
    for k in range(7):
        drawn = (rng.random((len(shares), 1)) >= shares).sum(axis=1).reshape(items, -1)
        some = rng.permutation(items)[: items if k < 4 else items // 10]
        for name, found in columns.items():
            each = [
                _probabilities(
                    X["train"][some], drawn[some, c], X[name], 2 if len(drawn[0]) > 1 else labels
                )
                for c in range(drawn.shape[1])
            ]
            rows = np.stack(each, axis=1).reshape(-1, each[0].shape[1])
            found.append(scale.from_rows(rows, labels))
    made = {}
    for name, found in columns.items():
        others = [found[k][rng.permutation(len(found[k]))] for k in range(3)]
        made[name] = Predictions.from_arrays(
            np.stack([*found, *others], axis=1),
            items=parts[name].items,
            classes=people.classes,
            layout="NKC",
            scale=scale,
        )
    return made


def _probabilities(X: Any, y: Any, new: Any, classes: int) -> Any:
    p = np.full((new.shape[0], classes), 1e-6)
    if len(set(y)) > 1:
        model = LogisticRegression(C=3.0, max_iter=200).fit(X, y)
        p[:, model.classes_] = model.predict_proba(new)
    else:
        p[:, y[0]] = 1.0
    return p / p.sum(axis=1, keepdims=True)


def main() -> None:
    """Print a table per regime."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    for regime, methods in METHODS.items():
        names = METRICS[regime]
        values = np.zeros((len(methods) + 1, seeds, len(names)))
        for seed in range(seeds):
            simulation = simulate(regime, random_state=seed)
            people = simulation.annotations
            scale = simulation.annotations.scale
            truth = simulation.truth[simulation.rows("test")]
            members = pool(people, seed)
            hard = scale.hard(truth)
            dev = people.split("dev")
            answers = [
                EDOEnsemble(objective=objective).fit(members["dev"], dev)
                for objective in methods.values()
            ]
            pools = [one.predict_proba(members["test"]) for one in answers]
            for row, p in enumerate([*pools, members["test"].uniform]):
                found = compute_metrics(np.asarray(p), truth, hard, metrics=names, scale=scale)
                values[row, seed] = [found[name] for name in names]
        print(f"\n| {regime}, to the truth | {' | '.join(map(str.upper, names))} |")
        print(f"|---|{'---|' * len(names)}")
        for row, name in enumerate([*methods, "uniform"]):
            gaps = values[row] - (values[0] if row else 0.0)
            mean = gaps.mean(axis=0)
            error = gaps.std(axis=0, ddof=1) / np.sqrt(seeds)
            cells = [
                f"{m:+.4f} ± {1.96 * e:.4f}" if row else f"{m:.4f}"
                for m, e in zip(mean, error, strict=True)
            ]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
