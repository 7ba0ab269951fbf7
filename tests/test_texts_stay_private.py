"""What people wrote stands in no error and no warning, however a file is damaged."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest

from edokit import Annotations, EDOError, read_annotations
from edokit._errors import headings, word
from edokit._io.tables import write_table
from edokit.members.texts import read_texts
from edokit.predictions.join import join_models
from fuzz_damage import another
from fuzz_files import argilla, label_studio, lewidi
from tests.errors import raises_code

TEXT = "quiet marmalade evening near the old harbour"
PARTS = ("quiet marmalade evening", "marmalade evening near", "near the old harbour")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every kind in which each item has that text, or begins with it."""
    folder: Path = tmp_path_factory.mktemp("texts")
    rows = [
        {"item": f"i{k}", "annotator": who, "label": str(k % 2), "text": f"{TEXT}, {k}"}
        for k in range(4)
        for who in "ab"
    ]
    table = Annotations.from_table({name: [row[name] for row in rows] for name in rows[0]})
    for ending in (".csv", ".tsv", ".jsonl", ".parquet"):
        write_table(table.to_table(), folder / f"people{ending}")
    studio = label_studio()
    records = argilla()
    items = lewidi()
    for task in studio:
        task["data"]["text"] = TEXT
    for record in records:
        record["text"] = TEXT
    for item in items.values():
        item["text"] = TEXT
    for name, content in (("studio", studio), ("argilla", records), ("tone_train", items)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def said_of(path: Path) -> list[str]:
    """What every reader of texts says of a file, in errors and in warnings."""
    said = []
    for read in (read_annotations, read_texts, lambda path: join_models([path])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                read(path)
            except EDOError as error:
                said.append(str(error))
        said += [str(warning.message) for warning in caught]
    return said


NAMES = ["people.csv", "people.tsv", "people.jsonl", "people.parquet"]
NAMES += ["studio.json", "argilla.json", "tone_train.json"]


@pytest.mark.parametrize("name", NAMES)
def test_no_damage_brings_a_text_into_an_error(name: str, texts: Path, tmp_path: Path) -> None:
    content = (texts / name).read_bytes()
    path = tmp_path / name
    refused = 0
    for seed in range(150):
        path.write_bytes(another(name, content, random.Random(seed)))
        for said in said_of(path):
            refused += 1
            assert not any(part in said for part in PARTS), said
    assert refused > 50


ROWS = f'item,annotator,label,text\n1,a,0,"{TEXT}"\n'


@pytest.mark.parametrize(
    "content",
    [
        ROWS + f"1,b,{TEXT},{TEXT}\n2,b,0,{TEXT}\n2,c,0,{TEXT} too\n",
        ROWS + f"1,b,0,{TEXT} too\n",
        ROWS + f"1,b,0,{TEXT},{TEXT}\n",
        ROWS + f"{TEXT}\n",
        ROWS + f'1,b,0,"{TEXT}\n',
        f"{TEXT},a,0\n{TEXT},b,0\n",
        f"{TEXT};a;0\n{TEXT};b;0\n",
        f"{TEXT}\n{TEXT}\n",
        f"item,{TEXT},{TEXT}\n1,a,0\n",
        f"item,p_0,p_1\n1,{TEXT},0.5\n",
        f"item,p_0,p_1\n1,0.5,0.5\n2,0.5\n3,{TEXT},0.5,7\n",
        ROWS.replace("item", "item,annotator"),
    ],
)
def test_errors_about_rows_do_not_quote_them(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    said = said_of(path)
    assert said
    for line in said:
        assert not any(part in line for part in PARTS), line


def test_declared_classes_are_not_answered_with_a_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"item,annotator,label\n1,a,{TEXT}\n")
    with pytest.raises(EDOError, match=f"text of {len(TEXT)} characters") as caught:
        read_annotations(path, classes=["0", "1"])
    assert TEXT not in str(caught.value)


def test_half_a_character_is_told_without_the_text() -> None:
    table: Any = {"item": ["1"], "annotator": ["a"], "label": ["0"], "text": ["x"]}
    people = Annotations.from_table(table)
    people.texts[0] = TEXT + "\ud800"  # type: ignore[index]
    with raises_code("invalid-unicode") as caught:
        people.to_table()
    assert TEXT not in str(caught.value)


def test_words_are_shown_and_texts_are_counted() -> None:
    assert word("0,5") == "'0,5'"
    assert word("rather rude") == "'rather rude'"
    assert word(TEXT) == f"text of {len(TEXT)} characters"
    assert word("x" * 25) == "text of 25 characters"
    assert headings(["item", "number of annotations"]) == "'item', 'number of annotations'"
    assert (
        headings(["a", TEXT, "b", "c"], 3) == f"'a', text of {len(TEXT)} characters, 'b' and 1 more"
    )
