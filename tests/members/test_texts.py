"""Texts come from tables, lines and annotations, each with the id of its item."""

from __future__ import annotations

from pathlib import Path

import pytest
from member_cases import small_people

from edokit._errors import InputError
from edokit._io.tables import write_table
from edokit.members.texts import Texts, read_texts


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


def test_rows_without_an_item_column_are_numbered(tmp_path: Path) -> None:
    assert read_texts(written(tmp_path / "t.csv", "text\ntea\nriver\n")).items == ("0", "1")


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
    texts = read_texts(
        lewidi / "ConvAbuse" / "ConvAbuse_dev.json", pairs=True, dialogue="user-first"
    )
    assert len(texts.items) == 812
    assert all(isinstance(text, tuple) and text[0] and text[1] for text in texts.texts)


@pytest.mark.parametrize(
    ("content", "columns", "reason"),
    [
        ("item,body\n1,tea\n", {}, "no column 'text' for the text; its columns are"),
        ("item,text\n1,tea\n", {"item": "id"}, "no column 'id' for the item; its columns are"),
        ("item,text\n1,tea\n2,\n", {}, "1 of 2 has no text: '2'"),
        ("item,text\n1,tea\n1,river\n", {}, "item '1' has two texts"),
        ("item,text\n,tea\n", {}, "row 1 has no item"),
        ("item,text\n1,tea\n", {"label": "x"}, "columns item and text, but no 'label'"),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    tmp_path: Path, content: str, columns: dict[str, str], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        read_texts(written(tmp_path / "t.csv", content), columns=columns)


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes("café".encode("latin1"))
    with pytest.raises(InputError, match="is not UTF-8"):
        read_texts(tmp_path / "t.txt")


@pytest.mark.parametrize("odd", [None, 3, float("nan"), ("a", 3), ("a", "b", "c")])
def test_what_is_no_text_is_refused(odd: object) -> None:
    with pytest.raises(InputError, match="text 2 of 2 is"):
        Texts.of(["fine", odd])  # type: ignore[list-item]


def test_no_texts_are_refused() -> None:
    with pytest.raises(InputError, match="there is no text"):
        Texts.of([])
