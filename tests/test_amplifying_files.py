"""Small files that become large in memory: what they take is estimated before it is taken."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from edokit import EDOWarning, InputError, read_annotations
from edokit._io.memory import LIMIT, MemoryBudget, stated_limit
from edokit._io.parquet_footer import read_footer
from edokit._io.parquet_pages import unpacked_size
from edokit._io.tables import read_table, write_table
from edokit.datasets import near_duplicates
from edokit.datasets.near_duplicates import NearDuplicates, near_duplicate_groups
from edokit.members.texts import read_texts

if sys.platform == "win32":
    pytest.skip("the files are read under limits that Linux has", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import amplify

from tests.errors import raises_code

ALLOWANCE = f"{LIMIT}="


def said(read: Callable[[Path], object], path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


@pytest.mark.slow
@pytest.mark.parametrize("make", amplify.FILES, ids=lambda make: make.__name__)
def test_every_file_is_read_or_refused_within_its_memory(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = make(tmp_path)
    reading = amplify.read_apart(path, seconds=240, memory=8 << 30)
    assert reading.outcome in ("read", "refused"), reading.message
    size = sum(map(amplify.file_size, amplify.files_of(path)))
    assert reading.growth < max(1 << 30, amplify.RATIO * size)


@pytest.mark.parametrize(
    "make",
    [
        amplify.shared_text,
        amplify.dictionary_text,
        amplify.dictionary_bytes,
        amplify.dictionary_lists,
        amplify.delta_texts,
        amplify.forged_sizes,
        amplify.new_keys,
        amplify.long_header,
        amplify.label_studio_fields,
        amplify.label_studio_controls,
        amplify.argilla_fields,
        amplify.argilla_texts,
        amplify.doccano_fields,
        amplify.potato_schemes,
    ],
    ids=lambda make: make.__name__,
)
def test_what_would_take_too_much_is_refused_with_the_limit_to_raise(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = make(tmp_path)
    reading = amplify.read_apart(path, seconds=120, memory=8 << 30)
    assert reading.outcome == "refused", reading.message
    assert "of memory, but" in reading.message
    assert ALLOWANCE in reading.message
    assert reading.growth < 600 << 20


def test_aliases_in_the_configuration_of_a_project_are_not_expanded(tmp_path: Path) -> None:
    reading = amplify.read_apart(amplify.potato_aliases(tmp_path), seconds=60, memory=8 << 30)
    assert reading.outcome == "read", reading.message
    assert reading.growth < 200 << 20


def test_a_cell_in_the_last_corner_of_a_sheet_costs_nothing(tmp_path: Path) -> None:
    table = read_table(amplify.far_cell(tmp_path))
    assert table.num_rows == 4
    assert table.column_names == ["item", "annotator", "label", "column XFD"]
    assert "'item'" in said(read_annotations, tmp_path / "far-cell.xlsx")


def test_a_row_beyond_the_last_one_is_refused(tmp_path: Path) -> None:
    assert "1,048,576 rows" in said(read_table, amplify.far_row(tmp_path))


@pytest.mark.parametrize("make", [amplify.entities, amplify.external_entity])
def test_a_workbook_with_entities_is_refused(make: Callable[[Path], Path], tmp_path: Path) -> None:
    assert "entities" in said(read_table, make(tmp_path))


def test_damaged_deflate_data_in_a_workbook_are_one_line(tmp_path: Path) -> None:
    assert "can't be read as a XLSX file" in said(read_table, amplify.damaged_deflate(tmp_path))


def test_text_that_is_kept_as_prefixes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [f"the same beginning {k}" for k in range(50)]
    encoding = {"text": "DELTA_BYTE_ARRAY"}
    table = pa.table({"text": texts})
    pa_parquet.write_table(table, path, use_dictionary=False, column_encoding=encoding)
    assert read_table(path)["text"].to_pylist() == texts


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False},
        {"data_page_version": "2.0", "compression": "zstd"},
        {"compression": "none", "write_page_index": True, "data_page_size": 2000},
        {"write_statistics": False, "compression": "gzip", "row_group_size": 900},
        {"write_page_checksum": True, "compression": "brotli"},
    ],
    ids=str,
)
def test_pages_are_as_large_as_an_honest_footer_says(
    options: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    words = rng.choice(["calm", "rude", "kind", "a longer answer"], 3000)
    table = pa.table(
        {
            "item": np.arange(3000).astype(str),
            "text": words,
            "share": rng.random(3000),
            "gaps": pa.array([None, "x", None] * 1000),
            "lists": pa.array([["a", "b"], [], None] * 1000),
            "parts": pa.array([{"x": 1.5, "y": b"z"}] * 3000),
            "pairs": pa.array([[("k", 1)]] * 3000, pa.map_(pa.string(), pa.int64())),
        }
    )
    path = tmp_path / "a.parquet"
    pa_parquet.write_table(table, path, **options)
    footer = read_footer(path)
    stated = sum(group.size for group in footer.groups)
    # The footer counts the headers of pages, too.
    assert 0.7 * stated < unpacked_size(path, footer) < stated
    assert read_table(path).num_rows == 3000


def test_bytes_and_lists_of_text_are_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {
        "bytes": pa.array([b"a", None, b"a"]),
        "lists": pa.array([["a", "b"], [], None]),
        "parts": pa.array([{"x": "a"}, None, {"x": None}]),
        "long": pa.array(["a", "b", "a"], pa.large_string()),
    }
    table = pa.table(columns)
    pa_parquet.write_table(table, path)
    found = read_table(path)
    assert found.to_pylist() == table.to_pylist()
    assert found["lists"].type == pa.list_(pa.field("element", pa.string()))


def test_the_limit_of_the_environment_raises_and_lowers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    names = pa.array(np.arange(30_000).astype(str))
    codes = pa.array(np.zeros(30_000, np.int32))
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 30_000]))
    write_table(pa.table({"item": names, "text": texts}), path)
    assert "858 MiB of memory" in said(read_table, path)
    monkeypatch.setenv(LIMIT, "2G")
    assert read_table(path).num_rows == 30_000
    monkeypatch.setenv(LIMIT, "1M")
    assert f"{LIMIT} allows 1 MiB" in said(read_table, path)
    monkeypatch.setenv(LIMIT, "much")
    assert f"{LIMIT}=much is not a size" in said(read_table, path)


def test_sizes_are_written_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"100": 100, "2k": 2048, "1.5 GiB": 1.5 * 2**30, "3MB": 3 * 2**20, "1T": 2**40}
    for text, size in sizes.items():
        monkeypatch.setenv(LIMIT, text)
        assert stated_limit() == size


def test_a_budget_is_compared_with_the_memory_that_was_free_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"x" * (1 << 20))
    free = [100 << 20, 10 << 20]
    monkeypatch.setattr("edokit._parallel.free_memory", lambda: free.pop(0))
    budget = MemoryBudget(path)
    for _ in range(9):
        budget.take(10 << 20)
    with raises_code("too-large-file", "110 MiB", "100 MiB"):
        budget.take(20 << 20)


def test_many_short_texts_are_counted_before_they_are_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\n" * 200_000)
    monkeypatch.setenv(LIMIT, "1M")
    assert "of memory, but" in said(read_texts, path)


def test_near_duplicates_of_very_long_texts_are_looked_for_in_their_beginnings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(near_duplicates, "MOST_PIECES", 300)
    start = "the quick brown fox jumps over the lazy dog and sees another fox there " * 3
    texts = [start + "one ending " * 50, start + "something else " * 50, "a short text", start[:9]]
    with pytest.warns(EDOWarning, match=r"first 139 of each"):
        groups = near_duplicate_groups(texts)
    assert groups.tolist() == [0, 0, 1, 2]


def test_one_long_text_of_many_items_is_looked_at_once() -> None:
    text = "ab " * 300_000
    duplicates = NearDuplicates.among([text] * 1000)
    assert set(duplicates.groups.tolist()) == {0}


def test_texts_that_are_all_alike_are_compared_in_parts() -> None:
    start = "the same sentence about the bus that was late again "
    texts = [f"{start}{k}" for k in range(1500)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        duplicates = NearDuplicates.among(texts)
    assert len(duplicates.first_forms) == 1500 * 1499 // 2


def test_a_character_reference_of_thousands_of_digits_is_no_error() -> None:
    assert near_duplicate_groups([f"see &#{'9' * 6000}; here", "see here"]).tolist() == [0, 0]
