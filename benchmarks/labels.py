"""Which labels to check, and which items to label (again), beside cleanlab.

    pip install cleanlab==2.9.0
    python benchmarks/labels.py slips --lewidi FOLDER   labels that look wrong, precision at 50
    python benchmarks/labels.py again                   where the next labels should go

Slips are simulated: 3 % of the labels become another class, drawn at random. The simulated and the
real tables hold labels that are wrong already, or that just look wrong, and these count as false
alarms for both sides. Both get the same answers of the same classifier (TF-IDF, logistic
regression, five folds).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from cleanlab.multiannotator import get_active_learning_scores, get_label_quality_multiannotator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import edokit
from edokit import Annotations, EDOWarning
from edokit._types import Bools, Floats, Ints
from edokit.analysis.fit_items import FitItems
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.labels import check_annotations
from edokit.analysis.labels.again import update_by_labels
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.reviews import ExistingLabels, review
from edokit.predictions.core import Predictions

SLIPS = 0.03
CHECKED = 50
LEWIDI = ("HS-Brexit", "ConvAbuse", "ArMIS", "MD-Agreement")
REGIMES = ("two-camps", "three-voices", "partial-panel", "crowd")


def learn(texts: list[str], soft_labels: Floats) -> Callable[[list[str]], Floats]:
    """Return a classifier that learned the shares of annotators."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
    vectors = vectorizer.fit_transform(texts)
    n_items, n_classes = soft_labels.shape
    rows = np.repeat(np.arange(n_items), n_classes)
    classes = np.tile(np.arange(n_classes), n_items)
    weights = soft_labels.ravel()
    has_weight = weights > 0
    model = LogisticRegression(max_iter=300)
    model.fit(vectors[rows[has_weight]], classes[has_weight], sample_weight=weights[has_weight])

    def predict(new_texts: list[str]) -> Floats:
        p = np.full((len(new_texts), n_classes), 1e-9)
        p[:, model.classes_] = model.predict_proba(vectorizer.transform(new_texts))
        return p / p.sum(axis=1, keepdims=True)

    return predict


def cross_fit(annotations: Annotations) -> Floats:
    """Answers to each text of a classifier that has not seen it [N, C]."""
    texts = [str(text) for text in annotations.whole_texts]
    soft_labels = annotations.soft_labels
    folds = np.random.default_rng(0).permutation(len(texts)) % 5
    answers = np.zeros_like(soft_labels)
    for fold in range(5):
        learned = np.flatnonzero(folds != fold)
        held_out = np.flatnonzero(folds == fold)
        predict = learn([texts[i] for i in learned], soft_labels[learned])
        answers[held_out] = predict([texts[i] for i in held_out])
    return answers


# --- Slips ----------------------------------------------------------------------------------------


def with_slips(annotations: Annotations, seed: int) -> tuple[Annotations, Bools]:
    """The annotations with some labels turned into another class, and a mask of these [M]."""
    rng = np.random.default_rng(seed)
    codes = annotations.label_codes.copy()
    is_slip = rng.random(len(codes)) < SLIPS
    n_classes = len(annotations.classes)
    other_classes = rng.integers(1, n_classes, is_slip.sum())
    codes[is_slip] = (codes[is_slip] + other_classes) % n_classes
    return replace(annotations, label_codes=codes), is_slip[~annotations.repeated]


def cleanlab_scores(annotations: Annotations, answers: Floats) -> Floats:
    """cleanlab's quality of each label, in the order of the annotations."""
    labels = HumanLabels(annotations)
    matrix = label_matrix(labels)
    quality = get_label_quality_multiannotator(pd.DataFrame(matrix), answers, verbose=False)
    scores = quality["detailed_label_quality"].to_numpy()
    return scores[labels.item_codes, labels.annotator_codes]


def label_matrix(labels: HumanLabels) -> Floats:
    """Class codes by item and annotator [N, A]; NaN without a label."""
    matrix = np.full((len(labels.counts), len(labels.annotations.annotators)), np.nan)
    matrix[labels.item_codes, labels.annotator_codes] = labels.shares.argmax(axis=1)
    return matrix


def precision(scores: Floats, is_slip: Bools) -> float:
    """The share of slips among the labels with the lowest scores."""
    return float(is_slip[np.argsort(scores, kind="stable")[:CHECKED]].mean())


def slip_rows(name: str, annotations: Annotations, seeds: int) -> Iterator[str]:
    """Precision at 50 of each ranking, the mean over seeds."""
    rows: dict[str, list[float]] = {}
    for seed in range(seeds):
        slipped, is_slip = with_slips(annotations, seed)
        answers = cross_fit(slipped)
        labels = HumanLabels(slipped)
        scores = {
            "with an ensemble": check_annotations(slipped, answers).probabilities,
            "from the table": check_annotations(slipped, None).probabilities,
            "cleanlab": cleanlab_scores(slipped, answers),
            "the classifier alone": (labels.shares * answers[labels.item_codes]).sum(axis=1),
        }
        for title, values in scores.items():
            rows.setdefault(title, []).append(precision(values, is_slip))
        rows.setdefault("slips", []).append(float(is_slip.sum()))
    n_slips = np.mean(rows.pop("slips"))
    cells = [f"{np.mean(values):.2f}" for values in rows.values()]
    yield f"| {name} | {n_slips:.0f} of {len(annotations)} | {' | '.join(cells)} |"


