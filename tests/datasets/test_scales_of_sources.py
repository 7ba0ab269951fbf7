"""The answer scale of every source: declared, proposed where labels are numbers in a row, shown."""

import json
import warnings
from pathlib import Path

import pytest

from edokit import (
    Annotations,
    EDOWarning,
    read_annotations,
    simulate,
    write_annotations,
)
from edokit.datasets.info import describe_annotations
from edokit.datasets.split import split_items
from tests.cli.test_commands import answer, edo
from tests.errors import raises_code

STARS = {
    "item": [k // 3 for k in range(60)],
    "annotator": ["x", "y", "z"] * 20,
    "label": [k * 7 % 5 + 1 for k in range(60)],
}
CHOSEN = ['["rude", "mocking"]', "[]", '["rude"]']
SETS = {
    **STARS,
    "label": CHOSEN * 20,
    "text": [f"text number {k // 3} of {k // 3}" for k in range(60)],
}


def _csv(path: Path, table: dict[str, list]) -> Path:
    import pandas as pd

    pd.DataFrame(table).to_csv(path, index=False)
    return path


def test_numbers_in_a_row_are_proposed_as_a_scale_and_stay_nominal(tmp_path: Path):
    path = _csv(tmp_path / "stars.csv", STARS)
    with pytest.warns(EDOWarning, match=r"1, 2, 3, 4, 5.*scale='ordinal'") as caught:
        assert read_annotations(path).scale.kind == "nominal"
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_annotations(path, scale="nominal").scale.kind == "nominal"
        assert read_annotations(path, scale="ordinal").scale.positions == (1, 2, 3, 4, 5)


def test_a_declared_scale_needs_no_second_declaration(tmp_path: Path):
    again = tmp_path / "again.jsonl"
    path = _csv(tmp_path / "stars.csv", STARS)
    write_annotations(read_annotations(path, scale="ordinal:1,2,3,4,5,9"), again)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_annotations(again).scale.positions == (1, 2, 3, 4, 5, 9)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_sets_come_as_lists_or_as_one_row_per_label(ending: str, tmp_path: Path):
    import pandas as pd

    lists = pd.DataFrame({**SETS, "label": [json.loads(cell) for cell in SETS["label"]]})
    path = tmp_path / f"lists.{ending}"
    if ending == "jsonl":
        lists.to_json(path, orient="records", lines=True)
    elif ending == "parquet":
        lists.to_parquet(path)
    else:
        _csv(path, SETS)
    read = read_annotations(path, scale="multi-label")
    one_by_one = lists[lists["label"].map(len) > 0].explode("label")
    rows = read_annotations(_csv(tmp_path / "rows.csv", one_by_one), scale="multi-label")
    assert read.classes == rows.classes == ("mocking", "rude")
    assert read.soft_labels[0].tolist() == pytest.approx([1 / 3, 2 / 3])
    # Without rows of its own, an empty set can't be known.
    assert rows.soft_labels[0].tolist() == [0.5, 1.0]


def test_splits_and_figures_know_sets():
    annotations = Annotations.from_table(SETS, scale="multi-label")
    parts = split_items(annotations, {"train": 0.5, "dev": 0.5})
    assert parts.scale == annotations.scale
    described = describe_annotations(parts)
    assert described["scale"] == "multi-label:mocking,rude"
    assert described["splits"]["dev"]["classes"] == {"mocking": 0, "rude": 10}
    assert described["splits"]["dev"]["ties"]["items"] == 0


def _tasks(*values: dict) -> list:
    return [
        {
            "id": number,
            "data": {"text": f"text {number}"},
            "annotations": [
                {"completed_by": who, "result": [{"from_name": "answer", "value": value}]}
                for who, value in enumerate(values, 1)
            ],
        }
        for number in (1, 2)
    ]


def test_label_studio_choices_are_sets_if_declared(tmp_path: Path):
    path = tmp_path / "tasks.json"
    tasks = _tasks({"choices": ["rude", "mocking"]}, {"choices": ["rude"]})
    tasks[1]["annotations"][0]["result"] = []
    path.write_text(json.dumps(tasks))
    with raises_code("undeclared-sets", "scale='multi-label'"):
        read_annotations(path)
    with pytest.warns(EDOWarning, match="1 annotation.*empty set"):
        annotations = read_annotations(path, scale="multi-label:rude,mocking,other")
    assert annotations.soft_labels.tolist() == [[1, 0.5, 0], [0.5, 0, 0]]


def test_argilla_labels_are_sets_if_declared(tmp_path: Path):
    path = tmp_path / "records.json"
    records = [
        {
            "id": number,
            "text": f"text {number}",
            "tone.responses": [["rude", "mocking"], []],
            "tone.responses.users": ["x", "y"],
            "tone.responses.status": ["submitted", "submitted"],
        }
        for number in (1, 2)
    ]
    path.write_text(json.dumps(records))
    with pytest.warns(EDOWarning, match="2 annotations.*empty set"):
        annotations = read_annotations(path, scale="multi-label")
    assert annotations.soft_labels.tolist() == [[0.5, 0.5]] * 2


def test_an_argilla_rating_is_ordinal_if_declared(tmp_path: Path):
    path = tmp_path / "records.json"
    record = {
        "id": 1,
        "text": "t",
        "stars.responses": [1, 2, 3],
        "stars.responses.users": ["x", "y", "z"],
        "stars.responses.status": ["submitted"] * 3,
    }
    path.write_text(json.dumps([record]))
    with pytest.warns(EDOWarning, match="scale='ordinal'"):
        read_annotations(path)
    assert read_annotations(path, scale="ordinal:1,2,3,4,5").scale.positions == (1, 2, 3, 4, 5)
    with raises_code("unknown-class", "'3'", "'1', '2'"):
        read_annotations(path, scale="ordinal:1,2")


def test_a_label_studio_rating_is_ordinal_if_declared(tmp_path: Path):
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(_tasks({"rating": 1}, {"rating": 4}, {"rating": 4})))
    annotations = read_annotations(path, scale="ordinal:1,2,3,4,5")
    assert annotations.soft_labels[0].tolist() == pytest.approx([1 / 3, 0, 0, 2 / 3, 0])
    path.write_text(json.dumps(_tasks({"rating": 1}, {"rating": 2}, {"rating": 3})))
    with pytest.warns(EDOWarning, match="scale='ordinal'"):
        assert read_annotations(path).scale.kind == "nominal"
    assert read_annotations(path, scale="ordinal").scale.positions == (1, 2, 3)


def test_commands_declare_show_and_keep_the_scale(tmp_path: Path):
    path = _csv(tmp_path / "stars.csv", STARS)
    done = edo("data", "info", path)
    assert "Answer scale: nominal." in done.stdout
    assert "--scale ordinal" in done.stderr
    again = tmp_path / "again.parquet"
    parts = tmp_path / "parts.jsonl"
    done = edo("data", "convert", path, again, "--scale", "ordinal:1,2,3,4,5,6")
    assert (done.returncode, done.stderr) == (0, "")
    answer("data", "split", again, parts, "--into", "train=0.5,dev=0.5")
    output = answer("data", "info", parts)
    assert output["scale"] == "ordinal:1,2,3,4,5,6"
    assert output["splits"]["dev"]["classes"]["6"] == 0


def test_a_simulated_regime_is_a_table(tmp_path: Path):
    people = tmp_path / "people.parquet"
    answer("data", "simulate", "three-labels", people, "--items", "20,10,10")
    expected = simulate("three-labels", items=(20, 10, 10))
    assert read_annotations(people).to_table().equals(expected.annotations.to_table())
