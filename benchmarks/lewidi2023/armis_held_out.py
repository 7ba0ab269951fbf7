"""ArMIS/cross-fitted: what each kind of members is worth, on items that weights did not see.

python benchmarks/lewidi2023/armis_held_out.py LEWIDI_FOLDER

CE on held-out fifths of the 798 items of train and dev, mean of three ways to cut them. Test plays
no part.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from edokit import Annotations, Predictions, read_annotations, read_predictions
from edokit._errors import EDOWarning
from edokit.analysis.compare.method import make_method
from edokit.metrics import ce

METHODS = ("uniform", "edo")
PARTS = 5
CUTS = 3


def held_out(pool: Predictions, people: Annotations, method: str) -> float:
    """Mean over cuts."""
    scores = []
    for cut in range(CUTS):
        part = np.random.default_rng(cut).permutation(len(pool)) % PARTS
        answers = np.zeros((len(pool), len(pool.classes)))
        for held_out_part in range(PARTS):
            learn = np.flatnonzero(part != held_out_part)
            judge = np.flatnonzero(part == held_out_part)
            fitted = make_method(method).fit(pool.take(learn), people.take(learn))
            answers[judge] = fitted.predict_proba(pool.take(judge))
        scores.append(ce(answers, np.asarray(people.soft_labels)))
    return float(np.mean(scores))


def main() -> None:
    """A row per kind of members."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EDOWarning)
    everyone = read_predictions(Path(__file__).parent / "ArMIS" / "cross-fitted" / "fit.npz")
    people = read_annotations(arguments.lewidi / "ArMIS").split("train", "dev")
    people = people.align(everyone.items)
    decoders = [name for name in everyone.members if name.startswith("gemma.")]
    other_members = [name for name in everyone.members if not name.startswith("gemma.")]
    print(f"| members | {' | '.join(METHODS)} |\n|---|{'---|' * len(METHODS)}")
    for name, members in (
        (f"{len(other_members)} on similarities", other_members),
        (f"{len(decoders)} decoders", decoders),
        ("all", list(everyone.members)),
    ):
        scores = [held_out(everyone.select(members), people, method) for method in METHODS]
        print(f"| {name} | {' | '.join(f'{score:.4f}'.lstrip('0') for score in scores)} |")


if __name__ == "__main__":
    main()
