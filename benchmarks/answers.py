"""Which step after pooling serves a metric best? Two ways to sharpen, by cross-validation.

    python benchmarks/answers.py                                  # simulated points of a scale
    python benchmarks/answers.py --data FOLDER                    # and LeWiDi 2025's, unzipped

Each step has one temperature, fitted on four fifths of the items and measured on the rest: of the
probabilities, or of each cumulative share. Simulated: the pool of ``scales.py`` on 1,000 items with
4 to 6 annotators each. LeWiDi: members are TF-IDF logistic regressions trained on train with one
annotator's label each; folds are of dev. Its test sets are not looked at.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scales import pool

from edokit import EDOEnsemble, simulate
from edokit._types import Bools, Floats
from edokit.ensemble.answers import _STEPS, LOG_TEMPERATURES, ORDERED_STEP, best_temperature
from edokit.metrics import md_items, w1_items

FOLDS = 5
ROUNDS = 4
METRICS = {"w1": w1_items, "md": md_items}


def simulated() -> Iterator[tuple[str, Floats, Floats]]:
    """Pool and soft labels of the test items of three draws of ``seven-points``."""
    for seed in range(3):
        people = simulate("seven-points", random_state=seed).annotations
        members = pool(people, seed)
        fitted = EDOEnsemble().fit(members["dev"], people.split("dev"))
        q = np.asarray(people.split("test").soft_labels)
        yield f"seven-points, draw {seed}", np.asarray(fitted.predict_proba(members["test"])), q


def lewidi(folder: Path) -> Iterator[tuple[str, Floats, Floats]]:
    """Pool and soft labels of the development items of CSC and Paraphrase."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    for name, points in (("CSC", range(1, 7)), ("Paraphrase", range(-5, 6))):
        train, train_q = _items(next(folder.rglob(f"{name}_train.json")), points)
        dev, q = _items(next(folder.rglob(f"{name}_dev.json")), points)
        texts = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        X = texts.fit_transform(train)
        new = texts.transform(dev)
        rng = np.random.default_rng(0)
        members = []
        for _ in range(4):
            drawn_labels = [rng.choice(len(points), p=row) for row in train_q]
            model = LogisticRegression(max_iter=200).fit(X, drawn_labels)
            p = np.full((len(dev), len(points)), 1e-6)
            p[:, model.classes_] = model.predict_proba(new)
            members.append(p / p.sum(axis=1, keepdims=True))
        yield f"{name} dev, {len(dev)} items", np.mean(members, axis=0), q


def _items(path: Path, points: range) -> tuple[list[str], Floats]:
    """Texts [N] and soft labels [N, C]."""
    items = json.loads(path.read_text(encoding="utf-8")).values()
    counts = np.zeros((len(items), len(points)))
    for i, item in enumerate(items):
        np.add.at(counts[i], [int(label) - points[0] for label in item["annotations"].values()], 1)
    texts = ["\n".join(item["text"].values()) for item in items]
    return texts, counts / counts.sum(axis=1, keepdims=True)


def held_out(p: Floats, q: Floats, step: str, metric: str) -> Floats:
    """The metric of every item [N] whose fold was held out, the mean over shuffles."""
    held_out_losses = np.zeros((ROUNDS, len(p)))

    def losses_at(temperature: float, rows: Bools) -> Floats:
        return METRICS[metric](_STEPS[step](p[rows], temperature), q[rows])

    for r in range(ROUNDS):
        fold = np.random.default_rng(r).permutation(len(p)) % FOLDS
        for k in range(FOLDS):
            is_train = fold != k
            temperatures = np.exp(LOG_TEMPERATURES)
            losses = np.array([losses_at(temperature, is_train) for temperature in temperatures])
            best = best_temperature(losses)
            held_out_losses[r, ~is_train] = losses_at(temperatures[best], ~is_train)
    return held_out_losses.mean(axis=0)


def main() -> None:
    """Print a row per dataset and metric."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of LeWiDi 2025")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    datasets = list(simulated())
    if arguments.data is not None:
        datasets += lewidi(arguments.data)
    print("| data | metric | pool | temperature | cumulative | cumulative − temperature |")
    print("|---|---|---|---|---|---|")
    for name, p, q in datasets:
        for metric, item_losses in METRICS.items():
            temperature = held_out(p, q, "temperature", metric)
            cumulative = held_out(p, q, ORDERED_STEP, metric)
            gap = cumulative - temperature
            error = 1.96 * gap.std() / np.sqrt(len(gap))
            print(
                f"| {name} | {metric} | {item_losses(p, q).mean():.3f} | {temperature.mean():.3f} |"
                f" {cumulative.mean():.3f} | {gap.mean():+.3f} ± {error:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
