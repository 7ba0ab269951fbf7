"""From trained members to benchmarks/<task>/<dataset>/<pool>/{dev,test}.npz and manifest.json.

    python benchmarks/lewidi/collect.py lewidi2023 RUNS [--to FOLDER]

RUNS is what prepare.py wrote, with the folders ``members`` that were trained. Members that were not
finished are left out and named. Members that know annotators also give {dev,test}-pairs.npz. Prints
the dev scores of each pool's uniform mean; choose by dev.
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

from tasks import BENCHMARKS, SEED, Run, load_task

from edokit._errors import EDOWarning
from edokit.members import Group
from edokit.members.folder import (
    collect_predictions,
    make_manifest,
    unfinished_jobs,
    write_training,
)
from edokit.members.groups import check_groups
from edokit.members.jobs import Plan


def main() -> None:
    """Collect every pool that is complete."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", help="lewidi2023 or lewidi2025")
    parser.add_argument("runs", type=Path)
    parser.add_argument("--to", type=Path, help="else benchmarks/<task>")
    given = parser.parse_args()
    warnings.simplefilter("ignore", EDOWarning)
    for name, run in load_task(given.task).runs.items():
        if (given.runs / name / "members").is_dir():
            collect(run, given.runs / name, (given.to or BENCHMARKS / given.task) / run.dataset)


def collect(run: Run, folder: Path, target: Path) -> None:
    """Write the pools of one run."""
    plan = Plan.load(folder)
    missing = {job.member for job in unfinished_jobs(plan, folder)}
    if missing:
        print(f"{run.dataset}: not finished, left out: {', '.join(sorted(missing))}")
    done = Plan(plan.data, tuple(job for job in plan.jobs if job.member not in missing), plan.folds)
    pools: dict[str, list[Group]] = {}
    for group in check_groups(run.groups):
        members = len({job.member for job in done.jobs if job.group == group.name})
        if members:
            own = replace(group, members=members)
            pools.setdefault(group.name.partition(".")[0], []).append(own)
    for pool, groups in pools.items():
        part = _part(done, groups)
        found = collect_predictions(part, folder)
        manifest = make_manifest(
            part, groups, found, (), folder, random_state=SEED, source=run.dataset
        )
        write_training(folder, found, manifest)
        if run.manifest is not None:
            shutil.copy(folder / "manifest.json", target / run.manifest)
            print(f"{folder / 'predictions'}: written for another program")
            continue
        (target / pool).mkdir(parents=True, exist_ok=True)
        for name in found:
            shutil.copy(folder / "predictions" / f"{name}.npz", target / pool / f"{name}.npz")
        shutil.copy(folder / "manifest.json", target / pool / "manifest.json")
        split, scores = next(iter(manifest["mean"].items()))
        shown = "  ".join(f"{metric} {value:.4f}" for metric, value in scores.items())
        print(f"{run.dataset} {pool}: {len(manifest['members'])} members  {split} {shown}")


def _part(plan: Plan, groups: list[Group]) -> Plan:
    """The jobs of these groups."""
    names = {group.name for group in groups}
    return Plan(plan.data, tuple(job for job in plan.jobs if job.group in names), plan.folds)


if __name__ == "__main__":
    main()
