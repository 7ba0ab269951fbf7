"""Job files for a GPU: the transformer members of the LeWiDi 2023 benchmark.

    python benchmarks/lewidi2023/gpu/make_jobs.py LEWIDI_FOLDER JOBS --model MODEL_FOLDER

writes JOBS/<dataset>.course.json (texts and answers) and JOBS/<dataset>.<pool>.json, which
`python -m edokit.members.job` trains; results go to JOBS/out/<dataset>/<pool>/. The model folder
is named as the machine that trains will see it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from edokit.datasets.lewidi import read_lewidi
from edokit.members.course import Course
from edokit.members.supervision import most_active

Options = dict[str, Any]

SEEDS = 20
SINGLE_SEEDS = 5
"""Of the baselines that are a single model."""

# Every epoch is trained and the best one on dev (by CE) is kept.
COMMON: Options = {"patience": 0, "criterion": "ce", "eval_batch_size": 128, "max_length": 256}
HELPED: Options = {"adversarial": 1.0, "layer_decay": 0.9}
DATASETS: dict[str, Options] = {
    "HS-Brexit": {"epochs": 14, "learning_rate": 4e-5, "batch_size": 16, **HELPED},
    "ConvAbuse": {
        "epochs": 6,
        "learning_rate": 4e-5,
        "batch_size": 16,
        "pooling": "mean+target",
        "speaker_tags": True,
        **HELPED,
    },
    "MD-Agreement": {"epochs": 4, "learning_rate": 2.5e-5, "batch_size": 32, **HELPED},
}
"""What differs between the datasets; ArMIS needs an Arabic encoder."""

PER_ANNOTATOR_EPOCHS = {"HS-Brexit": 14, "ConvAbuse": 10, "MD-Agreement": 14}
"""One annotator's items may be few: as many steps then need more epochs."""

PILOTS: dict[str, Options] = {
    "chosen": {},
    "plain": {"adversarial": 0.0, "layer_decay": 1.0},
    "slower": {"learning_rate": 2e-5},
    "adversarial-only": {"layer_decay": 1.0, "learning_rate": 3e-5},
}
"""Tried with two seeds each before twenty are trained; judged on dev."""


def pools(dataset: str, course: Course, seeds: int) -> dict[str, list[dict[str, Any]]]:
    """The members of each pool."""
    train = course.take(course.where("train"))
    # At most ten annotators, as the ensemble's largest size.
    people = most_active_quietly(train, min(10, len(train.annotators)))
    epochs = PER_ANNOTATOR_EPOCHS[dataset]
    return {
        "pilot": [
            member(f"{name}-{seed}", 1000 + seed, **options)
            for seed in range(2)
            for name, options in PILOTS.items()
        ],
        "random-select": [member(f"random-select-{s:02}", s) for s in range(seeds)],
        "per-annotator": [
            {
                **member(f"per-annotator-{k:02}", k, epochs=epochs),
                "supervision": "per-annotator",
                "annotator": person,
            }
            for k, person in enumerate(people)
        ],
        "soft-ce": [
            {**member(f"soft-ce-{s}", s), "supervision": "soft"} for s in range(SINGLE_SEEDS)
        ],
        "soft-md": [
            {**member(f"soft-md-{s}", s, loss="md"), "supervision": "soft"}
            for s in range(SINGLE_SEEDS)
        ],
        "mixed": [
            {**member(f"{name}-{s}", 100 + s, **options), **rest}
            for s in range(3)
            for name, options, rest in (
                ("annotator-heads", {"annotator_heads": True}, {}),
                ("once", {}, {"draw": "once"}),
                ("majority", {}, {"supervision": "majority"}),
                ("first-token", {"pooling": "first"}, {}),
                ("plain-slow", {**PILOTS["plain"], "learning_rate": 1e-5}, {}),
            )
        ],
    }


def member(name: str, seed: int, **options: Any) -> dict[str, Any]:
    """One entry of a job."""
    return {"name": name, "seed": seed, "options": options}


def most_active_quietly(train: Course, members: int) -> list[str]:
    """The most active annotators; more than the least annotated item has are wanted here."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return most_active(train, members)


def main() -> None:
    """Write courses and jobs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi", type=Path)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--model", required=True, help="the model's folder on the GPU machine")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    given.jobs.mkdir(parents=True, exist_ok=True)
    for dataset, own in DATASETS.items():
        pairs = dataset == "ConvAbuse"
        annotations = read_lewidi(given.lewidi / dataset, dialogue="user-first")
        course = Course.of(annotations, pairs=pairs)
        course.save(given.jobs / f"{dataset}.course.json")
        for pool, members in pools(dataset, course, given.seeds).items():
            job = {
                "course": f"{dataset}.course.json",
                "out": f"out/{dataset}/{pool}",
                "options": {**COMMON, **own, "model": given.model},
                "members": members,
            }
            path = given.jobs / f"{dataset}.{pool}.json"
            path.write_text(json.dumps(job, indent=1) + "\n", encoding="utf-8")
            print(f"{path}: {len(members)} members")


if __name__ == "__main__":
    main()
