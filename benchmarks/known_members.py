"""Who should answer for a person: all members, or those that know the person? (real annotators)

    python benchmarks/known_members.py LEWIDI2023 --cache FOLDER     # a section of RESULTS.md

The pool of `edo run --quality fast` is trained in five folds of the items of train and dev; test
files are not read. Weights are learned on items of four folds and used on the fifth, so that
neither members nor weights have seen what they answer. What is trained is kept in the cache.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from results import machine, write_section
from run import DATASETS, read

from edokit import Annotations, EDOEnsemble, Predictions
from edokit._errors import signed
from edokit.members import train_members
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.metrics import ce_items, paired_test
from edokit.pipeline import FOLDS, RunOptions, default_pool

KINDS = {
    "anonymous": "anonymous answer",
    "all": "all members",
    "knowing": "members that know the person",
}


def answers(weights: Mapping[str, float], items: Predictions, pairs: Predictions) -> dict[str, Any]:
    """Answers for each pair of an item and an annotator [P, C], by kind.

    ``items`` are anonymous answers of all members, ``pairs`` those of members that know annotators.
    """
    positions = items.rows.positions(pairs.rows.by_item())[pairs.rows.item_codes]
    anonymous = {name: items.probabilities[positions, k] for k, name in enumerate(items.members)}
    known = {name: pairs.probabilities[:, k] for k, name in enumerate(pairs.members)}
    everybody = anonymous | known
    knowing = known if any(weights[name] for name in known) else everybody
    members = {"anonymous": anonymous, "all": everybody, "knowing": knowing}
    return {kind: pooled(weights, chosen) for kind, chosen in members.items()}


def pooled(weights: Mapping[str, float], probabilities: Mapping[str, Any]) -> Any:
    """The linear pool [P, C] of these members, with their weights renormalised."""
    total = sum(weights[name] for name in probabilities)
    return sum(weights[name] / total * p for name, p in probabilities.items())


def losses(annotations: Annotations, items: Predictions, pairs: Predictions) -> dict[str, Any]:
    """Mean cross-entropy of the annotators' own labels, by item and kind."""
    folds = fold_numbers(TrainingData.from_annotations(annotations), FOLDS, 0)
    items, pairs = items.align(annotations.items), pairs.pairs()
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    shares = []
    for fold in range(FOLDS):
        fit_items = np.flatnonzero(folds != fold)
        ensemble = EDOEnsemble().fit(items.take(fit_items), annotations.take(fit_items))
        weights = dict(zip(ensemble.members_, ensemble.weights_, strict=True))
        shares.append(sum(weights[name] for name in pairs.members))
        held_out = annotations.take(np.flatnonzero(folds == fold)).pairs()
        asked = pairs.take(pairs.rows.positions(held_out.rows))
        for kind, p in answers(weights, items, asked).items():
            found[kind].append(held_out.rows.mean(ce_items(p, held_out.soft_labels)))
    by_item = {kind: np.concatenate(parts) for kind, parts in found.items()}
    return by_item | {"weight": float(np.mean(shares))}


def difference(one: Any, other: Any) -> str:
    """The mean difference with its interval, marked where it is clear."""
    test = paired_test(one, other)
    sign = "▲ " if test.high < 0 else "▼ " if test.low > 0 else ""
    return f"{sign}{signed(test.difference)} [{signed(test.low)}, {signed(test.high)}]"


def row(name: str, annotations: Annotations, by_item: Mapping[str, Any]) -> str:
    """A row of the table."""
    counts = f"{len(annotations.items):,}", str(len(annotations.annotators))
    weight = f"{by_item['weight']:.2f}"
    means = [f"{by_item[kind].mean():.4f}" for kind in KINDS]
    gains = [difference(by_item["knowing"], by_item[kind]) for kind in ("all", "anonymous")]
    return f"| {' | '.join([name, *counts, weight, *means, *gains])} |"


def main() -> None:
    """Train, measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi2023", type=Path)
    parser.add_argument("--items", type=int, default=1500, help="of each dataset at most so many")
    parser.add_argument("--cache", type=Path, default=Path("known-members"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    pool = [ingredient.group for ingredient in default_pool(RunOptions())]
    heads = ["dataset", "items", "annotators", "weight of those that know", *KINDS.values()]
    heads += ["those that know less all", "those that know less anonymous"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in DATASETS["lewidi2023"]:
        annotations = replace(read(arguments.lewidi2023, name, arguments.items), splits=None)
        folder = arguments.cache / name
        trained = train_members(annotations, pool, out=folder, cross_fit=FOLDS, jobs=1)
        predictions = trained.predictions["fit"], trained.predictions["fit-pairs"]
        lines.append(row(name, annotations, losses(annotations, *predictions)))
        print(lines[-1], flush=True)
    text = [HEAD.format(items=arguments.items), *lines, "", machine("scikit-learn")]
    write_section("Who answers for a person (`known_members.py`)", "\n".join(text))


HEAD = """\
    python benchmarks/known_members.py LEWIDI2023

Cross-entropy of each annotator's own label (mean of an item's, then over items) of items of train
and dev that neither members nor weights have seen; at most {items:,} items of a dataset, drawn at
random. The pool is that of `edo run --quality fast`, in which the member `annotators` alone knows
annotators; its weights are learned on items. Three answers for a person: the anonymous one, the
pool of all members, in which those that do not know the person answer anonymously, and that of the
members that know the person, with their weights renormalised: what `edo predict --as` gives. Where
these carry no weight (in some folds of HS-Brexit), all members answer.
Differences have 95 % intervals over items; ▲ clearly better, ▼ clearly worse.
"""

if __name__ == "__main__":
    main()
