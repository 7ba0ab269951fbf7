"""The queue for people: the right items, the reasons, and a way to Label Studio and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from ensemble_cases import people_and_pool

from commands import status
from edokit import EDOEnsemble, read_annotations, write_predictions
from edokit._io.tables import write_table
from edokit._names import as_names
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.reviews import (
    label_studio_tasks,
    labelling_config,
    review,
    write_review,
)
from edokit.rows import Rows
from tests.errors import raises_code


def pooled(
    p: list[list[float]], spread: list[float], classes: tuple[str, ...] = ("no", "yes")
) -> Pooled:
    names = as_names(f"item-{i}" for i in range(len(p)))
    return Pooled(Rows.from_names(names), classes, np.array(p), np.array(spread))


CASES = pooled(
    [[0.99, 0.01], [0.5, 0.5], [0.75, 0.25], [0.95, 0.05]],
    [0.0, 0.3, 0.1, 0.4],
)


def labelled(tasks: list[dict[str, Any]], answers: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Tasks as Label Studio exports them once people have answered."""
    return [
        {
            "id": 1000 + number,
            "data": task["data"],
            "predictions": [{"id": 7, **task["predictions"][0]}],
            "annotations": [
                {
                    "id": 10 * number + k,
                    "completed_by": k + 1,
                    "was_cancelled": False,
                    "ground_truth": False,
                    "result": [
                        {
                            "id": "a1",
                            "from_name": "label",
                            "to_name": "text",
                            "type": "choices",
                            "origin": "manual",
                            "value": {"choices": [label]},
                        }
                    ],
                }
                for k, label in enumerate(answers[task["data"]["item"]])
            ],
        }
        for number, task in enumerate(tasks)
    ]


def test_the_most_urgent_stand_first_each_with_its_reason() -> None:
    queue = review(CASES, 3)
    assert [entry.item for entry in queue] == ["item-1", "item-2", "item-3"]
    assert queue[0].urgency > queue[1].urgency > queue[2].urgency
    assert "50% would not choose 'no'" in queue[0].reason
    assert "25% would not choose 'no'" in queue[1].reason
    assert "spread 0.40" in queue[2].reason


def test_asking_for_more_items_than_there_are_gives_all() -> None:
    assert len(review(CASES, 100)) == 4


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_asking_for_no_items_is_refused(count: Any) -> None:
    with raises_code("invalid-number", "1"):
        review(CASES, count)


def test_shard_by_shard_gives_the_same_queue() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=60)
    spread = rng.random(60) / 2
    whole = Pooled(Rows.from_names(range(60)), ("a", "b", "c"), p, spread)
    queue: list[Any] = []
    for start in range(0, 60, 7):
        rows = slice(start, start + 7)
        part = Pooled(Rows.from_names(whole.items[rows]), whole.classes, p[rows], spread[rows])
        queue = review(part, 10, queue)
    assert queue == review(whole, 10)


def test_tasks_hold_the_item_the_text_and_the_ensembles_answer() -> None:
    texts = {f"item-{i}": f"text {i}" for i in range(4)}
    task = label_studio_tasks(review(CASES, 2), texts)[1]
    assert task["data"]["item"] == "item-2"
    assert task["data"]["text"] == "text 2"
    assert task["data"]["probabilities"] == {"no": 0.75, "yes": 0.25}
    (prediction,) = task["predictions"]
    assert prediction["score"] == 0.75
    assert prediction["model_version"].startswith("edokit ")
    (answer,) = prediction["result"]
    assert answer["value"] == {"choices": ["no"]}
    assert "text" not in label_studio_tasks(review(CASES, 1))[0]["data"]


def test_the_interface_fits_the_tasks_and_odd_names_are_escaped() -> None:
    classes = ('say "no"', "<yes> & more")
    view = ElementTree.fromstring(labelling_config(classes, has_texts=True))
    (choices,) = view.iter("Choices")
    (shown,) = view.iter("Text")
    (task,) = label_studio_tasks(review(pooled([[0.4, 0.6]], [0.0], classes), 1), {"item-0": "t"})
    (answer,) = task["predictions"][0]["result"]
    assert answer["from_name"] == choices.get("name")
    assert answer["to_name"] == choices.get("toName") == shown.get("name")
    assert [choice.get("value") for choice in view.iter("Choice")] == list(classes)
    assert str(shown.get("value")).removeprefix("$") in task["data"]


