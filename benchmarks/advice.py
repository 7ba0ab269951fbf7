"""What is best where disagreement is structured, and where it is noise? Measured on the simulator.

    python benchmarks/advice.py              # a quarter of an hour
    python benchmarks/advice.py --seeds 2    # a quick look
    python benchmarks/advice.py --lewidi LEWIDI_FOLDER

Members (TF-IDF and logistic regression) learn from one randomly selected answer per item or from
one annotator each; as many of both. ``soft`` is a single member that learns from the shares of all
annotators, and ``soft + random-select`` the pool with it. Weights are learned on the dev split.
What counts is the cross-entropy of the test split to what the whole population would answer, above
its floor. On real data it is the cross-entropy to the shares of the annotators, by cross-validation
on train and dev: a third of the items is held out, a sixth learns weights.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from edokit import EDOEnsemble, Objective, Predictions, read_annotations, simulate
from edokit._types import Floats, Ints
from edokit.annotations.core import Annotations
from edokit.datasets.simulate.regimes import REGIMES
from edokit.members.recipe import MemberData
from edokit.members.recipes.linear import LinearMember
from edokit.members.supervision import (
    annotator_targets,
    most_active,
    random_select_targets,
    soft_targets,
)
from edokit.metrics import ce, ce_items, entropy, paired_test

PEOPLE = {"three-voices": 3, "partial-panel": 8, "two-camps": 6, "crowd": 10}
LEWIDI = {"ArMIS": 3, "ConvAbuse": 8, "HS-Brexit": 6, "MD-Agreement": 10}
STRUCTURED = (0.0, 0.3, 0.6, 0.9)
SIGNS = {
    "": Objective(),
    ", preserve": Objective(div=0.1),
    ", suppress": Objective(div=0.1, diversity="suppress"),
}
COLUMNS = [
    *("random-select", "soft", "per-annotator", "soft + random-select"),
    *("random-select, preserve", "random-select, suppress"),
]
FOLDS = 3


Training = tuple[Ints, Callable[[int], Floats]]
"""Indices of the items that a member learns from, and its targets by epoch."""


def pool(
    people: Annotations, trainings: Sequence[Training], corpus: tuple[str, ...]
) -> dict[str, Predictions]:
    """Predictions of dev and test by one member per training."""
    train = people.split("train")
    texts = np.asarray(train.texts)
    members = []
    for k, (positions, targets) in enumerate(trainings):
        member = LinearMember(len(people.classes))
        member.fit(MemberData(texts[positions].tolist(), targets, corpus=corpus), random_state=k)
        members.append(member)
    result = {}
    for name in ("dev", "test"):
        part = people.split(name)
        asked_texts = np.asarray(part.texts).tolist()
        result[name] = Predictions.from_arrays(
            [member.predict_proba(asked_texts) for member in members],
            items=part.items,
            members=[f"member-{k}" for k in range(len(members))],
            classes=people.classes,
        )
    return result


def pools(people: Annotations, count: int, seed: int) -> dict[str, dict[str, Predictions]]:
    """The pools by supervision, with ``count`` members of random-select and of per-annotator."""
    train = people.split("train")
    corpus = tuple(map(str, people.texts))
    everything = np.arange(len(train.items))
    drawn_members = [
        (everything, lambda epoch, k=k: random_select_targets(train, 1000 * seed + k, epoch))
        for k in range(count)
    ]
    own_targets = []
    for name in most_active(train, count, ignore_limit=True):
        positions, targets = annotator_targets(train, name)
        if len(set(targets.argmax(axis=1).tolist())) > 1:
            own_targets.append((positions, lambda epoch, targets=targets: targets))
    shares = [(everything, lambda epoch: soft_targets(train))]
    soft_pool = pool(people, shares, corpus)
    random_select_pool = pool(people, drawn_members, corpus)
    joined = {}
    for split in ("dev", "test"):
        soft_part = soft_pool[split]
        random_part = random_select_pool[split]
        joined[split] = Predictions.from_arrays(
            np.concatenate([soft_part.probabilities, random_part.probabilities], axis=1),
            items=soft_part.items,
            members=["soft", *random_part.members],
            classes=people.classes,
            layout="NKC",
        )
    return {
        "random-select": random_select_pool,
        "soft": soft_pool,
        "per-annotator": pool(people, own_targets, corpus),
        "soft + random-select": joined,
    }


def fitted(people: Annotations, count: int, seed: int) -> dict[str, Floats]:
    """Probabilities [N, C] of the test items by supervision and sign."""
    result = {}
    for name, answers in pools(people, count, seed).items():
        for label, objective in SIGNS.items():
            if name + label not in COLUMNS:
                continue
            ensemble = EDOEnsemble(objective=objective)
            ensemble.fit(answers["dev"], people.split("dev"))
            result[name + label] = ensemble.predict_proba(answers["test"])
    return result


def measure(regime: str, count: int, structured: float, seed: int) -> dict[str, float]:
    """Distance to the truth of each way to learn."""
    simulation = simulate(replace(REGIMES[regime], structured=structured), random_state=seed)
    truth = simulation.truth[simulation.rows("test")]
    floor = entropy(truth)
    answers = fitted(simulation.annotations, count, seed)
    return {name: ce(np.asarray(p), truth) - floor for name, p in answers.items()}


def simulated(seeds: int) -> None:
    """Print the table of the simulator; differences to the first column are within seeds."""
    print("| people | structured |", " | ".join(COLUMNS), "|")
    print("|---" * (2 + len(COLUMNS)) + "|")
    for regime, count in PEOPLE.items():
        for structured in STRUCTURED:
            rows = [measure(regime, count, structured, seed) for seed in range(seeds)]
            reference = np.array([row[COLUMNS[0]] for row in rows])
            cells = [f"{reference.mean():.4f}"]
            for name in COLUMNS[1:]:
                difference = np.array([row[name] for row in rows]) - reference
                error = 0.0
                if seeds > 1:
                    error = 2.0 * difference.std(ddof=1) / np.sqrt(seeds)
                cells.append(f"{difference.mean():+.4f} ± {error:.4f}")
            print(f"| {regime} | {structured:g} |", " | ".join(cells), "|", flush=True)


def real(folder: Path) -> None:
    """Print the table of the four datasets; differences with 95 % intervals over items.

    Of train and dev alone, each item held out once: no test label is read.
    """
    print("| dataset | members |", " | ".join(COLUMNS), "|")
    print("|---" * (2 + len(COLUMNS)) + "|")
    for name, count in LEWIDI.items():
        people = read_annotations(folder / name).split("train", "dev")
        part = np.random.default_rng(0).permutation(len(people.items)) % (2 * FOLDS)
        losses_by_column: dict[str, list[Floats]] = {column: [] for column in COLUMNS}
        for fold in range(FOLDS):
            is_dev = part == (2 * fold + 2) % (2 * FOLDS)
            splits = np.where(part // 2 == fold, "test", np.where(is_dev, "dev", "train"))
            dealt = replace(people, splits=splits.astype(object))
            q = dealt.split("test").soft_labels
            for column, p in fitted(dealt, count, fold).items():
                losses_by_column[column].append(ce_items(p, q))
        reference = np.concatenate(losses_by_column[COLUMNS[0]])
        cells = [f"{reference.mean():.4f}"]
        for column in COLUMNS[1:]:
            test = paired_test(np.concatenate(losses_by_column[column]), reference)
            cells.append(f"{test.difference:+.4f} [{test.low:+.4f}, {test.high:+.4f}]")
        print(f"| {name} | {count} |", " | ".join(cells), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lewidi", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.lewidi is None:
        simulated(arguments.seeds)
    else:
        real(arguments.lewidi)


if __name__ == "__main__":
    main()
