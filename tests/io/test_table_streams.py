"""A table that is written part by part is the table that would have been written at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from edokit import InputError
from edokit._io.atomic import keep_others
from edokit._io.tables import read_table, write_table, write_tables
from tests.errors import raises_code

PARTS = [
    pa.table({"item": ["a", "b"], "p_no": [0.5, 0.25], "label": ["no", 'say "yes"']}),
    pa.table({"item": ["c"], "p_no": [1.0], "label": ["two\nlines"]}),
]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_parts_become_one_table(ending: str, tmp_path: Path) -> None:
    at_once = tmp_path / f"at-once.{ending}"
    by_part = tmp_path / f"by-part.{ending}"
    write_table(pa.concat_tables(PARTS), at_once)
    assert write_tables(iter(PARTS), by_part) == 3
    assert read_table(by_part).to_pylist() == read_table(at_once).to_pylist()


def test_nothing_is_left_where_a_part_fails(tmp_path: Path) -> None:
    def parts() -> Iterator[pa.Table]:
        yield PARTS[0]
        raise InputError("the second shard is torn", code="unreadable-file")

    for ending in ("csv", "parquet", "jsonl"):
        with raises_code("unreadable-file", "torn"):
            write_tables(parts(), tmp_path / f"out.{ending}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("out.txt", ("unknown-ending",)),
        ("file/out.csv", ("unwritable-file",)),
        ("folder.csv", ("unwritable-file",)),
    ],
)
def test_a_place_that_takes_no_table_is_refused_before_any_part_is_made(
    name: str, problem: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "folder.csv").mkdir()

    def parts() -> Iterator[pa.Table]:
        pytest.fail("a part was made")
        yield PARTS[0]

    with raises_code(*problem):
        write_tables(parts(), tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder.csv"}


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_a_file_with_other_content_is_found_before_the_next_part_is_made(
    ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"out.{ending}"
    made = list[int]()

    def parts(tables: Sequence[pa.Table]) -> Iterator[pa.Table]:
        for number, table in enumerate(tables):
            made.append(number)
            yield table

    with keep_others():
        write_tables(parts(PARTS), path)
        before = path.read_bytes()
        write_tables(parts(PARTS), path)  # the same again
        made.clear()
        with raises_code("existing-file"):
            write_tables(parts(PARTS[::-1]), path)
    assert (made, path.read_bytes()) == ([0], before)
