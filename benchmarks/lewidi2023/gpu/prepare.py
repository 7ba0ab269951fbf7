"""What a GPU machine needs to train the pools: RUNS/<dataset>/{course,plan}.json.

    python benchmarks/lewidi2023/gpu/prepare.py LEWIDI_FOLDER RUNS

There, in a folder that holds the weights as sentence-transformers/all-mpnet-base-v2:

    python -m edokit.members RUNS/HS-Brexit --only random-select --device cuda --forget-models

RUNS/ArMIS-gemma is for a folder that holds what gemma.py wrote.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from pools import DATASETS, DECODER, DECODER_FOLDS, SEED, decoder_groups, groups_of, read

from edokit._errors import EDOWarning
from edokit.members.train import prepare_training


def main() -> None:
    """Write a plan for each dataset."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi", type=Path)
    parser.add_argument("runs", type=Path)
    given = parser.parse_args()
    # Per-annotator members may be more than the least annotated item has annotators: wanted here.
    warnings.simplefilter("ignore", EDOWarning)
    for dataset in DATASETS:
        annotations, pairs = read(given.lewidi, dataset)
        out = given.runs / dataset
        fits = prepare_training(annotations, groups_of(dataset), out=out, seed=SEED, pairs=pairs)
        print(f"{out}: {fits} members planned")
    out = given.runs / DECODER
    armis, _ = read(given.lewidi, "ArMIS")
    fits = prepare_training(armis, decoder_groups(), out=out, seed=SEED, cross_fit=DECODER_FOLDS)
    print(f"{out}: {fits} fits planned")


if __name__ == "__main__":
    main()
