"""From trained members to benchmarks/<task>/<dataset>/<pool>/{dev,test}.npz and manifest.json.

    python benchmarks/lewidi/collect.py lewidi2023 LEWIDI_FOLDER RUNS [--to FOLDER]

RUNS is what train.py wrote. Members that were not finished are left out and named. Members that
know annotators also give {dev,test}-pairs.npz. Prints the dev scores of each pool's uniform mean;
choose by dev.
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

from tasks import BENCHMARKS, SEED, Data, Run, load_task

from edokit._errors import EDOWarning
from edokit.members import Group, TrainingOptions
from edokit.members.collect import collect_predictions
from edokit.members.groups import check_groups
from edokit.members.manifest import make_manifest, write_training
from edokit.members.plan import TrainingPlan, make_plan
from edokit.members.resume import member_cards, unfinished_jobs
from edokit.members.training_data import TrainingData


def main() -> None:
    """Collect every pool that is complete."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", help="lewidi2023 or lewidi2025")
    parser.add_argument("lewidi", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--to", type=Path, help="else benchmarks/<task>")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EDOWarning)
    task = load_task(arguments.task)
    for name, run in task.runs.items():
        if (arguments.runs / name / "members").is_dir():
            target = (arguments.to or BENCHMARKS / arguments.task) / run.dataset
            collect(run, task.read(arguments.lewidi, run.dataset), arguments.runs / name, target)


def collect(run: Run, data: Data, folder: Path, target: Path) -> None:
    """Write the pools of one run."""
    run_groups = check_groups(run.groups)
    training_data = TrainingData.from_annotations(data.annotations, unlabelled=data.unlabelled)
    options = TrainingOptions(random_state=SEED, cross_fit=run.cross_fit, source=run.dataset)
    plan = make_plan(training_data, run_groups, options)
    cards = member_cards(folder)
    missing = {job.member for job in unfinished_jobs(plan, folder, cards)}
    if missing:
        print(f"{run.dataset}: not finished, left out: {', '.join(sorted(missing))}")
    plan = replace(plan, jobs=tuple(job for job in plan.jobs if job.member not in missing))
    pools: dict[str, list[Group]] = {}
    for group in run_groups:
        members = len({job.member for job in plan.jobs if job.group == group.name})
        if members:
            own_group = replace(group, members=members)
            pools.setdefault(group.name.partition(".")[0], []).append(own_group)
    for pool, groups in pools.items():
        part = _part(plan, groups)
        predictions = collect_predictions(part, folder, cards)
        manifest = make_manifest(part, predictions, (), cards)
        write_training(folder, predictions, manifest)
        if run.manifest is not None:
            shutil.copy(folder / "manifest.json", target / run.manifest)
            print(f"{folder / 'predictions'}: written for another program")
            continue
        (target / pool).mkdir(parents=True, exist_ok=True)
        for name in predictions:
            shutil.copy(folder / "predictions" / f"{name}.npz", target / pool / f"{name}.npz")
        shutil.copy(folder / "manifest.json", target / pool / "manifest.json")
        split, scores = next(iter(manifest["mean"].items()))
        score_text = "  ".join(f"{metric} {value:.4f}" for metric, value in scores.items())
        print(f"{run.dataset} {pool}: {len(manifest['members'])} members  {split} {score_text}")


def _part(plan: TrainingPlan, groups: list[Group]) -> TrainingPlan:
    """The jobs of these groups."""
    names = {group.name for group in groups}
    jobs = tuple(job for job in plan.jobs if job.group in names)
    return replace(plan, groups=tuple(groups), jobs=jobs)


if __name__ == "__main__":
    main()
