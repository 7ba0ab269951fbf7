"""Who should answer for a person: a member that knows people, or the pool with effects of people?

    python benchmarks/known_members.py LEWIDI2023 LEWIDI2025 --cache FOLDER     # RESULTS.md

Members are trained in five folds of the items of train and dev; test files are not read. Weights
and effects of people are learned on items of four folds and used on the fifth, so that neither
members, weights nor effects have seen what they answer. What is trained is kept in the cache.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from results import machine, write_section
from run import read

from edokit import Annotations, EDOEnsemble, Predictions
from edokit._errors import signed
from edokit._types import Floats
from edokit.members import Group, train_members
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.metrics import ce_items, paired_test

FOLDS = 5
DATASETS = {
    "lewidi2023": ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement"),
    "lewidi2025": ("CSC", "MP", "Paraphrase", "VariErrNLI"),
}
KNOWING = "annotators-01"
"""The member that learned annotators; `edo run` answered for a person with it before."""
POOL = (
    Group("linear", 1, "strong", "soft", options={"strength": 20.0}),
    Group("knowing:KnowingLinear", 1, "annotators", "soft"),
    Group("linear", 1, "weak", "soft", options={"strength": 1.0}),
    Group("linear", 1, "words", "soft", options={"words": 2.0, "strength": 1.0}),
)
KINDS = {
    "anonymous": "anonymous answer",
    "known": "member that knows the person",
    "effects": "pool with effects of people",
}


def losses(annotations: Annotations, items: Predictions, pairs: Predictions) -> dict[str, Floats]:
    """Mean cross-entropy of the annotators' own labels, by item and kind of answer."""
    folds = fold_numbers(TrainingData.from_annotations(annotations), FOLDS, 0)
    items = items.align(annotations.items)
    pairs = pairs.pairs()
    scale = annotations.scale
    by_item: dict[str, list[Floats]] = {kind: [] for kind in KINDS}
    for fold in range(FOLDS):
        fit_items = np.flatnonzero(folds != fold)
        test_items = np.flatnonzero(folds == fold)
        ensemble = EDOEnsemble().fit(items.take(fit_items), annotations.take(fit_items))
        people = ensemble.people_
        assert people is not None
        held_out = annotations.take(test_items).pairs()
        rows = held_out.rows
        of_items = np.asarray(ensemble.predict_proba(items.take(test_items)))
        anonymous = of_items[rows.item_codes]
        asked_pairs = pairs.take(pairs.rows.positions(rows))
        member = asked_pairs.members.index(KNOWING)
        codes = people.person_codes(list(map(str, rows.annotator_names)))
        answers = {
            "anonymous": anonymous,
            "known": asked_pairs.probabilities[:, member],
            "effects": people.answers(anonymous, codes),
        }
        for kind, p in answers.items():
            row_losses = ce_items(scale.rows(p), scale.rows(np.asarray(held_out.soft_labels)))
            by_item[kind].append(rows.mean(scale.per_item(row_losses, len(p))))
    return {kind: np.concatenate(parts) for kind, parts in by_item.items()}


def difference(losses: Floats, other_losses: Floats) -> str:
    """The mean difference with its interval, marked where it is clear."""
    test = paired_test(losses, other_losses)
    sign = ""
    if test.high < 0:
        sign = "▲ "
    if test.low > 0:
        sign = "▼ "
    return f"{sign}{signed(test.difference)} [{signed(test.low)}, {signed(test.high)}]"


def row(name: str, annotations: Annotations, by_item: Mapping[str, Floats]) -> str:
    """A row of the table."""
    cells = [name, f"{len(annotations.items):,}", str(len(annotations.annotators))]
    cells += [f"{by_item[kind].mean():.4f}" for kind in KINDS]
    cells += [difference(by_item["effects"], by_item[kind]) for kind in ("known", "anonymous")]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Train, measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi2023", type=Path)
    parser.add_argument("lewidi2025", type=Path)
    parser.add_argument("--items", type=int, default=1500, help="the most items of each dataset")
    parser.add_argument("--cache", type=Path, default=Path("known-members"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ["dataset", "items", "annotators", *KINDS.values()]
    heads += ["effects less known", "effects less anonymous"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for task, names in DATASETS.items():
        for name in names:
            annotations = read(getattr(arguments, task), name, arguments.items)
            annotations = replace(annotations, splits=None)
            folder = arguments.cache / name
            trained = train_members(annotations, POOL, out=folder, cross_fit=FOLDS, jobs=1)
            predictions = trained.predictions
            by_item = losses(annotations, predictions["fit"], predictions["fit-pairs"])
            lines.append(row(name, annotations, by_item))
            print(lines[-1], flush=True)
    text = [HEAD.format(items=arguments.items), *lines, "", machine("scikit-learn")]
    write_section("Who answers for a person (`known_members.py`)", "\n".join(text))


HEAD = """\
    python benchmarks/known_members.py LEWIDI2023 LEWIDI2025 --items {items}

Cross-entropy of each annotator's own label (mean of an item's, then over items) of items of train
and dev that neither members, weights nor effects have seen; at most {items} items of a dataset,
drawn at random. Four TF-IDF members, of which one knows annotators. Three answers for a person: the
anonymous one of the pool, that of the member that knows the person (what `edo run` answered with
before), and the pool with effects of people and of their attributes (what it answers with now).
Differences have 95 % intervals over items; ▲ clearly better, ▼ clearly worse.
"""

if __name__ == "__main__":
    main()
