"""How often a difference is claimed where there is none, with and without groups of items.

Two simulations, both with nothing to find:

- ``templates`` and ``shuffled``: 40 groups of five texts share eight of twelve words (or all twelve
  in another order), and the label of a group is random. Cross-fitted logistic regressions are
  compared with a constant answer: a *gain* is an interval above 0.
- ``equal models``: two sets of predictions that are equally far from the labels on average, with
  one copy or five copies of each text. A *difference* is an interval that excludes 0.

    python benchmarks/item_groups.py --runs 40 --seed 0
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

import edokit
from edokit import Annotations, EDOWarning
from edokit.analysis.scores.result import Gain
from edokit.datasets.item_groups import item_clusters
from edokit.members import parse_groups
from edokit.metrics import paired_test

N_GROUPS = 40
SIZE = 5
VOCABULARY = [
    "".join(letters) for letters in product("bdgklmnprst", "aeiou", "lnrst", "aeiou", "k")
]


def group_texts(rng: np.random.Generator, shared: int, shuffled: bool) -> list[str]:
    """Texts of twelve words, five to a group, of which a group shares some."""
    texts = []
    for _ in range(N_GROUPS):
        common = rng.choice(VOCABULARY, shared, replace=False).tolist()
        for _ in range(SIZE):
            own_words = rng.choice(VOCABULARY, 12 - shared).tolist()
            words = [*common, *own_words]
            if shuffled:
                words = rng.permutation(words).tolist()
            texts.append(" ".join(words))
    return texts


def annotate(texts: list[str], rng: np.random.Generator) -> Annotations:
    """Three answers to each text, which follow a label that is random for each group."""
    labels = np.repeat(rng.integers(2, size=N_GROUPS), SIZE)
    rows: dict[str, list[str]] = {
        "item": [],
        "annotator": [],
        "label": [],
        "text": [],
        "thread": [],
    }
    for number, text in enumerate(texts):
        for annotator in range(3):
            label = labels[number]
            if rng.random() < 0.1:
                label = 1 - label
            rows["item"].append(f"i{number}")
            rows["annotator"].append(f"a{annotator}")
            rows["label"].append("ny"[label])
            rows["text"].append(text)
            rows["thread"].append(f"t{number // SIZE}")
    return Annotations.from_table(rows, columns={"group": "thread"})


def gain_of_members(annotations: Annotations, folder: Path, seed: int) -> Gain:
    """The gain of three cross-fitted members, pooled, over the constant answer."""
    groups = parse_groups("linear:3")
    trained = edokit.train_members(
        annotations, groups, out=folder, cross_fit=5, random_state=seed, jobs=1
    )
    comparison = edokit.compare(
        trained.predictions["fit"], annotations, methods=["edo"], random_state=seed
    )
    losses = comparison.losses
    test = paired_test(losses["edo"]["ce"], losses["constant"]["ce"], clusters=comparison.clusters)
    return Gain.from_test("ce", test, comparison["constant"])


def template_runs(runs: int, seed: int, shared: int, shuffled: bool) -> dict[str, list[Gain]]:
    """The gains with the items on their own, and with their groups named."""
    gains: dict[str, list[Gain]] = {"items": [], "groups": []}
    for run in range(runs):
        rng = np.random.default_rng([seed, shared, run])
        annotations = annotate(group_texts(rng, shared, shuffled), rng)
        without_groups = replace(annotations, item_groups=None)
        for name, data in (("items", without_groups), ("groups", annotations)):
            with tempfile.TemporaryDirectory() as folder:
                gains[name].append(gain_of_members(data, Path(folder) / "members", run))
    return gains


def equal_model_runs(runs: int, seed: int, copies: int) -> tuple[float, float]:
    """Shares of runs in which equal models differ: items on their own, copies kept together."""
    n_texts = 60
    claimed = np.zeros(2)
    for run in range(runs):
        rng = np.random.default_rng([seed, copies, run])
        texts = [" ".join(rng.choice(VOCABULARY, 10)) for _ in range(n_texts)]
        rows: dict[str, list[str]] = {"item": [], "annotator": [], "label": [], "text": []}
        for copy in range(copies):
            for number, text in enumerate(texts):
                rows["item"].append(f"i{number}-{copy}")
                rows["annotator"].append("a")
                rows["label"].append("yn"[number % 2])
                rows["text"].append(text)
        clusters = item_clusters(Annotations.from_table(rows))
        difference = np.tile(rng.normal(size=n_texts), copies)
        # Copies are answered alike, but not the same.
        difference = difference + 0.3 * rng.normal(size=len(difference))
        zeros = np.zeros(len(difference))
        for place, resampled in enumerate((None, clusters)):
            test = paired_test(difference, zeros, clusters=resampled, samples=1000)
            claimed[place] += test.low > 0 or test.high < 0
    return float(claimed[0] / runs), float(claimed[1] / runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--equal-runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EDOWarning)
    print(
        f"| claimed where there is none ({arguments.runs} runs)"
        " | items on their own | groups kept together |"
    )
    print("|---|---|---|")
    for title, shared, shuffled in (
        ("gain: texts share eight of twelve words", 8, False),
        ("gain: texts have the same words, shuffled", 12, True),
    ):
        gains = template_runs(arguments.runs, arguments.seed, shared, shuffled)
        cells = []
        for name in ("items", "groups"):
            shares = [gain.share for gain in gains[name]]
            claimed = np.mean([gain.standing == "better" for gain in gains[name]])
            cells.append(f"{claimed:.0%} (median gain {np.median(shares):+.0%})")
        print(f"| {title} | {' | '.join(cells)} |")
    for copies, noun in ((1, "copy"), (5, "copies")):
        rates_alone, rates_together = equal_model_runs(arguments.equal_runs, arguments.seed, copies)
        title = (
            f"difference of equal models: {copies} {noun} of 60 texts ({arguments.equal_runs} runs)"
        )
        print(f"| {title} | {rates_alone:.1%} | {rates_together:.1%} |")


if __name__ == "__main__":
    main()
