"""What a GPU machine needs to train the pools of a shared task: RUNS/<run>/{course,plan}.json.

    python benchmarks/lewidi/prepare.py lewidi2023 LEWIDI_FOLDER RUNS

There, in a folder that holds the weights under the name that the pools give them, such as
sentence-transformers/all-mpnet-base-v2 (gemma.py makes the decoder's):

    python -m edokit.members RUNS/HS-Brexit --only random-select --device cuda --forget-models
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from tasks import SEED, load_task

from edokit._errors import EDOWarning
from edokit.members.train import prepare_training


def main() -> None:
    """Write a plan for each run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", help="lewidi2023 or lewidi2025")
    parser.add_argument("lewidi", type=Path)
    parser.add_argument("runs", type=Path)
    given = parser.parse_args()
    # Per-annotator members may be more than the least annotated item has annotators: wanted here.
    warnings.simplefilter("ignore", EDOWarning)
    task = load_task(given.task)
    for name, run in task.runs.items():
        data = task.read(given.lewidi, run.dataset)
        out = given.runs / name
        jobs = prepare_training(
            data.annotations,
            run.groups,
            out=out,
            random_state=SEED,
            cross_fit=run.cross_fit,
            pairs=data.pairs,
            unlabelled=data.unlabelled,
        )
        print(f"{out}: {jobs} jobs planned")


if __name__ == "__main__":
    main()
