"""From a Label Studio export to an ensemble, and back to the people: `run.py [FOLDER]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from edokit import EDOEnsemble, read_annotations, simulate
from edokit.datasets.split import split_items
from edokit.demo import train_quick_members
from edokit.ensemble.reviews import review, write_review
from edokit.metrics import compute_metrics


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    export = folder / "export.json"
    export.write_text(json.dumps(moderated_posts()), encoding="utf-8")

    people = read_annotations(export, question="verdict", classes=["fine", "offensive"])
    print(f"{len(people.items)} posts, {len(people.annotators)} moderators, {len(people)} answers")

    people = split_items(people, {"train": 0.6, "dev": 0.2, "test": 0.2})
    dev = people.split("dev")
    test = people.split("test")
    predictions = train_quick_members(people, members=10, random_state=0)

    ensemble = EDOEnsemble(ties="random").fit(predictions["dev"], dev)
    ensemble.save(folder / "ensemble")
    for reason in ensemble.explain():
        print("-", reason)

    pooled = ensemble.describe(predictions["test"])
    answers = {"uniform mean": predictions["test"].uniform, "EDO": pooled}
    for name, p in answers.items():
        hard_labels = test.hard_labels(ties="random")
        scores = compute_metrics(p, test, hard_labels, metrics=("f1", "ce", "md"))
        print(f"{name:>10}  F1 {scores['f1']:.3f}  CE {scores['ce']:.3f}  MD {scores['md']:.3f}")

    queue = review(pooled, 10)
    texts = dict(zip(test.items, test.texts, strict=True))
    write_review(queue, people.classes, folder / "review.json", texts)
    print("most in need of a person:", queue[0].item, queue[0].reason, sep="\n  ")


def moderated_posts() -> list[dict[str, Any]]:
    """The output of *Export → JSON* for a project with one choice, of simulated moderators."""
    people = simulate("partial-panel", random_state=0, items=(600, 0, 0)).annotations
    tasks = [
        {"id": number, "data": {"text": str(text)}, "annotations": [], "predictions": []}
        for number, text in enumerate(people.texts, start=1)
    ]
    for number, (item, person, label) in enumerate(
        zip(people.item_codes, people.annotator_codes, people.label_codes, strict=True), start=1
    ):
        choice = people.classes[label]
        tasks[item]["annotations"].append(answer(number, int(person) + 1, choice))
    tasks[0]["annotations"].append(answer(0, 99, "fine") | {"was_cancelled": True})
    return tasks


def answer(number: int, person: int, choice: str) -> dict[str, Any]:
    """One annotation of the export."""
    result = {
        "from_name": "verdict",
        "to_name": "text",
        "type": "choices",
        "value": {"choices": [choice]},
    }
    return {"id": number, "completed_by": person, "was_cancelled": False, "result": [result]}


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "moderation"))
