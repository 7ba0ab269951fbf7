"""Sentence pairs as tables of annotations, from which encoders learn before a shared task.

    python benchmarks/lewidi/pairs.py PAIRS_FOLDER OUT_FOLDER

PAIRS_FOLDER holds nli.jsonl.gz and similarity.jsonl.gz. Writes inference.csv and similarity.csv; as
in the shared task, the text is the hypothesis or second sentence, its context the other one.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

VOTES = 4
"""Annotators of a similarity: with .875 all but half a vote say that the sentences are similar."""
DEV = 20
"""One of this many pairs is for dev."""


def main(pairs: Path, out: Path) -> None:
    """Write both tables."""
    out.mkdir(parents=True, exist_ok=True)
    inference = (
        (pair["hypothesis"], pair["premise"], classes_of(pair["label"]))
        for pair in read(pairs / "nli.jsonl.gz")
    )
    table(inference).to_csv(out / "inference.csv", index=False)
    similarity = (
        (pair["b"], pair["a"], votes_of(pair["score"]))
        for pair in read(pairs / "similarity.jsonl.gz")
    )
    table(similarity).to_csv(out / "similarity.csv", index=False)


def read(path: Path) -> Iterable[dict]:
    """The lines of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def classes_of(label: str) -> list[str]:
    """The votes of annotators: "not entailment" is one vote for each of the other two classes."""
    if label == "not entailment":
        return ["contradiction", "neutral"]
    return [label]


def votes_of(score: float) -> list[str]:
    """Votes in which a share of ``score`` says that two sentences are similar."""
    similar = round(score * VOTES)
    return ["similar"] * similar + ["different"] * (VOTES - similar)


def table(pairs: Iterable[tuple[str, str, list[str]]]) -> pd.DataFrame:
    """One row per vote; pairs without text, and those that are listed again, are left out."""
    rows = []
    listed = set()
    for number, (text, context, labels) in enumerate(pairs):
        if not text.strip() or (text, context) in listed:
            continue
        listed.add((text, context))
        split = "dev" if len(listed) % DEV == 0 else "train"
        for vote, label in enumerate(labels):
            rows.append((f"pair-{number}", f"vote-{vote}", label, text, context, split))
    columns = ["item", "annotator", "label", "text", "context", "split"]
    return pd.DataFrame(rows, columns=columns)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
