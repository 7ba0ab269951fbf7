"""Parquet files whose footers contradict themselves: each is refused in one line.

pyarrow's metadata classes end the process at some of them, so each file is read by a process of its
own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from edokit import read_annotations
from edokit._io.parquet import parquet_columns, read_parquet
from edokit._io.parquet_footer import read_footer
from edokit._io.tables import read_table, write_table
from edokit._io.thrift import ThriftReader, struct_of
from edokit.datasets.read import first_record
from edokit.members.texts import read_annotators
from edokit.predictions.join import join_models
from tests.errors import raises_code
from thrift_tree import (
    BINARY,
    BYTE,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    Field,
    Struct,
    Values,
    field,
    set_field,
    with_footer,
    write_struct,
)
from thrift_tree import read_footer as read_tree

ROWS = {
    "item": ["a", "a", "b", "b"],
    "annotator": ["x", "y", "x", "y"],
    "label": ["0", "1", "0", "0"],
    "tags": [["u"], [], ["v", "w"], None],
}
READ = """
import sys
from pathlib import Path
from edokit import EDOError, read_annotations, read_predictions
from edokit._io.parquet import parquet_columns, read_parquet
from edokit._io.tables import read_table
from edokit.datasets.read import first_record
from edokit.members.texts import read_texts
from edokit.predictions.join import join_models

def item_column(path):
    return read_parquet(path, ["item"])

readers = [read_table, item_column, read_annotations, read_predictions, read_texts, join_models]
for path in map(Path, sys.argv[1:]):
    first_record(path)
    for read in readers:
        try:
            read([path] if read is join_models else path)
            outcome = "read"
        except EDOError as error:
            outcome = str(error)
            assert len(outcome.splitlines()) == 1 or "decisions are open" in outcome, outcome
        print(path.stem, read.__name__, outcome.partition("\\n")[0], sep="\\t")
