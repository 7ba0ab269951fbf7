"""Train the pools of a shared task into RUNS/<run>.

    python benchmarks/lewidi/train.py lewidi2023 LEWIDI_FOLDER RUNS --run HS-Brexit --device cuda

Run it in a folder that holds the weights under the name that the pools give them, such as
sentence-transformers/all-mpnet-base-v2 (gemma.py and qwen.py make those of decoders). Models are
kept only where other runs start from them.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from tasks import SEED, load_task

from edokit._errors import EDOWarning
from edokit.members import train_members
from edokit.members.groups import check_groups


def main() -> None:
    """Train the groups that are named, or all, of one run or of all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", help="lewidi2023 or lewidi2025")
    parser.add_argument("lewidi", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--run", help="Train this run only.")
    parser.add_argument("--only", help="Train groups of these names only, separated by commas.")
    parser.add_argument("--jobs", type=int, help="Members at a time.")
    parser.add_argument("--device", help="Where to compute, e.g. cuda.")
    arguments = parser.parse_args()
    # Per-annotator members may outnumber the annotators of an item, which is intended here.
    warnings.simplefilter("ignore", EDOWarning)
    task = load_task(arguments.task)
    for name, run in task.runs.items():
        if arguments.run not in (None, name):
            continue
        groups = check_groups(run.groups)
        if arguments.only:
            groups = [group for group in groups if group.name in arguments.only.split(",")]
        data = task.read(arguments.lewidi, run.dataset)
        train_members(
            data.annotations,
            groups,
            out=arguments.runs / name,
            random_state=SEED,
            cross_fit=run.cross_fit,
            unlabelled=data.unlabelled,
            jobs=arguments.jobs,
            device=arguments.device,
            keep_models=run.keep_models,
            progress=print,
        )


if __name__ == "__main__":
    main()