def slips(lewidi: Path | None, seeds: int) -> Iterator[str]:
    yield "| table | slips | with an ensemble | from the table | cleanlab | the classifier alone |"
    yield "|---|---|---|---|---|---|"
    for regime in REGIMES:
        simulated = edokit.simulate(regime, random_state=500, items=(800, 0, 1))
        yield from slip_rows(regime, simulated.annotations.split("train"), seeds)
    if lewidi is not None:
        for name in LEWIDI:
            annotations = edokit.read_annotations(lewidi / name).split("train", "dev")
            yield from slip_rows(name, annotations, seeds)


# --- The next label -------------------------------------------------------------------------------


def subset(annotations: Annotations, kept: Bools) -> Annotations:
    """Some of the labels."""
    return replace(
        annotations,
        item_codes=annotations.item_codes[kept],
        annotator_codes=annotations.annotator_codes[kept],
        annotation_columns={},
        label_codes=annotations.label_codes[kept],
    )


def draw_labels(annotations: Annotations, n_more: Ints, kept: Bools, seed: int) -> Bools:
    """Keep ``n_more`` [N] further labels of each item, drawn at random, beside the ``kept``."""
    rng = np.random.default_rng(seed)
    chosen_labels = kept.copy()
    remaining = n_more.copy()
    for row in rng.permutation(len(kept)):
        item = annotations.item_codes[row]
        if not chosen_labels[row] and remaining[item] > 0:
            chosen_labels[row] = True
            remaining[item] -= 1
    return chosen_labels


def posterior(annotations: Annotations, answers: Floats) -> tuple[Pooled, ExistingLabels]:
    rows = annotations.rows
    predictions = Predictions(
        answers[:, None], rows, ("classifier",), annotations.classes, scale=annotations.scale
    )
    pooled = Pooled(rows, annotations.classes, answers, np.zeros(len(answers)))
    return update_by_labels(FitItems(annotations, predictions, pooled, None))


def again_once(regime: str, seed: int, budget: int) -> dict[str, float]:
    """The squared error of soft labels after each way to spend a budget of labels."""
    simulated = edokit.simulate(regime, random_state=900 + seed, items=(600, 0, 1))
    everything = simulated.annotations.split("train")
    rng = np.random.default_rng(seed)
    n_items = len(everything.items)
    is_new = rng.random(n_items) < 0.5
    most_labels = everything.annotations_per_item - 1
    n_labels = np.where(is_new, 0, np.minimum(rng.integers(1, 4, n_items), most_labels))
    nothing = np.zeros(len(everything), dtype=bool)
    drawn_labels = draw_labels(everything, n_labels, nothing, seed)
    texts = np.array([str(text) for text in everything.whole_texts], dtype=object)
    first_labels = subset(everything, drawn_labels)
    labelled = first_labels.take(np.flatnonzero(~is_new))
    answers = np.zeros_like(everything.soft_labels)
    answers[~is_new] = cross_fit(labelled)
    predict = learn(list(texts[~is_new]), labelled.soft_labels)
    answers[is_new] = predict(list(texts[is_new]))

    pooled, counts = posterior(first_labels, answers)
    queue = review(pooled, budget, labelled=counts)
    position = {str(item): i for i, item in enumerate(everything.items)}
    matrix = label_matrix(HumanLabels(labelled))
    old_scores, new_scores = get_active_learning_scores(matrix, answers[~is_new], answers[is_new])
    active = np.zeros(n_items)
    active[~is_new] = old_scores
    active[is_new] = new_scores
    choices = {
        "edokit": np.array([position[entry.item] for entry in queue]),
        "cleanlab's ActiveLab": np.argsort(active, kind="stable")[:budget],
        "at random": rng.permutation(n_items)[:budget],
    }
    truth = everything.soft_labels
    errors = {"no label": float(np.square(pooled.probabilities - truth).sum(axis=1).mean())}
    for name, chosen_items in choices.items():
        n_more = np.zeros(n_items, dtype=np.int64)
        n_more[chosen_items] = 1
        after = subset(everything, draw_labels(everything, n_more, drawn_labels, seed))
        spent, _ = posterior(after, answers)
        errors[name] = float(np.square(spent.probabilities - truth).sum(axis=1).mean())
        errors[f"{name}: new items"] = float(is_new[chosen_items].mean())
    return errors


def again(seeds: int, budget: int) -> Iterator[str]:
    yield (
        "| table | before | edokit (new items) | ActiveLab (new items) | at random"
        " | edokit − ActiveLab |"
    )
    yield "|---|---|---|---|---|---|"
    for regime in ("three-voices", "partial-panel", "two-camps"):
        runs = pd.DataFrame([again_once(regime, seed, budget) for seed in range(seeds)])
        mean = runs.mean()
        difference = runs["edokit"] - runs["cleanlab's ActiveLab"]
        yield (
            f"| {regime} | {mean['no label']:.4f} | {mean['edokit']:.4f}"
            f" ({mean['edokit: new items']:.0%}) | {mean['''cleanlab's ActiveLab''']:.4f}"
            f" ({mean['''cleanlab's ActiveLab: new items''']:.0%}) | {mean['at random']:.4f} |"
            f" {difference.mean():+.4f} ± {2 * difference.sem():.4f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["slips", "again"])
    parser.add_argument("--lewidi", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=150)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    warnings.simplefilter("ignore", EDOWarning)
    lines = again(arguments.seeds, arguments.budget)
    if arguments.what == "slips":
        lines = slips(arguments.lewidi, arguments.seeds)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
