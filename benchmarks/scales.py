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

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from edokit import EDOEnsemble, Objective, Predictions, simulate
from edokit._types import Floats, Ints
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
    members: dict[str, list[Floats]] = {"dev": [], "test": []}
    for k in range(7):
        drawn_labels = (rng.random((len(shares), 1)) >= shares).sum(axis=1).reshape(items, -1)
        n_columns = drawn_labels.shape[1]
        n_classes = 2 if n_columns > 1 else labels
        train_rows = rng.permutation(items)
        if k >= 4:
            train_rows = train_rows[: items // 10]
        X_train = X["train"][train_rows]
        for name, member_probabilities in members.items():
            columns = []
            for column in range(n_columns):
                y = drawn_labels[train_rows, column]
                columns.append(_probabilities(X_train, y, X[name], n_classes))
            rows = np.stack(columns, axis=1).reshape(-1, n_classes)
            member_probabilities.append(scale.from_rows(rows, labels))
    predictions = {}
    for name, member_probabilities in members.items():
        # Three members whose predictions belong to other items.
        permuted = [p[rng.permutation(len(p))] for p in member_probabilities[:3]]
        predictions[name] = Predictions.from_arrays(
            np.stack([*member_probabilities, *permuted], axis=1),
            items=parts[name].items,
            classes=people.classes,
            layout="NKC",
            scale=scale,
        )
    return predictions


def _probabilities(X: sparse.csr_matrix, y: Ints, X_new: sparse.csr_matrix, classes: int) -> Floats:
    """Probabilities of classes by a regression that is fitted to X and y."""
    p = np.full((X_new.shape[0], classes), 1e-6)
    if len(set(y)) > 1:
        model = LogisticRegression(C=3.0, max_iter=200).fit(X, y)
        p[:, model.classes_] = model.predict_proba(X_new)
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
            answers = []
            for objective in methods.values():
                ensemble = EDOEnsemble(objective=objective).fit(members["dev"], dev)
                answers.append(ensemble.predict_proba(members["test"]))
            answers.append(members["test"].uniform)
            for row, p in enumerate(answers):
                scores = compute_metrics(np.asarray(p), truth, hard, metrics=names, scale=scale)
                values[row, seed] = [scores[name] for name in names]
        print(f"\n| {regime}, to the truth | {' | '.join(map(str.upper, names))} |")
        print(f"|---|{'---|' * len(names)}")
        default, *further_methods = methods
        cells = [f"{mean:.4f}" for mean in values[0].mean(axis=0)]
        print(f"| {default} | {' | '.join(cells)} |", flush=True)
        for row, name in enumerate([*further_methods, "uniform"], 1):
            gaps = values[row] - values[0]
            errors = gaps.std(axis=0, ddof=1) / np.sqrt(seeds)
            cells = [
                f"{mean:+.4f} ± {1.96 * error:.4f}"
                for mean, error in zip(gaps.mean(axis=0), errors, strict=True)
            ]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
