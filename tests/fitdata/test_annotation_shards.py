"""Annotations find the shard that they belong to, by name or in order, and nothing is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edokit import Annotations, read_annotations
from edokit._io.tables import write_table
from edokit._names import as_names
from edokit.fitdata.cache import match_files, read_shard_annotations
from edokit.fitdata.reading import ReadOptions
from tests.errors import raises_code

CLASSES = ("no", "yes")


def people(items: list[str], **columns: Any) -> pa.Table:
    """Two annotators per item, the second one always for yes."""
    return pa.table(
        {
            "item": [item for item in items for _ in range(2)],
            "annotator": ["ann-1", "ann-2"] * len(items),
            "label": ["no", "yes"] * len(items),
            **{name: [v for v in values for _ in range(2)] for name, values in columns.items()},
        }
    )


def names(*items: str) -> Any:
    return as_names(list(items))


def test_files_are_found_by_the_names_of_the_shards(tmp_path: Path) -> None:
    for name, items in (("b", ["x"]), ("a", ["y", "z"])):
        write_table(people(items), tmp_path / f"{name}.csv")
    found = match_files(tmp_path, [Path("p/a.npz"), Path("p/b.npz")])
    assert [file.name for file in found] == ["a.csv", "b.csv"]
    assert match_files(tmp_path, [Path("p/1.npz")]) == ()


@pytest.mark.parametrize(
    ("shards", "words"),
    [
        (["a", "b", "c"], ("missing-shard", "'c'")),
        (["a"], ("missing-shard", "'b'")),
    ],
)
def test_a_shard_on_one_side_only_is_named(
    shards: list[str], words: tuple[str, ...], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        write_table(people(["x"]), tmp_path / f"{name}.csv")
    with raises_code(*words):
        match_files(tmp_path, [Path(f"{name}.npz") for name in shards])
    write_table(people(["x"]), tmp_path / "a.parquet")
    with raises_code("duplicate-shard", "a.csv", "a.parquet"):
        match_files(tmp_path, [Path("a.npz"), Path("b.npz")])


def test_reading_keeps_the_chosen_splits_of_a_shard(tmp_path: Path) -> None:
    write_table(people(["x", "y"], split=["dev", "train"]), tmp_path / "a.csv")
    read = read_shard_annotations(tmp_path / "a.csv", CLASSES, ReadOptions(split=("dev", "test")))
    assert read.items.tolist() == ["x"]
    write_table(people(["x"]), tmp_path / "b.csv")
    with raises_code("unknown-split"):
        read_shard_annotations(tmp_path / "b.csv", CLASSES, ReadOptions(split=("dev",)))


def test_shares_without_an_annotator_are_soft_labels(tmp_path: Path) -> None:
    path = tmp_path / "soft.csv"
    path.write_text("item,p_no,p_yes\na,0.8,0.2\nb,0.5,0.5\n", encoding="utf-8")
    read = read_annotations(path)
    assert read.annotators.tolist() == ["soft"]
    np.testing.assert_allclose(read.soft_labels, [[0.8, 0.2], [0.5, 0.5]])
    path.write_text("item,p_no,p_yes\na,0.8,0.2\na,0.5,0.5\n", encoding="utf-8")
    with raises_code("duplicate-annotation", "'a'"):
        read_annotations(path)


def test_a_folder_of_tables_is_read_as_one(tmp_path: Path) -> None:
    whole = people(["a", "b", "c"])
    write_table(whole.slice(0, 3), tmp_path / "1.csv")
    write_table(whole.slice(3), tmp_path / "2.parquet")
    (tmp_path / ".left-over.csv").write_text("half", encoding="utf-8")
    read = read_annotations(tmp_path)
    assert read.items.tolist() == ["a", "b", "c"]
    assert len(read) == len(Annotations.from_table(whole))
