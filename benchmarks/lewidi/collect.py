"""From trained members to benchmarks/<task>/<dataset>/<pool>/{dev,test}.npz and manifest.json.

    python benchmarks/lewidi/collect.py lewidi2023 LEWIDI_FOLDER RUNS [--to FOLDER]

RUNS is what prepare.py wrote, with the folders ``members`` that were trained. Groups whose members
are not all there are left out. Prints the dev scores of each pool's uniform mean; choose by dev.
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from pathlib import Path

from tasks import BENCHMARKS, SEED, Run, load_task

from edokit._errors import EDOWarning
from edokit.annotations import Annotations
from edokit.members import Group, TrainingData, make_plan, train_members
from edokit.members.folder import unfinished_jobs
from edokit.members.groups import check_groups


def main() -> None:
    """Collect every pool that is complete."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", help="lewidi2023 or lewidi2025")
    parser.add_argument("lewidi", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--to", type=Path, help="else benchmarks/<task>")
    given = parser.parse_args()
    warnings.simplefilter("ignore", EDOWarning)
    task = load_task(given.task)
    for name, run in task.runs.items():
        if (given.runs / name / "members").is_dir():
            annotations, pairs = task.read(given.lewidi, run.dataset)
            target = (given.to or BENCHMARKS / given.task) / run.dataset
            collect(run, given.runs / name, annotations, pairs, target)


def collect(run: Run, folder: Path, annotations: Annotations, pairs: bool, target: Path) -> None:
    """Write the pools of one run."""
    data = TrainingData.from_annotations(annotations, pairs=pairs)
    pools: dict[str, list[Group]] = {}
    for group in check_groups(run.groups):
        plan = make_plan(data, [group], random_state=SEED, cross_fit=run.cross_fit)
        if unfinished_jobs(plan, folder):
            print(f"{run.dataset} {group.name}: not complete, left out")
        else:
            pools.setdefault(group.name.partition(".")[0], []).append(group)
    for pool, groups in pools.items():
        # Everything is there, so this trains nothing: it gathers and describes.
        trained = train_members(
            annotations,
            groups,
            out=folder,
            random_state=SEED,
            cross_fit=run.cross_fit,
            pairs=pairs,
            source=run.dataset,
        )
        if run.manifest is not None:
            shutil.copy(folder / "manifest.json", target / run.manifest)
            print(f"{folder / 'predictions'}: written for another program")
            continue
        (target / pool).mkdir(parents=True, exist_ok=True)
        for file in (folder / "predictions").glob("*.npz"):
            shutil.copy(file, target / pool / file.name)
        shutil.copy(folder / "manifest.json", target / pool / "manifest.json")
        scores = trained.manifest["mean"]["dev"]
        shown = "  ".join(f"{metric} {value:.4f}" for metric, value in scores.items())
        print(f"{run.dataset} {pool}: {len(trained.manifest['members'])} members  dev {shown}")


if __name__ == "__main__":
    main()
