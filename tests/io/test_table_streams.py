"""A table that is written part by part is the table that would have been written at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from edokit._errors import InputError
from edokit._io.atomic import keep_others
from edokit._io.tables import read_table, write_table, write_tables

PARTS = [
    pa.table({"item": ["a", "b"], "p_no": [0.5, 0.25], "label": ["no", 'say "yes"']}),
    pa.table({"item": ["c"], "p_no": [1.0], "label": ["two\nlines"]}),
]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_parts_become_one_table(ending: str, tmp_path: Path) -> None:
    at_once, by_part = tmp_path / f"at-once.{ending}", tmp_path / f"by-part.{ending}"
    write_table(pa.concat_tables(PARTS), at_once)
    assert write_tables(iter(PARTS), by_part) == 3
    assert read_table(by_part).to_pylist() == read_table(at_once).to_pylist()


def test_nothing_is_left_where_a_part_fails(tmp_path: Path) -> None:
    def parts() -> Iterator[pa.Table]:
        yield PARTS[0]
        raise InputError("the second shard is torn")

    for ending in ("csv", "parquet", "jsonl"):
        with pytest.raises(InputError, match="torn"):
            write_tables(parts(), tmp_path / f"out.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="files ending in"):
        write_tables(PARTS, tmp_path / "out.txt")


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_a_file_with_other_content_is_found_before_the_next_part_is_made(
    ending: str, tmp_path: Path
) -> None:
    path, made = tmp_path / f"out.{ending}", list[int]()

    def parts(tables: Sequence[pa.Table]) -> Iterator[pa.Table]:
        for number, table in enumerate(tables):
            made.append(number)
            yield table

    with keep_others():
        write_tables(parts(PARTS), path)
        before = path.read_bytes()
        write_tables(parts(PARTS), path)  # the same again
        made.clear()
        with pytest.raises(InputError, match="other content"):
            write_tables(parts(PARTS[::-1]), path)
    assert (made, path.read_bytes()) == ([0], before)
