"""How many items does `--escalate` answer on real data, and is its promise kept?

    python benchmarks/escalation.py LEWIDI2023 LEWIDI2025 --cache FOLDER

It writes a section of RESULTS.md and the table of docs/serving.md. Members are trained in five
folds of the items of train and dev; test files are not read. The threshold is chosen on the
cross-fitted answers to one half of the items and applied to the other half, for many halves;
near-duplicate texts stay together. A promise about all possible items can be kept while a sample
of them exceeds the limit by chance, so a second column draws the items of the fit from those of
the dataset with replacement, where the share among all items is known exactly.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from results import machine, rewrite, write_section
from run import DATASETS, read

from edokit import Annotations, EDOEnsemble
from edokit._types import Floats, Ints
from edokit.datasets.item_groups import item_clusters
from edokit.ensemble.escalation import (
    CONFIDENCE,
    Against,
    Escalation,
    confidence,
    overruled_shares,
    percent,
)
from edokit.ensemble.held_out import HeldOut
from edokit.members import Group, train_members
from edokit.scales import Scale

FOLDS = 5
POOL = (
    Group("linear", 1, "strong", "soft", options={"strength": 20.0}),
    Group("linear", 1, "weak", "soft", options={"strength": 1.0}),
    Group("linear", 1, "words", "soft", options={"words": 2.0, "strength": 1.0}),
)
LIMITS: dict[Against, tuple[float, ...]] = {
    "majority": (0.01, 0.05, 0.1),
    "annotator": (0.05, 0.1, 0.2),
}
TITLE = "Answers that a queue can act on (`escalation.py`)"
PAGE = Path(__file__).parents[1] / "docs" / "serving.md"
MARKS = ("<!-- escalation: begin -->", "<!-- escalation: end -->")
HEADS = [
    "dataset",
    "items",
    "overruled if all are answered",
    "against",
    "at most",
    "answered",
    "answered, fit on half",
    "kept on the other half",
    "kept, drawn",
]


def held_out_answers(annotations: Annotations, cache: Path) -> HeldOut:
    """Cross-fitted answers of a small pool to all items."""
    trained = train_members(annotations, POOL, out=cache, cross_fit=FOLDS, jobs=1)
    items = trained.predictions["fit"].align(annotations.items)
    held_out = EDOEnsemble().fit(items, annotations).fitted_.held_out
    assert held_out is not None
    return held_out


class Checked:
    """Answers of one dataset, and whether promises about them are kept.

    Parameters
    ----------
    held_out : HeldOut
        Cross-fitted answers, all of them.
    clusters : ndarray of int
        Items with the same number stay on one side of a split.
    scale : Scale
        The answer scale.
    """

    def __init__(self, held_out: HeldOut, clusters: Ints, scale: Scale) -> None:
        self._held_out = held_out
        self._clusters = clusters
        self._scale = scale

    def losses(self, against: Against) -> Floats:
        """How far each answer is overruled."""
        held_out = self._held_out
        return overruled_shares(held_out.answers, held_out.shares, self._scale, against)

    def fit(self, items: Ints, limit: float, against: Against) -> Escalation:
        """The threshold that is chosen on some items."""
        held_out = self._held_out
        part = HeldOut(held_out.answers[items], held_out.shares[items])
        return Escalation.fit(part, self._scale, limit, against)

    def outcome(self, escalation: Escalation, items: Ints) -> tuple[float, bool]:
        """The share of items that is answered, and whether few enough of these are overruled."""
        if escalation.threshold is None:
            return 0.0, True
        answers = self._held_out.answers[items]
        is_answered = confidence(answers, self._scale, escalation.against) > escalation.threshold
        if not is_answered.any():
            return 0.0, True
        overruled = self.losses(escalation.against)[items][is_answered].mean()
        return float(is_answered.mean()), bool(overruled <= escalation.limit)

    def cells(self, limit: float, against: Against, runs: int) -> list[str]:
        """How much is answered, and how often the promise is kept."""
        rng = np.random.default_rng(0)
        everything = np.arange(len(self._held_out))
        fitted_on_all = self.fit(everything, limit, against)
        n_clusters = int(self._clusters.max()) + 1
        answered = []
        kept_shares = []
        kept_if_drawn = []
        for _ in range(runs):
            in_first = rng.permutation(n_clusters) < n_clusters // 2
            is_first = in_first[self._clusters]
            escalation = self.fit(np.flatnonzero(is_first), limit, against)
            share, is_kept = self.outcome(escalation, np.flatnonzero(~is_first))
            answered.append(share)
            kept_shares.append(is_kept)
            resampled = rng.choice(len(everything), len(everything))
            escalation = self.fit(resampled, limit, against)
            kept_if_drawn.append(self.outcome(escalation, everything)[1])
        return [
            f"{fitted_on_all.answered:.0%}",
            f"{np.mean(answered):.0%}",
            f"{np.mean(kept_shares):.1%}",
            f"{np.mean(kept_if_drawn):.1%}",
        ]


def dataset_rows(name: str, annotations: Annotations, cache: Path, runs: int) -> list[list[str]]:
    """The rows of one dataset; those of an earlier run are in the cache."""
    path = cache / "rows.json"
    if path.exists():
        return [list(map(str, row)) for row in json.loads(path.read_text())]
    held_out = held_out_answers(annotations, cache)
    clusters = item_clusters(annotations)
    if clusters is None:
        clusters = np.arange(len(held_out))
    clusters = np.unique(clusters, return_inverse=True)[1]
    checked = Checked(held_out, clusters, annotations.scale)
    rows = []
    for against, limits in LIMITS.items():
        overruled = checked.losses(against).mean()
        for limit in limits:
            head = [name, f"{len(held_out):,}", f"{overruled:.1%}", against, percent(limit)]
            rows.append([*head, *checked.cells(limit, against, runs)])
            print(" | ".join(rows[-1]), flush=True)
    path.write_text(json.dumps(rows))
    return rows


def page_table(rows: Sequence[Sequence[str]]) -> str:
    """The table of the guide: how much is answered against a majority."""
    limits = [percent(limit) for limit in LIMITS["majority"]]
    lines = [
        f"| dataset | items | {' | '.join(f'at most {limit}' for limit in limits)} |",
        "|---" * (2 + len(limits)) + "|",
    ]
    answered: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row[3] == "majority":
            answered.setdefault((row[0], row[1]), []).append(row[5])
    for (name, items), shares in answered.items():
        lines.append(f"| {name} | {items} | {' | '.join(shares)} |")
    return "\n".join([MARKS[0], *lines, MARKS[1]])


HEAD = """Cross-fitted answers of three members of the recipe `linear` to the items of train and
dev (so many of them as the table says). *Answered* is the share that `--escalate` answers if the
threshold is chosen on all of them. *Kept* is how often, in {runs} random halves or draws, at most
the stated share of what was answered was overruled; {confidence} are promised for all items that
might come (*drawn*: the threshold is chosen on items drawn with replacement, and judged on all).
Where only the other half judges, chance in that half counts as well, so that its figures may be
lower.
"""


def main() -> None:
    """Train, measure, and write the section and the table of the guide."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi2023", type=Path)
    parser.add_argument("lewidi2025", type=Path)
    parser.add_argument("--items", type=int, default=10_000, help="the most items of each dataset")
    parser.add_argument("--datasets", nargs="*", help="only these; others from the cache")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--cache", type=Path, default=Path("escalation"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for task, names in DATASETS.items():
        for name in names:
            is_cached = (arguments.cache / name / "rows.json").exists()
            if arguments.datasets and name not in arguments.datasets and not is_cached:
                continue
            annotations = read(getattr(arguments, task), name, arguments.items)
            annotations = replace(annotations, splits=None)
            rows += dataset_rows(name, annotations, arguments.cache / name, arguments.runs)
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    head = HEAD.format(items=arguments.items, runs=arguments.runs, confidence=percent(CONFIDENCE))
    write_section(TITLE, "\n".join([head, *lines, "", machine("scikit-learn")]))
    rewrite(PAGE, MARKS, page_table(rows))


if __name__ == "__main__":
    main()
