"""The official scores: on made-up answers, and the reference rows of LeWiDi 2025 on dev."""

from __future__ import annotations

import io
import json
import re
import sys
from collections import Counter, defaultdict
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import edokit
from edokit import InputError
from edokit.cli import main
from edokit.metrics.scorers import lewidi2023, lewidi2025_a, lewidi2025_b

# Labels, scale, and the reference points of dev: the training set's mean answer (task A), each
# annotator's most frequent answer (task B; for sets no label at all).
DATASETS: dict[str, tuple[list[str], Any, float, float]] = {
    "MP": (["0", "1"], "nominal", 0.5235, 0.3174),
    "CSC": ([str(k) for k in range(1, 7)], "ordinal", 1.1230, 0.2285),
    "Paraphrase": ([str(k) for k in range(-5, 6)], "ordinal", 2.7471, 0.3373),
    "VariErrNLI": (["contradiction", "entailment", "neutral"], "multi-label", 0.6529, 0.3456),
}


def published(folder: Path, dataset: str, split: str) -> list[dict[str, Any]]:
    text = (folder / dataset / f"{dataset}_{split}.json").read_text(encoding="utf-8")
    return list(json.loads(text).values())


def coded(item: dict[str, Any], labels: list[str]) -> list[tuple[str, np.ndarray]]:
    """Annotator and labels of each annotation."""
    return [
        (who.strip(), np.isin(labels, str(given).removesuffix(".0").split(",")))
        for who, given in item["annotations"].items()
    ]


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_reference_rows_of_lewidi_2025_come_out(dataset: str, lewidi2025: Path) -> None:
    labels, scale, task_a, task_b = DATASETS[dataset]
    train, dev = (
        [coded(item, labels) for item in published(lewidi2025, dataset, split)]
        for split in ("train", "dev")
    )
    soft = [
        np.array([np.mean([chosen for _, chosen in item], axis=0) for item in part])
        for part in (train, dev)
    ]
    constant = np.tile(soft[0].mean(axis=0), (len(dev), 1))
    assert lewidi2025_a(constant, soft[1], scale) == pytest.approx(task_a, abs=5e-5)

    usual: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for item in train:
        for who, chosen in item:
            usual[who][int(chosen.argmax())] += 1
    rows = [(n, who, chosen) for n, item in enumerate(dev) for who, chosen in item]
    items = [n for n, *_ in rows]
    if scale == "multi-label":
        given = np.array([chosen for *_, chosen in rows])
        found = lewidi2025_b(items, np.zeros_like(given), given, scale)
    else:
        codes = [int(chosen.argmax()) for *_, chosen in rows]
        predicted = [usual[who].most_common(1)[0][0] for _, who, _ in rows]
        found = lewidi2025_b(items, predicted, codes, scale, len(labels))
    assert found == pytest.approx(task_b, abs=5e-5)


def command(*words: object) -> tuple[int, str, str]:
    """Exit code, output and messages of a command."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["edo", *map(str, words)]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    return int(stop.value.code or 0), out.getvalue(), err.getvalue()


def scored(*words: object) -> dict[str, Any]:
    """What ``edo evaluate`` reports, without intervals."""
    code, out, err = command("evaluate", *words, "--bootstrap", 0, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_command_reproduces_the_reference_rows_on_dev(
    dataset: str, lewidi2025: Path, tmp_path: Path
) -> None:
    labels, scale, task_a, task_b = DATASETS[dataset]
    rows = []
    for split in ("train", "dev"):
        for n, item in enumerate(published(lewidi2025, dataset, split)):
            for who, chosen in coded(item, labels):
                named = ",".join(np.array(labels)[chosen])
                rows.append((f"{split}-{n}", who, named, split))
    people = pd.DataFrame(rows, columns=["item", "annotator", "label", "split"])
    people.to_csv(tmp_path / "people.csv", index=False)
    declared = scale if scale == "nominal" else f"{scale}:{','.join(labels)}"
    given = ["--annotations", tmp_path / "people.csv", "--scale", declared, "--ties", "random"]

    # Task A: the constant answer is the training set's mean answer.
    dev = people[people.split == "dev"]
    dev.assign(**{f"p_{label}": 1 / len(labels) for label in labels}).drop_duplicates("item").drop(
        columns=["annotator", "label", "split"]
    ).to_csv(tmp_path / "uniform.csv", index=False)
    words = ["--probabilities", tmp_path / "uniform.csv", *given, "--split", "dev"]
    found = scored(*words, "--train-split", "train", "--scorer", "lewidi2025-a")
    (name,) = found["official"]["scores"]
    assert name == ("w1" if scale == "ordinal" else "md")
    assert found["official"]["constant"][name] == pytest.approx(task_a, abs=5e-5)
    shares = dict(zip(labels, found["constant"]["shares"], strict=True))
    constant = pd.DataFrame(
        {"item": dev["item"].unique(), **{f"p_{k}": v for k, v in shares.items()}}
    )
    constant.to_csv(tmp_path / "constant.csv", index=False)
    words[1] = tmp_path / "constant.csv"
    found = scored(*words, "--scorer", "lewidi2025-a")
    assert found["official"]["scores"][name] == pytest.approx(task_a, abs=5e-5)

    # Task B: the most frequent answer of each annotator (of equals the first given).
    train = people[people.split == "train"].groupby("annotator")["label"]
    usual = train.agg(lambda own: Counter(own).most_common(1)[0][0])
    answers = dev.drop(columns="split").assign(label=dev["annotator"].map(usual))
    if scale == "multi-label":
        answers["label"] = "[]"
    answers.to_csv(tmp_path / "answers.csv", index=False)
    words[1] = tmp_path / "answers.csv"
    found = scored(*words, "--scorer", "lewidi2025-b")
    (value,) = found["official"]["scores"].values()
    assert value == pytest.approx(task_b, abs=5e-5)
    assert "each annotator" in found["official"]["note"]
    assert "anonymous" not in found["official"]["note"]


PEOPLE = """item,annotator,label
a,x,1
a,y,3
b,x,2
b,y,2
"""
ANSWERS = """item,p_1,p_2,p_3
a,0.5,0.3,0.2
b,0.4,0.3,0.3
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Any]:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "p.csv").write_text(ANSWERS)
    return ["--probabilities", tmp_path / "p.csv", "--annotations", tmp_path / "people.csv"]