"""


def row_group(footer: Struct) -> Struct:
    found: Struct = field(footer, 4).values[0]
    return found


def chunks(footer: Struct) -> list[Struct]:
    found: list[Struct] = field(row_group(footer), 1).values
    return found


def metadata(footer: Struct) -> Struct:
    """The metadata of the first column."""
    found: Struct = field(chunks(footer)[0], 3)
    return found


def sizes(footer: Struct, number: int, count: int) -> None:
    """A histogram of levels of a wrong length in the statistics of sizes."""
    histogram = Field(number, LIST, Values(I64, [1] * count))
    set_field(metadata(footer), 16, STRUCT, [histogram])


def repetition_histogram(footer: Struct) -> None:
    sizes(footer, 2, 3)


def definition_histogram(footer: Struct) -> None:
    sizes(footer, 3, 3)


def unencoded_size_of_numbers(footer: Struct) -> None:
    set_field(field(footer, 2).values[1], 1, I32, 2)
    set_field(metadata(footer), 16, STRUCT, [Field(1, I64, 9)])


def fewer_columns(footer: Struct) -> None:
    chunks(footer).pop()


def more_columns(footer: Struct) -> None:
    chunks(footer).append(chunks(footer)[0])


def column_key(footer: Struct) -> None:
    key = [Field(1, LIST, Values(BINARY, [b"item"]))]
    set_field(chunks(footer)[0], 8, STRUCT, [Field(2, STRUCT, key)])


def footer_key(footer: Struct) -> None:
    set_field(chunks(footer)[0], 8, STRUCT, [Field(1, STRUCT, [])])


def encrypted_file(footer: Struct) -> None:
    set_field(footer, 8, STRUCT, [Field(1, STRUCT, [])])


def no_metadata(footer: Struct) -> None:
    chunks(footer)[0][:] = [Field(2, I64, 4)]


def more_values(footer: Struct) -> None:
    set_field(metadata(footer), 5, I64, 2**40)


def more_nested_values(footer: Struct) -> None:
    set_field(field(chunks(footer)[3], 3), 5, I64, 2**50)


def negative_values(footer: Struct) -> None:
    set_field(metadata(footer), 5, I64, -4)


def other_rows(footer: Struct) -> None:
    set_field(footer, 3, I64, 5)


def negative_rows(footer: Struct) -> None:
    set_field(footer, 3, I64, -4)
    set_field(row_group(footer), 3, I64, -4)


def outside(footer: Struct) -> None:
    set_field(metadata(footer), 7, I64, 2**40)


def too_many_children(footer: Struct) -> None:
    set_field(field(footer, 2).values[0], 5, I32, 9)


def negative_children(footer: Struct) -> None:
    element = field(footer, 2).values[1]
    element[:] = [Field(4, BINARY, b"item"), Field(5, I32, -1)]


def too_few_children(footer: Struct) -> None:
    set_field(field(footer, 2).values[0], 5, I32, 1)


def no_schema(footer: Struct) -> None:
    set_field(footer, 2, LIST, Values(STRUCT, []))


def deep_schema(footer: Struct) -> None:
    schema = field(footer, 2).values
    group = [Field(3, I32, 1), Field(4, BINARY, b"g"), Field(5, I32, 1)]
    schema[:] = [[Field(4, BINARY, b"root"), Field(5, I32, 1)], *[group] * 50_000, schema[1]]


def long_names(footer: Struct) -> None:
    # Each of the columns in the group has the name of the group in its path.
    schema = field(footer, 2).values
    group = [Field(3, I32, 0), Field(4, BINARY, b"g" * 300_000), Field(5, I32, 1000)]
    root = [Field(4, BINARY, b"root"), Field(5, I32, 1)]
    schema[:] = [root, group, *[schema[1]] * 1000]


def rows_of_other_type(footer: Struct) -> None:
    set_field(footer, 3, BINARY, b"4")


def list_of_other_type(footer: Struct) -> None:
    # A reader that ignores the type of the list takes its bytes for structs.
    set_field(footer, 5, LIST, Values(BYTE, [0x18, 1, 65, 0]))


def rows_twice(footer: Struct) -> None:
    footer.append(Field(3, I64, 4))


def number_too_large(footer: Struct) -> None:
    set_field(footer, 1, I32, 2**40)


FORGED: list[Callable[[Struct], None]] = [
    *(repetition_histogram, definition_histogram, unencoded_size_of_numbers),
    *(fewer_columns, more_columns, column_key, footer_key, encrypted_file, no_metadata),
    *(more_values, more_nested_values, negative_values, other_rows, negative_rows, outside),
    *(too_many_children, negative_children, too_few_children, no_schema, deep_schema, long_names),
    *(rows_of_other_type, list_of_other_type, rows_twice, number_too_large),
]


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path: Path = tmp_path_factory.mktemp("valid") / "valid.parquet"
    write_table(pa.table(ROWS), path)
    return path.read_bytes()


def test_forged_footers_are_refused_in_one_line_by_every_reader(
    valid: bytes, tmp_path: Path
) -> None:
    paths = []
    for forge in FORGED:
        footer = read_tree(valid)
        forge(footer)
        path = tmp_path / f"{forge.__name__}.parquet"
        path.write_bytes(with_footer(valid, footer))
        paths.append(path)
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, check=False
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0, (lines[-1:], done.stderr)
    assert len(lines) == 6 * len(FORGED)
    for name, reader, outcome in lines:
        refused = "can't be read as a Parquet file" in outcome or "of memory, but" in outcome
        # One column is read from a file of which another one is damaged.
        assert refused or (name, reader) == ("more_nested_values", "item_column"), (name, reader)


def test_a_footer_is_read_as_pyarrow_reads_it(valid: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    footer = read_tree(valid)
    assert with_footer(valid, footer) == valid
    # Fields that the format does not have are skipped.
    unknown = [Field(1, I16, -3), Field(5, BINARY, b"x"), Field(40, BYTE, 7)]
    footer.append(Field(99, LIST, Values(STRUCT, [unknown] * 20)))
    path.write_bytes(with_footer(valid, footer))
    read = read_footer(path)
    about = pa_parquet.read_metadata(path)
    assert read.num_rows == about.num_rows == 4
    for position, chunk in enumerate(read.groups[0].chunks):
        column = about.row_group(0).column(position)
        assert chunk.leaf.path == column.path_in_schema
        assert chunk.leaf.is_bytes == (column.physical_type == "BYTE_ARRAY")
        assert chunk.num_values == column.num_values
        assert chunk.start == (column.dictionary_page_offset or column.data_page_offset)
        assert chunk.end - chunk.start == column.total_compressed_size
    assert read_table(path).to_pylist() == pa.table(ROWS).to_pylist()
    assert list(first_record(path)) == parquet_columns(path) == list(ROWS)
    assert read_parquet(path, ["tags"]).to_pydict() == {"tags": ROWS["tags"]}


@pytest.mark.parametrize("cut", [3, 8, 12, 200])
def test_what_is_no_parquet_file_is_refused(cut: int, valid: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for content in (valid[:cut], valid[:-4] + b"PARE", valid[:-8] + b"\xff" * 4 + b"PAR1"):
        path.write_bytes(content)
        with raises_code("unreadable-file", "Parquet"):
            read_table(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x16", "cut off"),
        (b"\x19\xfc\xff\xff\xff\x0f", "cut off"),
        (b"\x18\x90\x80\x80\x80\x80\x01x", "cut off"),
        (b"\x16" + b"\xff" * 12, "endless"),
        (b"\x1d\x00", "damaged"),
        (b"\x10", "damaged"),
        (b"\x06\xfe\xff\x07\x00\x00", "damaged"),
        (b"\x1b\xff\x08\x88\x00", "cut off"),
        (write_struct([Field(9, LIST, Values(LIST, [Values(LIST, [])] * 3))]) * 2, ""),
    ],
)
def test_damaged_structs_are_refused(content: bytes, message: str) -> None:
    reader = ThriftReader(content, 0, "a struct")
    if not message:
        reader.read(struct_of({}))
        reader.read(struct_of({}))
        assert reader.position == len(content)
        return
    with pytest.raises(ValueError, match=message):
        reader.read(struct_of({}))


def test_a_footer_that_takes_too_long_to_read_is_refused(valid: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    size = (1 << 25) + 1
    path.write_bytes(b"\0" * size + size.to_bytes(4, "little") + b"PAR1")
    with raises_code("too-large-file", "a.parquet", "footer", "33,554,433"):
        read_table(path)


def test_unknown_fields_may_not_nest_without_end(valid: bytes, tmp_path: Path) -> None:
    footer = read_tree(valid)
    value: Struct = []
    for _ in range(100):
        value = [Field(1, STRUCT, value)]
    footer.append(Field(77, STRUCT, value))
    path = tmp_path / "a.parquet"
    path.write_bytes(with_footer(valid, footer))
    with raises_code("unreadable-file", "a.parquet"):
        read_table(path)


def test_columns_of_bytes_in_place_of_names_are_refused_with_the_name_of_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "answers.parquet"
    columns = {"item": ["a", "b"], "model": [b"m", b"m"], "answer": ["yes", "no"]}
    write_table(pa.table(columns), path)
    with raises_code("unsupported-type", "answers.parquet", "'model'", "binary"):
        join_models([path], classes=["no", "yes"])
    with raises_code("unsupported-type", "answers.parquet", "'model'", "binary"):
        read_annotators(path, columns={"annotator": "model"})


def test_a_column_of_probabilities_without_a_class_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shares.parquet"
    write_table(pa.table({"item": ["a", "b"], "p_": [0.25, 0.5], "p_x": [0.75, 0.5]}), path)
    with raises_code("missing-value", "shares.parquet", "'p_'"):
        read_annotations(path)
