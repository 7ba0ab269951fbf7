"""Why known answers move the distributions of MD-Agreement's test items.

    python benchmarks/lewidi2023/new_annotators.py LEWIDI_FOLDER

Of test, only the annotators of each item are read, no labels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from edokit import Annotations, Predictions, read_annotations, read_predictions
from edokit._types import Bools, Floats, Ints
from edokit.metrics import ce_items

HERE = Path(__file__).resolve().parent / "MD-Agreement" / "annotators"


def main() -> None:
    """Print labels per annotator, changes of CE on dev, and what members predict of people."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi", type=Path)
    people = read_annotations(parser.parse_args().lewidi / "MD-Agreement")
    train = people.split("train")
    counts = np.bincount(train.annotator_codes, minlength=len(train.annotators))
    labels = dict(zip(map(str, train.annotators), counts.tolist(), strict=True))
    for split in ("dev", "test"):
        part = people.split(split)
        pairs = read_predictions(HERE / f"{split}-pairs.npz")
        named_pairs = pairs.take(np.flatnonzero(pairs.annotators != ""))
        row_of = {item: row for row, item in enumerate(part.items)}
        rows = np.array([row_of[item] for item in named_pairs.items])
        labels_seen = np.array([labels.get(str(name), 0) for name in named_pairs.annotators])
        anonymous = pairs.anonymous().align(part.items).uniform
        offset = named_pairs.uniform[:, 1] - anonymous[rows, 1]
        print(
            f"{split}: labels in train of who gives a label, median {np.median(labels_seen):.0f},"
            f" none {np.mean(labels_seen == 0):.1%}; predicted offset of known annotators, mean"
            f" {offset[labels_seen > 0].mean():+.4f}"
        )
        if split == "dev":
            on_dev(part, named_pairs, anonymous, rows, labels_seen)


def on_dev(
    part: Annotations, pairs: Predictions, anonymous: Floats, rows: Ints, train_labels: Ints
) -> None:
    """Print the change of CE if only some annotators are known, and slopes of offsets.

    ``rows`` and ``train_labels`` are, for each pair, its item and the number of labels in train of
    its annotator.
    """
    soft = np.asarray(part.soft_labels)
    anonymous = np.asarray(anonymous)

    def change(is_known: Bools) -> float:
        p = np.where(is_known[:, None], pairs.uniform, anonymous[rows])
        totals = np.stack([np.bincount(rows, p[:, c]) for c in range(2)], axis=1)
        means = totals / np.bincount(rows)[:, None]
        return float((ce_items(means, soft) - ce_items(anonymous, soft)).mean())

    print(f"  all known: CE {change(train_labels > 0):+.4f}")
    names, code = np.unique(pairs.annotators.astype(str), return_inverse=True)
    rng = np.random.default_rng(0)
    for share in (0.3, 0.7):
        hidden_draws = [(rng.random(len(names)) >= share)[code] for _ in range(30)]
        changes = [change(is_kept) for is_kept in hidden_draws]
        print(f"  {share:.0%} hidden at random: {np.mean(changes):+.4f}")
    for most_labels in (20, 50, 100):
        is_known = (train_labels > 0) & (train_labels < most_labels)
        print(f"  fewer than {most_labels} labels: {change(is_known):+.4f}")
    dev_pairs = part.pairs()
    labels = dev_pairs.soft_labels[dev_pairs.rows.positions(pairs.rows), 1]
    true_offset = labels - anonymous[rows, 1]
    offset = pairs.uniform[:, 1] - anonymous[rows, 1]
    for low, high in ((1, 20), (20, 50), (50, 300), (300, 10**6)):
        is_inside = (train_labels >= low) & (train_labels < high)
        people = code[is_inside]
        count = np.bincount(people, minlength=len(names))
        mean = np.bincount(people, offset[is_inside], minlength=len(names)) / count.clip(1)
        true_sum = np.bincount(people, true_offset[is_inside], minlength=len(names))
        true_mean = true_sum / count.clip(1)
        slope = (count * mean * true_mean).sum() / (count * mean**2).sum()
        print(f"  {low} to {high} labels: slope of true on predicted offsets {slope:.2f}")


if __name__ == "__main__":
    main()
