"""Attributes of annotators from the table itself, and from a table of people."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from commands import answer, status
from edokit import read_annotations
from edokit.predict import PredictOptions
from tests.errors import raises_code

VOTES = {
    "text_id": ["a", "a", "a", "a", "b", "b", "b", "b"],
    "worker": ["w1", "w2", "w3", "w4"] * 2,
    "vote": ["no", "yes", "yes", "no", "no", "no", "yes", "yes"],
    "gender": ["f", "m", "f", "m"] * 2,
    "seconds": [3, 5, 2, 8, 9, 4, 1, 7],
}
COLUMNS = {"item": "text_id", "annotator": "worker", "label": "vote"}
FLAGS = [word for role, name in COLUMNS.items() for word in ("--column", f"{role}={name}")]


def write(folder: Path, suffix: str) -> Path:
    table = pd.DataFrame(VOTES)
    path = folder / f"votes{suffix}"
    if suffix == ".csv":
        table.to_csv(path, index=False)
    elif suffix == ".parquet":
        table.to_parquet(path)
    elif suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_excel(path, index=False)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".xlsx"])
def test_every_long_table_has_the_attributes_of_its_columns(tmp_path: Path, suffix: str):
    annotations = read_annotations(write(tmp_path, suffix), columns=COLUMNS)
    assert annotations.people.names == ("gender",)
    assert annotations.people.attribute("gender").people == (2, 2)


def test_a_column_called_group_describes_people(tmp_path: Path):
    groups = {"w1": "red", "w2": "blue", "w3": "red", "w4": "blue"}
    rows = [f"{name},{group}" for name, group in groups.items()]
    (tmp_path / "people.csv").write_text("\n".join(["annotator,group", *rows]))
    (tmp_path / "people.json").write_text(
        json.dumps({name: {"group": group} for name, group in groups.items()})
    )
    for file in ("people.csv", "people.json"):
        annotations = read_annotations(
            write(tmp_path, ".csv"), columns=COLUMNS, people=tmp_path / file
        )
        assert annotations.people.attribute("group").levels == ("blue", "red")


@pytest.mark.parametrize("key", ["worker", "annotator"])
def test_a_table_of_people_is_read_with_the_same_columns(tmp_path: Path, key: str):
    people = tmp_path / "people.csv"
    pd.DataFrame({key: ["w3", "w2", "w1", "w9"], "team": ["red", "blue", "red", "red"]}).to_csv(
        people, index=False
    )
    with pytest.warns(match=r"1 of 4 annotators.*'w4'"):
        annotations = read_annotations(
            write(tmp_path, ".csv"), columns=COLUMNS, people=people, attributes=["team"]
        )
    team = annotations.people.attribute("team")
    assert team.levels == ("blue", "red")
    assert team.unknown == 1
    assert annotations.people.names == ("team",)


def test_the_raw_table_itself_is_a_table_of_people(tmp_path: Path):
    path = write(tmp_path, ".csv")
    annotations = read_annotations(path, columns=COLUMNS, people=path)
    assert annotations.people.names == ("gender",)


def test_people_may_be_a_json_object(tmp_path: Path):
    people = tmp_path / "people.json"
    people.write_text(json.dumps({f"w{k}": {"age": "old" if k < 3 else "new"} for k in range(5)}))
    annotations = read_annotations(write(tmp_path, ".csv"), columns=COLUMNS, people=people)
    assert annotations.people.attribute("age").people == (2, 2)


def test_a_table_of_other_people_or_without_people_is_refused(tmp_path: Path):
    people = tmp_path / "people.csv"
    people.write_text("annotator,team\nzoe,red\n")
    with raises_code("unknown-annotator", "'zoe'", "'w1'"):
        read_annotations(write(tmp_path, ".csv"), columns=COLUMNS, people=people)
    people.write_text("who,team\nw1,red\n")
    with raises_code("missing-column", "'who'"):
        read_annotations(write(tmp_path, ".csv"), columns=COLUMNS, people=people)
    people.write_text("annotator,team\nw1,red\nw1,blue\n")
    with raises_code("contradictory-rows", "'w1'", "'team'"):
        read_annotations(write(tmp_path, ".csv"), columns=COLUMNS, people=people)


def test_the_command_line_chooses_attributes(tmp_path: Path):
    path = write(tmp_path, ".csv")
    output = answer("diagnose", path, *FLAGS, "--by", "gender", "--permutations", 0)
    assert [entry["level"] for entry in output["groups"]] == ["f", "m"]
    assert output["attributes"].startswith("attributes of annotators: gender (2 levels)")
    assert status("diagnose", path, *FLAGS, "--by", "gender", "--no-attributes") == 2
    assert status("diagnose", path, *FLAGS, "--attribute", "seconds") == 2


def test_a_panel_of_shares_reads_people_from_the_raw_table(tmp_path: Path) -> None:
    """With the same names of columns as every other command."""
    raw = tmp_path / "raw.csv"
    raw.write_text("post,worker,vote,sex\n1,ann,yes,f\n2,ann,no,f\n1,ben,no,m\n2,cem,no,m\n")
    shares = tmp_path / "shares.csv"
    shares.write_text("attribute,value,share\nsex,f,0.5\nsex,m,0.5\n")
    options = PredictOptions(panel=[str(shares)], annotators=raw)
    columns = {"item": "post", "annotator": "worker", "label": "vote"}
    (panel,) = options.panels(None, columns)
    assert panel.annotators == ("ann", "ben", "cem")
    assert panel.weights is not None
    assert [round(float(weight), 6) for weight in panel.weights] == [0.5, 0.25, 0.25]
    with raises_code("missing-column", "column 'annotator'"):
        options.panels(None)
