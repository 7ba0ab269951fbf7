"""What attributes of annotators add beyond their ids: simulated people, and LeWiDi 2025's dev.

    python benchmarks/attributes.py                   # simulated alone, printed and not kept
    python benchmarks/attributes.py MP CSC --recipe encoder --option model=FOLDER

Anonymous answers are out-of-fold (five folds of train and dev). `AnnotatorEffects`, as `linear` and
`encoder` members learn them, are fitted to the labels of train and measured on the labels of dev:
with neither, with attributes alone, with ids alone and with both. All four also have an effect that
all annotators share: what it corrects in the anonymous answers is no merit of attributes or ids.
For new annotators, a fifth of the annotators at a time has no labels in train. Intervals are over
dev items, whose labels stay together. Test sets are not looked at.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from results import machine, write_section

from edokit import Annotations, read_annotations, simulate
from edokit.annotator_effects import AnnotatorEffects, attributes_of
from edokit.datasets.simulate.regimes import REGIMES
from edokit.members import Group, train_members
from edokit.members.recipe import plain_value

NAMES = ("two-camps", "crowd")
SIMULATED = {"annotators": 60, "per_item": {5: 1.0}, "items": (1200, 600, 20)}
FOLDS, SAMPLES = 5, 2000
EVERYONE = "everyone"
"""An attribute that all annotators share."""
SETTINGS = {
    "neither": (False, False),
    "attributes": (True, False),
    "ids": (False, True),
    "both": (True, True),
}


def anonymous_answers(annotations: Annotations, recipe: str, options: Mapping[str, Any]) -> Any:
    """Out-of-fold answers of one member [N, C], in the order of the items of train and dev."""
    group = Group(recipe, 1, supervision="soft", options=options)
    found = train_members(annotations, [group], cross_fit=FOLDS, jobs=1).predictions["fit"]
    return found.align(annotations.items).uniform


def labels_of(annotations: Annotations, kept: Any) -> Annotations:
    """The annotations at these positions; items and annotators stay."""
    chosen = np.flatnonzero(kept)
    return replace(
        annotations,
        item_codes=annotations.item_codes[chosen],
        annotator_codes=annotations.annotator_codes[chosen],
        annotation_columns={},
        **annotations.rows_of(chosen, "label_codes", "label_probabilities"),
    )


def losses(annotations: Annotations, p: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Cross-entropy of each dev label [D], by setting, for known and for new annotators."""
    assert annotations.splits is not None
    dev = annotations.splits[annotations.item_codes] == "dev"
    asked = labels_of(annotations, dev)
    rows = asked.item_codes
    people = [[str(name)] for name in annotations.annotators[asked.annotator_codes]]
    shares = asked.labels
    if shares.ndim == 1:
        shares = np.eye(p.shape[1])[shares]
    known_as = attributes_of(annotations)

    def loss(answers: Any) -> Any:
        kept = np.clip(answers, 1e-6, 1)
        return -(shares * np.log(kept)).sum(axis=1)

    def fitted(kept: Any, use: bool, ids: bool) -> Any:
        own, chosen = labels_of(annotations, kept), [EVERYONE, *(names if use else ())]
        return AnnotatorEffects.fit(p, own, annotations.scale, attributes=chosen, ids=ids)

    for setting, (use, ids) in SETTINGS.items():
        effects = fitted(~dev, use, ids)
        yield setting, loss(effects.predict(p[rows], people, annotations.scale))
    fold = np.random.default_rng(0).permutation(len(annotations.annotators)) % FOLDS
    strangers = [[f"new {one[0]}"] for one in people]
    described = {f"new {name}": own for name, own in known_as.items()}
    for setting, use in (("new, neither", False), ("new, attributes", True)):
        new = np.zeros(len(rows))
        for number in range(FOLDS):
            effects = fitted(~dev & (fold[annotations.annotator_codes] != number), use, False)
            mine = np.flatnonzero(fold[asked.annotator_codes] == number)
            found = effects.predict(p[rows], strangers, annotations.scale, described)
            new[mine] = loss(found)[mine]
        yield setting, new


def interval(values: Any, items: Any) -> str:
    """Mean of differences [D], with its 95 % bootstrap interval over items."""
    _, codes = np.unique(items, return_inverse=True)
    sums, counts = np.bincount(codes, values), np.bincount(codes)
    rng = np.random.default_rng(0)
    means = []
    for _ in range(SAMPLES):
        drawn = rng.integers(0, len(sums), len(sums))
        means.append(sums[drawn].sum() / counts[drawn].sum())
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{values.mean():+.4f} [{low:+.4f}, {high:+.4f}]"


def measured(name: str, annotations: Annotations, p: Any) -> list[str]:
    """Rows of the table: all attributes together, and each of them."""
    assert annotations.splits is not None
    items = annotations.item_codes[annotations.splits[annotations.item_codes] == "dev"]
    every = tuple(annotations.attributes)
    shared = np.full(len(annotations.annotators), "all", dtype=object)
    annotations = replace(annotations, attributes={**annotations.attributes, EVERYONE: shared})
    lines = []
    for names in dict.fromkeys([every, *((one,) for one in every)]):
        found = dict(losses(annotations, p, names))
        cells = [
            f"{found['neither'].mean():.4f}",
            interval(found["attributes"] - found["neither"], items),
            interval(found["ids"] - found["neither"], items),
            interval(found["both"] - found["ids"], items),
            interval(found["new, attributes"] - found["new, neither"], items),
        ]
        shown = "all" if names == every and len(every) > 1 else ", ".join(names)
        lines.append(f"| {name} | {shown} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="*", type=Path, help="Folders of LeWiDi 2025.")
    parser.add_argument("--recipe", default="linear")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    options = {name: plain_value(v) for name, _, v in (one.partition("=") for one in asked.option)}
    lines = []
    for name in NAMES:
        people = simulate(replace(REGIMES[name], **SIMULATED), random_state=0).annotations
        people = people.split("train", "dev")
        lines += measured(f"{name} (simulated)", people, anonymous_answers(people, "linear", {}))
    for folder in asked.data:
        people = read_annotations(folder).split("train", "dev")
        answers = anonymous_answers(people, asked.recipe, options)
        lines += measured(folder.name, people, answers)
    sets, how = [folder.name for folder in asked.data], [f"--recipe {asked.recipe}"]
    how = [] if asked.recipe == "linear" else [*how, *(f"--option {one}" for one in asked.option)]
    of_recipe = f", those of {' and '.join(sets)} `{asked.recipe}`" if how else ""
    text = [
        f"    python benchmarks/attributes.py {' '.join([*sets, *how])}".rstrip(),
        "",
        "Cross-entropy (nats) of each annotator's own label on dev, and differences with 95 %"
        " bootstrap intervals over items: below 0 is better. `neither` is the anonymous answer; it"
        " and all others have an effect that all annotators share, so that no correction of the"
        " anonymous answers counts as a merit of attributes or ids. New annotators (a fifth at a"
        f" time) have no labels in train. Members are `linear`{of_recipe}.",
        "",
        "| data | attributes | neither | attributes − neither | ids − neither | both − ids |"
        " new annotators: attributes − neither |",
        "|---|---|---|---|---|---|---|",
        *lines,
        "",
        machine("numpy", "scikit-learn"),
    ]
    if asked.data:  # the section has both
        write_section("Attributes of annotators (`attributes.py`)", "\n".join(text))


if __name__ == "__main__":
    main()