def test_unknown_annotators_are_given_the_anonymous_answer(files: list[Any]) -> None:
    found = scored(*files, "--scale", "ordinal", "--scorer", "lewidi2025-b")["official"]
    # Medians 1 and 2 against 1, 3 and 2, 2, over three points.
    assert found["scores"] == {"absolute_distance": pytest.approx((2 / 3 / 2 + 0) / 2)}
    assert "anonymous answer of the item (its median)" in found["note"]
    code, out, _ = command("evaluate", *files, "--scale", "ordinal", "--scorer", "lewidi2025-b")
    assert code == 0
    assert "lewidi2025-b" in out
    assert "anonymous" in out


def test_predictions_of_pairs_are_scored_as_answers_of_annotators(files: list[Any]) -> None:
    own = np.array([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]])
    pairs = edokit.Predictions.from_arrays(
        [own, own],
        items=["a", "a", "b", "b"],
        annotators=["x", "y", "x", "y"],
        classes=["1", "2", "3"],
        layout="KNC",
    )
    path = files[1].with_suffix(".npz")
    edokit.write_predictions(pairs, path)
    words = ["--probabilities", path, *files[2:], "--scale", "ordinal"]
    found = scored(*words, "--scorer", "lewidi2025-b")
    assert found["official"]["scores"] == {"absolute_distance": 0}
    # The distribution of an item is the mean over its annotators, each has its own error.
    assert found["md"] == pytest.approx(np.mean([0.05 + 0.1 + 0.05, 0.2 + 0.4 + 0.2]))
    assert [one["error"] for one in found["annotators"]] == [0, 0]
    table = pd.DataFrame(own, columns=["p_1", "p_2", "p_3"])
    table.insert(0, "item", ["a", "a", "b", "b"])
    table.insert(1, "annotator", ["x", "y", "x", "y"])
    table.to_csv(path.with_suffix(".csv"), index=False)
    words[1] = path.with_suffix(".csv")
    assert scored(*words, "--scorer", "lewidi2025-b")["official"] == found["official"]
    table[:3].to_csv(path.with_suffix(".csv"), index=False)
    code, _, err = command("evaluate", *words, "--scorer", "lewidi2025-b")
    assert code == 2
    assert "1 of 4 is missing" in err


@pytest.mark.parametrize(
    ("scale", "scorer", "words"),
    [
        ("ordinal", "lewidi2023", "lewidi2023 is about nominal classes, .* ordinal"),
        ("multi-label", "lewidi2023", "lewidi2023 is about nominal classes, .* multi-label"),
        ("ordinal:1=0,2=1,3=5", "lewidi2025-a", "steps are 1, but the scale is ordinal"),
        ("nominal", "lewidi2024", "--scorer .*'lewidi2023', 'lewidi2025-a'"),
    ],
)
def test_a_scorer_that_does_not_fit_is_one_clear_error(
    files: list[Any], scale: str, scorer: str, words: str
) -> None:
    code, out, err = command("evaluate", *files, "--scale", scale, "--scorer", scorer)
    assert (code, out) == (2, "")
    assert re.search(words, err), err


def test_shares_have_no_annotators_to_score() -> None:
    shares = edokit.Annotations.from_soft_labels([[0.6, 0.4], [1, 0]])
    with pytest.raises(InputError, match="lewidi2025-b compares the answer of each annotator"):
        edokit.evaluate([[0.5, 0.5], [1, 0]], shares, scorer="lewidi2025-b", samples=0)


def test_scores_of_2023_are_f1_and_ce() -> None:
    found = lewidi2023([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]], [0, 0])
    assert found == {"f1": 0.5, "ce": pytest.approx(0.4684, abs=1e-4)}


def test_items_count_the_same_whatever_their_annotators() -> None:
    assert lewidi2025_b([7, 7, 7, 3], [1, 1, 1, 1], [0, 0, 0, 1], "nominal") == 0.5
    sets = [[True, False, False], [True, True, False]]
    assert lewidi2025_b([0, 1], sets, np.zeros((2, 3), bool), "multi-label") == pytest.approx(0.5)


def test_what_a_score_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="number of points"):
        lewidi2025_b([0], [1], [2], "ordinal")
    with pytest.raises(InputError, match="2 annotations have predicted answers"):
        lewidi2025_b([0, 1], [1], [2], "nominal")
    with pytest.raises(InputError, match="scale"):
        lewidi2025_a([[1, 0]], [[1, 0]], "cardinal")  # type: ignore[arg-type]
