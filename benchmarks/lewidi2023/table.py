"""The uniform mean of every committed pool against people's answers, as a table.

python benchmarks/lewidi2023/table.py LEWIDI_FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

from edokit import read_annotations, read_predictions
from edokit.metrics import compute_metrics

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Print one row per pool."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi", type=Path)
    lewidi = parser.parse_args().lewidi
    print("| dataset | pool | members | dev CE | test F1 | test CE | test MD | test BS |")
    print("|---|---|---|---|---|---|---|---|")
    for folder in sorted(path.parent for path in HERE.glob("*/*/test.npz")):
        dataset, pool = folder.parts[-2:]
        people = read_annotations(lewidi / dataset)
        scores = {}
        for split in ("dev", "test"):
            part = people.split(split)
            answers = read_predictions(folder / f"{split}.npz").align(part.items)
            scores[split] = compute_metrics(answers.uniform, part.soft_labels, part.hard_labels())
        shown_scores = [
            scores["dev"]["ce"],
            *(scores["test"][name] for name in ("f1", "ce", "md", "bs")),
        ]
        figures = " | ".join(f"{value:.4f}" for value in shown_scores)
        print(f"| {dataset} | {pool} | {len(answers.members)} | {figures} |")


if __name__ == "__main__":
    main()
