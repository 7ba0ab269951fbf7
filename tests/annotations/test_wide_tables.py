"""Tables with one row per item and one column per annotator."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from edokit import Annotations, read_annotations
from edokit._errors import OpenDecisionsError
from tests.errors import raises_code

FRAME = pd.DataFrame(
    {
        "item": ["a", "b", "c", "d"],
        "text": [
            "The bus is late again today",
            "We walked home slowly",
            "Tea is ready when you are",
            "The choir sang all evening",
        ],
        "ann": ["rude", "ok", "ok", None],
        "ben": ["ok", None, "rude", "ok"],
        "cem": ["rude", "ok", " ", "rude"],
    }
)
PEOPLE = ["ann", "ben", "cem"]


def long_frame() -> pd.DataFrame:
    """The same as a row per annotation."""
    melted = FRAME.melt(["item", "text"], PEOPLE, "annotator", "label").dropna()
    return melted[melted["label"].str.strip() != ""]


def test_columns_of_annotators_are_recognised_and_read(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    FRAME.to_csv(path, index=False)
    with raises_code("missing-column", *PEOPLE, kind=OpenDecisionsError) as refused:
        read_annotations(path)
    assert refused.value.remedy["annotator_columns"] == PEOPLE
    annotations = read_annotations(path, annotator_columns=PEOPLE)
    expected = Annotations.from_table(long_frame())
    assert annotations.items.tolist() == expected.items.tolist()
    assert annotations.classes == expected.classes
    assert annotations.soft_labels.tolist() == expected.soft_labels.tolist()
    assert sorted(annotations.annotators) == PEOPLE
    assert annotations.texts.tolist() == FRAME["text"].tolist()


def test_a_data_frame_is_read_the_same_way() -> None:
    annotations = Annotations.from_table(FRAME, annotator_columns=PEOPLE)
    assert annotations.counts.sum() == len(long_frame())


def test_messages_name_the_row_of_the_table() -> None:
    frame = FRAME.assign(cem=["rude", "ok", None, "perhaps"])
    with raises_code("unknown-class", "row 4", "'perhaps'"):
        Annotations.from_table(frame, annotator_columns=PEOPLE, classes=["ok", "rude"])


@pytest.mark.parametrize(
    ("columns", "code"), [(["ann", "bem"], "missing-column"), (["ann", "ann"], "duplicate-name")]
)
def test_wrong_names_are_refused(columns: list[str], code: str) -> None:
    with raises_code(code):
        Annotations.from_table(FRAME, annotator_columns=columns)


def test_a_label_column_beside_them_is_refused() -> None:
    with raises_code("conflicting-options", "'label'"):
        Annotations.from_table(FRAME.assign(label="ok"), annotator_columns=PEOPLE)


def test_a_row_per_annotation_is_not_taken_for_a_row_per_item() -> None:
    rows = long_frame().rename(columns={"annotator": "who", "label": "verdict"})
    with raises_code("missing-column", kind=OpenDecisionsError) as refused:
        Annotations.from_table(rows)
    assert refused.value.remedy == {"columns": {"annotator": "who", "label": "verdict"}}


def test_without_ids_the_texts_are_proposed_as_items() -> None:
    rows = long_frame().drop(columns="item")
    rows = rows.rename(columns={"annotator": "rater", "label": "verdict", "text": "sentence"})
    rows["row"] = range(len(rows))
    with raises_code("missing-column", kind=OpenDecisionsError) as refused:
        Annotations.from_table(rows)
    assert refused.value.remedy["columns"] == {
        "item": "sentence",
        "annotator": "rater",
        "label": "verdict",
    }
