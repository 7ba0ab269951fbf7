"""From trained members to benchmarks/lewidi2023/<dataset>/<pool>/{dev,test}.npz and manifest.json.

    python benchmarks/lewidi2023/gpu/collect.py LEWIDI_FOLDER RUNS [--to FOLDER]

RUNS is what prepare.py wrote, with the folders ``members`` that were trained. Pools whose members
are not all there are left out. Prints the scores of each pool's uniform mean; choose by dev.
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from pathlib import Path

from pools import DATASETS, DECODER, DECODER_FOLDS, SEED, decoder_groups, groups_of, read

from edokit._errors import EDOWarning
from edokit.members import Trained, TrainingData, make_plan, train_members
from edokit.members.folder import METRICS, unfinished_jobs
from edokit.members.groups import Group, check_groups
from edokit.metrics import compute_metrics


def main() -> None:
    """Collect every pool that is complete."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--to", type=Path, default=Path(__file__).resolve().parent.parent)
    given = parser.parse_args()
    warnings.simplefilter("ignore", EDOWarning)
    for dataset in DATASETS:
        run = given.runs / dataset
        if not (run / "members").is_dir():
            continue
        annotations, pairs = read(given.lewidi, dataset)
        course = TrainingData.from_annotations(annotations, pairs=pairs)
        pools: dict[str, list[Group]] = {}
        for group in check_groups(groups_of(dataset)):
            if unfinished_jobs(make_plan(course, [group], random_state=SEED), run):
                print(f"{dataset} {group.name}: not complete, left out")
            else:
                pools.setdefault(group.name.partition(".")[0], []).append(group)
        for pool, groups in pools.items():
            # Everything is there, so this trains nothing: it gathers and describes.
            trained = train_members(
                annotations, groups, out=run, random_state=SEED, pairs=pairs, source=f"{dataset}"
            )
            target = given.to / dataset / pool
            target.mkdir(parents=True, exist_ok=True)
            for split in ("dev", "test"):
                shutil.copy(run / "predictions" / f"{split}.npz", target / f"{split}.npz")
            shutil.copy(run / "manifest.json", target / "manifest.json")
            print(f"{dataset} {pool}: {members_of(trained)} members  {scores_of(trained, course)}")
    run = given.runs / DECODER
    if (run / "members").is_dir():
        armis, _ = read(given.lewidi, "ArMIS")
        train_members(
            armis,
            decoder_groups(),
            out=run,
            random_state=SEED,
            cross_fit=DECODER_FOLDS,
            source="ArMIS",
        )
        target = given.to / "ArMIS" / "cross-fitted"
        shutil.copy(run / "manifest.json", target / "gemma-manifest.json")
        print(f"{run / 'predictions'}: to be joined by armis_pool.py --join {run}")


def members_of(trained: Trained) -> int:
    """How many members there are."""
    return len(trained.predictions["dev"].members)


def scores_of(trained: Trained, course: TrainingData) -> str:
    """Scores of the uniform mean on dev and test, for people."""
    shown = []
    for split in ("dev", "test"):
        labels = course.take(course.where(split))
        mean = trained.predictions[split].probabilities.mean(axis=1, dtype=float)
        s = compute_metrics(mean, labels.soft_labels, labels.hard, metrics=METRICS)
        shown.append(f"{split} F1 {s['f1']:.4f} CE {s['ce']:.4f} MD {s['md']:.4f} BS {s['bs']:.4f}")
    return "  ".join(shown)


if __name__ == "__main__":
    main()
