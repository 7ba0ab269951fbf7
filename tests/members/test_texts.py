"""Texts come from tables, lines and annotations, each with the id of its item."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from member_cases import small_people

from edokit import Annotations, EDOWarning
from edokit._io.tables import write_table
from edokit._names import as_names
from edokit.members import Group, score_members, train_members
from edokit.members.texts import Texts, read_texts
from edokit.members.training_data import TrainingData
from tests.errors import raises_code


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_names_its_items(tmp_path: Path) -> None:
    file = written(tmp_path / "t.csv", "item,text\n007,warm tea\nx,the river\n")
    texts = read_texts(file)
    assert texts.items == ("007", "x")
    assert texts.texts == ("warm tea", "the river")


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    file = written(tmp_path / "t.csv", "id,body\n1,tea\n")
    assert read_texts(file, columns={"item": "id", "text": "body"}).items == ("1",)


def test_an_empty_cell_beside_the_text_of_its_item_is_no_text(tmp_path: Path) -> None:
    rows = "item,text,context\n1,,tea?\n1,yes,\n2,no,\n"
    texts = read_texts(written(tmp_path / "t.csv", rows))
    assert texts.texts == (("yes", "tea?"), ("no", ""))


def test_rows_without_an_item_column_are_numbered(tmp_path: Path) -> None:
    assert read_texts(written(tmp_path / "t.csv", "text\ntea\nriver\n")).items == ("0", "1")


def test_only_line_breaks_end_a_text(tmp_path: Path) -> None:
    texts = read_texts(written(tmp_path / "t.txt", "tea\u2028and\x85milk\r\n\x0cthe river"))
    assert texts.texts == ("tea\u2028and\x85milk", "\x0cthe river")


def test_a_text_file_holds_a_text_per_line(tmp_path: Path) -> None:
    texts = read_texts(written(tmp_path / "t.txt", "tea\nthe river\n"))
    assert texts.texts == ("tea", "the river")


def test_a_long_table_of_annotations_has_each_text_once(tmp_path: Path) -> None:
    people = small_people(12)
    write_table(people.to_table(), tmp_path / "people.parquet")
    texts = read_texts(tmp_path / "people.parquet")
    assert texts.items == tuple(people.items)
    assert people.texts is not None
    assert texts.texts == tuple(people.texts)


def test_one_split_of_annotations_can_be_read(tmp_path: Path) -> None:
    people = small_people(12)
    write_table(people.to_table(), tmp_path / "people.parquet")
    texts = read_texts(tmp_path / "people.parquet", split="dev")
    assert texts.items == tuple(people.split("dev").items)


@pytest.mark.lewidi
def test_conversations_are_pairs(lewidi: Path) -> None:
    texts = read_texts(lewidi / "ConvAbuse" / "ConvAbuse_dev.json", user_first=True)
    assert len(texts.items) == 812
    assert all(isinstance(text, tuple) and text[0] and text[1] for text in texts.texts)


@pytest.mark.parametrize(
    ("content", "columns", "code", "fact"),
    [
        ("item,body\n1,tea\n", {}, "missing-column", "'text'"),
        ("item,text\n1,tea\n", {"item": "id"}, "missing-column", "'id'"),
        ("item,text\n1,tea\n2,\n", {}, "missing-value", "1 of 2 has no text: '2'"),
        ("item,text\n1,tea\n1,river\n", {}, "contradictory-rows", "item '1'"),
        ("item,text\n1,\n1,tea\n1,river\n", {}, "contradictory-rows", "item '1'"),
        ("item,text\n,tea\n", {}, "missing-value", "row 2"),
        ("item,text\n1,tea\n", {"label": "x"}, "unknown-role", "'label'"),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    tmp_path: Path, content: str, columns: dict[str, str], code: str, fact: str
) -> None:
    with raises_code(code, fact):
        read_texts(written(tmp_path / "t.csv", content), columns=columns)


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes("café".encode("latin1"))
    with raises_code("invalid-unicode", "UTF", "8"):
        read_texts(tmp_path / "t.txt")


@pytest.mark.parametrize("odd", [None, 3, float("nan"), ("a", 3), ("a", "b", "c")])
def test_what_is_no_text_is_refused(odd: object) -> None:
    with raises_code("not-a-text", "2"):
        Texts.from_texts(["fine", odd])  # type: ignore[list-item]


def test_no_texts_are_refused() -> None:
    with raises_code("missing-texts"):
        Texts.from_texts([])


# Contexts


def with_contexts(n: int = 24) -> Annotations:
    people = small_people(n)
    return replace(people, contexts=as_names([f"the post before {i % 3}" for i in range(n)]))


def test_a_context_column_makes_pairs(tmp_path: Path) -> None:
    table = {"item": ["a", "b"], "text": ["a reply", "another"], "context": ["a post", None]}
    pq.write_table(pa.table(table), tmp_path / "texts.parquet")
    assert read_texts(tmp_path / "texts.parquet").texts == (("a reply", "a post"), ("another", ""))
    renamed = pa.table({"id": ["a"], "reply": ["yes"], "post": ["no"]})
    pq.write_table(renamed, tmp_path / "renamed.parquet")
    columns = {"item": "id", "text": "reply", "context": "post"}
    assert read_texts(tmp_path / "renamed.parquet", columns=columns).texts == (("yes", "no"),)


def test_annotations_keep_contexts_and_members_train_on_the_pairs(tmp_path: Path) -> None:
    people = with_contexts()
    second_annotations = Annotations.from_table(people.to_table(), classes=people.classes)
    assert second_annotations.contexts is not None
    assert second_annotations.contexts.tolist() == people.contexts.tolist()  # type: ignore[union-attr]
    assert second_annotations.take([3]).contexts.tolist() == ["the post before 0"]  # type: ignore[union-attr]
    pq.write_table(second_annotations.to_table(), tmp_path / "people.parquet")
    pairs = TrainingData.from_annotations(second_annotations).texts
    assert pairs[1] == (second_annotations.texts[1], "the post before 1")  # type: ignore[index]
    assert read_texts(tmp_path / "people.parquet").texts == pairs
    assert read_texts(tmp_path / "people.parquet", split="dev").texts == pairs[2::4]


def test_one_item_has_one_context() -> None:
    rows = {"item": ["a", "a"], "annotator": ["x", "y"], "label": [0, 1], "text": ["t", "t"]}
    with raises_code("contradictory-rows", "'a'", "1", "2"):
        Annotations.from_table({**rows, "context": ["one", "two"]})


def test_members_refuse_texts_without_the_context_that_they_learned_with(tmp_path: Path) -> None:
    train_members(with_contexts(), [Group("linear", 1)], out=tmp_path / "pairs", jobs=1)
    train_members(small_people(24), [Group("linear", 1)], out=tmp_path / "texts", jobs=1)
    with raises_code("contexts-differ", "1"):
        score_members(tmp_path / "pairs", ["a text"])
    with raises_code("contexts-differ", "1"):
        score_members(tmp_path / "texts", [("a text", "a context")])
    one, other = (
        score_members(tmp_path / "pairs", [("sunny tea", f"the post before {i}")]).probabilities
        for i in (1, 2)
    )
    assert not np.allclose(one, other)


def test_columns_with_usual_names_are_texts_and_items(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text(
        "comment_id,Message,note\na7,The tea was cold today,x\nb2,We walked home slowly,y\n",
        encoding="utf-8",
    )
    with pytest.warns(EDOWarning, match="text=Message, item=comment_id"):
        texts = read_texts(path)
    assert texts.items == ("a7", "b2")
    assert texts.texts[0] == "The tea was cold today"