@pytest.mark.parametrize("texts", [None, {f"item-{i}": f"text {i}" for i in range(4)}])
def test_what_people_answer_in_label_studio_is_read_back(
    tmp_path: Path, texts: dict[str, str] | None
) -> None:
    write_review(review(CASES, 2), CASES.classes, tmp_path / "queue.json", texts)
    tasks = json.loads((tmp_path / "queue.json").read_text(encoding="utf-8"))
    answers = {"item-1": ["yes", "no", "yes"], "item-2": ["no", "no"]}
    export = tmp_path / "export.json"
    export.write_text(json.dumps(labelled(tasks, answers)), encoding="utf-8")
    people = read_annotations(export, columns={"item": "item"})
    assert people.items.tolist() == ["item-1", "item-2"]
    assert people.soft_labels[0].tolist() == pytest.approx([1 / 3, 2 / 3])
    assert (people.texts is None) == (texts is None)
    if people.texts is not None:
        assert people.texts.tolist() == ["text 1", "text 2"]


def test_missing_texts_and_other_endings_are_refused(tmp_path: Path) -> None:
    with raises_code("missing-texts", "'item-1'"):
        label_studio_tasks(review(CASES, 1), {"item-0": "text"})
    with raises_code("unknown-ending"):
        write_review(review(CASES, 1), CASES.classes, tmp_path / "queue.csv")


def test_predict_writes_the_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people, pool = people_and_pool()
    EDOEnsemble().fit(pool, people).save(tmp_path / "ensemble")
    write_predictions(pool, tmp_path / "pool.npz")
    texts = {"item": people.items.tolist(), "text": [f"words of {i}" for i in people.items]}
    write_table(pa.table(texts), tmp_path / "texts.csv")
    words = ["predict", tmp_path / "ensemble", "--predictions", tmp_path / "pool.npz"]
    words += ["--out", tmp_path / "p.csv"]
    assert status(*words, "--review", 7, "--texts", tmp_path / "texts.csv", "--json") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    done = json.loads(printed.out)
    assert done["review"]["items"] == 7
    tasks = json.loads(Path(done["review"]["out"]).read_text(encoding="utf-8"))
    assert tasks[0]["data"]["text"] == f"words of {tasks[0]['data']['item']}"
    assert Path(done["review"]["config"]).is_file()
    assert status(*words, "--review", 500, "--overwrite") == 0
    printed = capsys.readouterr()
    assert "; all 120 items to review, most urgent first, for Label Studio: " in printed.out
    assert "will see only the ids of items" in printed.err
    assert "--annotations or --texts" in printed.err
    assert len(json.loads((tmp_path / "p-review.json").read_text(encoding="utf-8"))) == 120


def test_predict_refuses_a_queue_that_makes_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people, pool = people_and_pool()
    EDOEnsemble().fit(pool, people).save(tmp_path / "ensemble")
    write_predictions(pool, tmp_path / "pool.npz")
    words = ["predict", tmp_path / "ensemble", "--predictions", tmp_path / "pool.npz"]
    words += ["--out", tmp_path / "p.csv"]
    assert status(*words, "--annotations", tmp_path / "people.csv") == 2
    assert "--review" in capsys.readouterr().err
    assert status(*words, "--review", 0) == 2
    assert not (tmp_path / "p.csv").exists()


def test_the_card_says_who_should_look_and_how(tmp_path: Path) -> None:
    people, pool = people_and_pool()
    EDOEnsemble().fit(pool, people).save(tmp_path)
    assert "edo predict --review N" in (tmp_path / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("p", "spread", "urgency"),
    [
        ([0.5, 0.5], 1.0, 1.0),  # even, and the members could not be farther apart
        ([0.5, 0.5], 0.0, 2 / 3),
        ([1.0, 0.0], 1.0, 1 / 3),
        ([1.0, 0.0], 0.0, 0.0),
        ([0.75, 0.25], 0.0, (0.811278 + 0.5) / 3),  # entropy in bits, minority of at most half
        ([1 / 3, 1 / 3, 1 / 3], 0.0, 2 / 3),
        ([0.6, 0.4, 0.0], 0.0, (0.612602 + 0.6) / 3),
    ],
)
def test_urgency_is_the_mean_of_entropy_minority_and_spread(p, spread, urgency):
    (entry,) = review(pooled([p], [spread], tuple("abc"[: len(p)])), 1)
    assert entry.urgency == pytest.approx(urgency, abs=1e-6)
