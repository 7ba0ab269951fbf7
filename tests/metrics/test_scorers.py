"""The official scores: on made-up answers, and the reference rows of LeWiDi 2025 on dev."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import edokit
from edokit import InputError
from edokit.metrics.scorers import lewidi2025_b_items
from edokit.scales import Scale
from tests.cli.test_commands import answer, edo

# Reference points of dev: the training set's mean answer (task A), each annotator's most frequent
# answer (task B; for sets no label at all).
DATASETS = {
    "MP": (0.5235, 0.3174),
    "CSC": (1.1230, 0.2285),
    "Paraphrase": (2.7471, 0.3373),
    "VariErrNLI": (0.6529, 0.3456),
}


def scored(*words: object) -> dict[str, Any]:
    """What ``edo evaluate`` reports, without intervals."""
    found: dict[str, Any] = answer("evaluate", *words, "--bootstrap", 0)
    return found


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_the_command_reproduces_the_reference_rows_on_dev(
    dataset: str, lewidi2025: Path, tmp_path: Path
) -> None:
    task_a, task_b = DATASETS[dataset]
    source = lewidi2025 / dataset
    train, dev = (edokit.read_annotations(source).split(name) for name in ("train", "dev"))
    mean = {
        f"p_{c}": share for c, share in zip(train.classes, train.soft_labels.mean(0), strict=True)
    }
    pd.DataFrame({"item": dev.items, **mean}).to_csv(tmp_path / "mean.csv", index=False)
    given = ["--annotations", source, "--split", "dev", "--train-split", "train"]
    words = ["--probabilities", tmp_path / "mean.csv", *given]
    found = scored(*words, "--scorer", "lewidi2025-a")["official"]
    (name,) = found["scores"]
    assert name == ("w1" if dev.scale.kind == "ordinal" else "md")
    assert found["scores"][name] == pytest.approx(task_a, abs=5e-5)
    assert found["constant"][name] == pytest.approx(task_a, abs=5e-5)

    learned, asked = (part.annotators[part.annotator_codes] for part in (train, dev))
    answers = pd.DataFrame({"item": dev.items[dev.item_codes], "annotator": asked, "label": "[]"})
    if not dev.scale.is_multi_label:
        usual: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for who, code in zip(learned, train.labels, strict=True):
            usual[who][train.classes[code]] += 1
        answers["label"] = [usual[who].most_common(1)[0][0] for who in asked]
    answers.to_csv(tmp_path / "answers.csv", index=False)
    words[1] = tmp_path / "answers.csv"
    found = scored(*words, "--scorer", "lewidi2025-b")["official"]
    assert found["scores"] == {
        "absolute_distance" if name == "w1" else "error_rate": pytest.approx(task_b, abs=5e-5)
    }
    assert "each annotator" in found["note"]
    assert "anonymous" not in found["note"]


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
    assert "anonymous answer of the item (" in found["note"]
    assert "on a scale its median" in found["note"]
    done = edo("evaluate", *files, "--scale", "ordinal", "--scorer", "lewidi2025-b")
    code, out = done.returncode, done.stdout
    assert code == 0
    assert "0.0000 … 0.3333" in out  # of two items, the interval over items
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
    done = edo("evaluate", *words, "--scorer", "lewidi2025-b")
    assert done.returncode == 2
    assert "1 of 4 is missing" in done.stderr


@pytest.mark.parametrize(
    ("scale", "scorer", "words"),
    [
        ("ordinal", "lewidi2023", "lewidi2023 is about nominal classes, .* ordinal"),
        ("multi-label", "lewidi2023", "lewidi2023 is about nominal classes, .* multi-label"),
        ("ordinal:1=0,2=1,3=5", "lewidi2025-a", "steps are 1, but the scale is ordinal"),
        ("nominal", "lewidi2024", "--scorer.*lewidi2023.*lewidi2025-a"),
    ],
)
def test_a_scorer_that_does_not_fit_is_one_clear_error(
    files: list[Any], scale: str, scorer: str, words: str
) -> None:
    done = edo("evaluate", *files, "--scale", scale, "--scorer", scorer)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(words, done.stderr), done.stderr


def test_shares_have_no_annotators_to_score() -> None:
    shares = edokit.Annotations.from_soft_labels([[0.6, 0.4], [1, 0]])
    with pytest.raises(InputError, match="lewidi2025-b compares the answer of each annotator"):
        edokit.evaluate([[0.5, 0.5], [1, 0]], shares, scorer="lewidi2025-b", samples=0)


def test_scores_of_2023_are_f1_and_ce() -> None:
    shares = edokit.Annotations.from_soft_labels([[1, 0], [0.6, 0.4]])
    found = edokit.evaluate([[0.8, 0.2], [0.4, 0.6]], shares, scorer="lewidi2023", samples=0)
    assert found.official is not None
    ce = -(np.log(0.8) + 0.6 * np.log(0.4) + 0.4 * np.log(0.6)) / 2
    assert found.official.scores == {"f1": 0.5, "ce": pytest.approx(ce)}


def test_items_count_the_same_whatever_their_annotators() -> None:
    scores = lewidi2025_b_items([7, 7, 7, 3], [1, 1, 1, 1], [0, 0, 0, 1], Scale())
    assert scores.tolist() == [0, 1]
    sets = [[True, False, False], [True, True, False]]
    scores = lewidi2025_b_items([0, 1], sets, np.zeros((2, 3), bool), Scale("multi-label"))
    assert scores.mean() == pytest.approx(0.5)
