"""What known annotators add to members that train in seconds, on dev.

    python benchmarks/annotator_effects.py                                  # simulated
    python benchmarks/annotator_effects.py data.parquet --recipe encoder --option model=FOLDER

One member is trained on train with soft targets and measured on dev: its anonymous
answer against the soft labels, and against each annotator's own label, where the answer for the
annotator stands beside it. Test sets are not looked at.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from edokit import Annotations, read_annotations, simulate
from edokit.members import Group, train_members
from edokit.members.recipe_options import plain_value
from edokit.metrics import compute_metrics

RECIPES = {"linear": "knowing:KnowingLinear", "encoder": "knowing:KnowingEncoder"}
METRICS = {"nominal": ("ce", "md"), "ordinal": ("ce", "rps", "w1"), "multi-label": ("ce", "md")}


def measured(annotations: Annotations, recipe: str, options: dict[str, object]) -> list[str]:
    """A row of the table: metrics of items, CE of pairs anonymous and known, seconds."""
    started = time.perf_counter()
    group = Group(RECIPES[recipe], 1, recipe, supervision="soft", options=options)
    predictions = train_members(annotations, [group], jobs=1).predictions
    seconds = time.perf_counter() - started
    dev = annotations.split("dev")
    scale = annotations.scale
    items = predictions["dev"].align(dev.items)
    pairs = predictions["dev-pairs"]
    pairs = pairs.take(pairs.annotators != "")
    scores = [
        compute_metrics(
            items.uniform,
            dev.soft_labels,
            dev.hard_labels(),
            metrics=METRICS[scale.kind],
            scale=scale,
        )
    ]
    item_of = {str(name): row for row, name in enumerate(dev.items)}
    annotator_of = {str(name): code for code, name in enumerate(dev.annotators)}
    assert pairs.annotators is not None
    rows = np.array([item_of[str(item)] for item in pairs.items])
    codes = np.array([annotator_of[str(name)] for name in pairs.annotators])
    label_of_pair = {
        pair: m for m, pair in enumerate(zip(dev.item_codes, dev.annotator_codes, strict=True))
    }
    pair_labels = dev.labels[[label_of_pair[pair] for pair in zip(rows, codes, strict=True)]]
    if pair_labels.ndim == 1:
        targets = np.eye(len(dev.classes))[pair_labels]
        hard = pair_labels
    else:
        targets = pair_labels
        hard = pair_labels.astype(int)
    for p in (np.asarray(items.uniform)[rows], np.asarray(pairs.uniform)):
        scores.append(compute_metrics(p, targets, hard, metrics=("ce",), scale=scale))
    cells = []
    for score in scores:
        cells += [f"{value:.4f}" for value in score.values()]
    return [*cells, f"{seconds:.0f}"]


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, help="Annotations with texts, train and dev.")
    parser.add_argument("--scale", help="As for edo train.")
    parser.add_argument("--recipe", default="linear", choices=tuple(RECIPES))
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    options = {}
    for option in arguments.option:
        key, _, value = option.partition("=")
        options[key] = plain_value(value)
    if arguments.data is None:
        annotations = simulate("seven-points").annotations
    else:
        annotations = read_annotations(arguments.data, scale=arguments.scale)
    kind = annotations.scale.kind
    header = ["setting", *METRICS[kind], "CE of labels", "known", "seconds"]
    print(" | ".join(header))
    name = " ".join(arguments.option) or "default"
    print(" | ".join([name, *measured(annotations, arguments.recipe, options)]))


if __name__ == "__main__":
    main()
