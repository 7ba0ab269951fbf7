"""The footer of a Parquet file: which columns it has, and where their pages are.

The footer is read here and not by pyarrow's metadata classes: at values that contradict each other
(such as statistics of sizes that do not fit the schema), these end the process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from edokit._errors import InputError
from edokit._io.memory import check_memory
from edokit._io.thrift import (
    BINARY,
    BOOL,
    BYTE,
    DOUBLE,
    I16,
    I32,
    I64,
    Struct,
    ThriftReader,
    list_of,
    struct_of,
)

_MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"
_TAIL = 8  # the size of the footer, and the magic number
_LARGEST_FOOTER = 1 << 25
_BYTES_IN_MEMORY = 150  # at most, for each byte of the footer
_LONGEST_PATHS = 1 << 25  # characters of the paths of all leaves; readers keep each of them
_DEEPEST_SCHEMA = 64
_REQUIRED = 0  # repetition types
_REPEATED = 2
_BYTE_ARRAY = 6  # a physical type
DELTA_BYTE_ARRAY = 7
"""The encoding that stores how a value differs from the one before it."""

# The structs of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
_EMPTY = struct_of({})
_TIME = struct_of({1: BOOL, 2: struct_of({1: _EMPTY, 2: _EMPTY, 3: _EMPTY})})
_LOGICAL_TYPE = struct_of(
    {
        **dict.fromkeys((1, 2, 3, 4, 6, 11, 12, 13, 14, 15), _EMPTY),
        5: struct_of({1: I32, 2: I32}),
        7: _TIME,
        8: _TIME,
        10: struct_of({1: BYTE, 2: BOOL}),
        16: struct_of({1: BYTE}),
        17: struct_of({1: BINARY}),
        18: struct_of({1: BINARY, 2: I32}),
    }
)
_SCHEMA_ELEMENT = struct_of(
    {
        1: I32,
        2: I32,
        3: I32,
        4: BINARY,
        5: I32,
        6: I32,
        7: I32,
        8: I32,
        9: I32,
        10: _LOGICAL_TYPE,
    }
)
_KEY_VALUE = struct_of({1: BINARY, 2: BINARY})
STATISTICS = struct_of(
    {
        1: BINARY,
        2: BINARY,
        3: I64,
        4: I64,
        5: BINARY,
        6: BINARY,
        7: BOOL,
        8: BOOL,
        9: I64,
    }
)
_COLUMN_METADATA = struct_of(
    {
        1: I32,
        2: list_of(I32),
        3: list_of(BINARY),
        4: I32,
        5: I64,
        6: I64,
        7: I64,
        8: list_of(_KEY_VALUE),
        9: I64,
        10: I64,
        11: I64,
        12: STATISTICS,
        13: list_of(struct_of({1: I32, 2: I32, 3: I32})),
        14: I64,
        15: I32,
        16: struct_of({1: I64, 2: list_of(I64), 3: list_of(I64)}),
        17: struct_of({1: struct_of(dict.fromkeys(range(1, 9), DOUBLE)), 2: list_of(I32)}),
    }
)
_COLUMN_CHUNK = struct_of(
    {
        1: BINARY,
        2: I64,
        3: _COLUMN_METADATA,
        4: I64,
        5: I32,
        6: I64,
        7: I32,
        8: struct_of({1: _EMPTY, 2: struct_of({1: list_of(BINARY), 2: BINARY})}),
        9: BINARY,
    }
)
_ROW_GROUP = struct_of(
    {
        1: list_of(_COLUMN_CHUNK),
        2: I64,
        3: I64,
        4: list_of(struct_of({1: I32, 2: BOOL, 3: BOOL})),
        5: I64,
        6: I64,
        7: I16,
    }
)
_ENCRYPTION = struct_of({1: BINARY, 2: BINARY, 3: BOOL})
_FILE_METADATA = struct_of(
    {
        1: I32,
        2: list_of(_SCHEMA_ELEMENT),
        3: I64,
        4: list_of(_ROW_GROUP),
        5: list_of(_KEY_VALUE),
        6: BINARY,
        7: list_of(struct_of({1: _EMPTY, 2: _EMPTY})),
        8: struct_of({1: _ENCRYPTION, 2: _ENCRYPTION}),
        9: BINARY,
    }
)


@dataclass(frozen=True)
class Leaf:
    """A column of values in the schema; a nested column has several.

    Attributes
    ----------
    column : str
        The column of the table that it is, or is part of.
    path : str
        The names of the fields that lead to it, separated by points.
    is_bytes : bool
        Whether its values are bytes or text of any length.
    is_repeated : bool
        Whether a row may have any number of its values.
    """

    column: str
    path: str
    is_bytes: bool
    is_repeated: bool


@dataclass(frozen=True)
class ColumnChunk:
    """The values of a leaf in a row group.

    Attributes
    ----------
    leaf : Leaf
    encodings : tuple of int
    num_values : int
        Values with gaps.
    start, end : int
        The bytes of its pages in the file.
    """

    leaf: Leaf
    encodings: tuple[int, ...]
    num_values: int
    start: int
    end: int


@dataclass(frozen=True)
class RowGroup:
    """Some rows of the file, with the bytes that they take uncompressed."""

    num_rows: int
    size: int
    chunks: tuple[ColumnChunk, ...]


@dataclass(frozen=True)
class Footer:
    """What the footer says."""

    num_rows: int
    groups: tuple[RowGroup, ...]

    def select(self, columns: Collection[str]) -> Footer:
        """Only these columns of the table, with all that is nested in them."""
        groups = []
        for group in self.groups:
            chunks = tuple(chunk for chunk in group.chunks if chunk.leaf.column in columns)
            groups.append(replace(group, chunks=chunks))
        return replace(self, groups=tuple(groups))

    def chunks(self) -> Iterator[ColumnChunk]:
        """The chunks of all row groups."""
        for group in self.groups:
            yield from group.chunks


def read_footer(path: Path) -> Footer:
    """Read the footer of a file.

    Raises ValueError if it is damaged or contradicts itself, and InputError if it is too large.
    """
    content = _footer_bytes(path)
    check_memory(path, _BYTES_IN_MEMORY * len(content))
    file = ThriftReader(content, 0, "its footer").read(_FILE_METADATA)
    if 8 in file:
        raise ValueError("it is encrypted")
    leaves = _leaves(file.structs(2))
    groups = tuple(_row_group(group, leaves) for group in file.structs(4))
    num_rows = file.integer(3)
    if num_rows != sum(group.num_rows for group in groups):
        raise ValueError(f"it claims {num_rows:,} rows, but its row groups claim others")
    return Footer(num_rows, groups)


def _footer_bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - _TAIL))
        tail = stream.read(_TAIL)
        if tail[4:] == _ENCRYPTED_MAGIC:
            raise ValueError("its footer is encrypted")
        if tail[4:] != _MAGIC:
            raise ValueError("it does not end as a Parquet file does")
        length = int.from_bytes(tail[:4], "little")
        if length > size - _TAIL:
            raise ValueError("its footer is cut off")
        if length > _LARGEST_FOOTER:
            raise InputError(
                f"{path} has a footer of {length:,} bytes, more than {_LARGEST_FOOTER:,}",
                "write it with larger row groups, or in several files",
                code="too-large-file",
            )
        stream.seek(size - _TAIL - length)
        return stream.read(length)


def _leaves(elements: list[Struct]) -> list[Leaf]:
    """The leaves of the schema, whose elements are in the order of a depth-first walk."""
    if not elements:
        raise ValueError("its schema is empty")
    leaves: list[Leaf] = []
    characters = 0
    parents = [_Parent([], elements[0].integer(5, 0), is_repeated=False)]
    for element in elements[1:]:
        while parents and parents[-1].children == 0:
            parents.pop()
        if not parents:
            raise ValueError("its schema has more elements than it claims")
        parent = parents[-1]
        parent.children -= 1
        names = [*parent.names, element.text(4)]
        is_repeated = parent.is_repeated or element.integer(3, _REQUIRED) == _REPEATED
        children = element.integer(5, 0)
        if children == 0 and 1 in element:
            characters += sum(map(len, names))
            if characters > _LONGEST_PATHS:
                raise ValueError("its schema has very long names")
            is_bytes = element.integer(1) == _BYTE_ARRAY
            leaves.append(Leaf(names[0], ".".join(names), is_bytes, is_repeated))
        elif children < 0 or len(names) > _DEEPEST_SCHEMA:
            raise ValueError("its schema is damaged or nested too deeply")
        else:
            parents.append(_Parent(names, children, is_repeated))
    if any(parent.children for parent in parents):
        raise ValueError("its schema has fewer elements than it claims")
    return leaves


@dataclass
class _Parent:
    """A group of the schema that is being read.

    It has the names of the groups that lead to it, the number of its children that are still to
    come, and whether a row may have any number of it.
    """

    names: list[str]
    children: int
    is_repeated: bool


def _row_group(group: Struct, leaves: list[Leaf]) -> RowGroup:
    num_rows = group.integer(3)
    size = group.integer(2)
    if num_rows < 0 or size < 0:
        raise ValueError(f"it claims {num_rows:,} rows and {size:,} bytes, more than it can hold")
    columns = group.structs(1)
    if len(columns) != len(leaves):
        raise ValueError(f"a row group has {len(columns)} columns, but the schema {len(leaves)}")
    pairs = zip(columns, leaves, strict=True)
    chunks = tuple(_column_chunk(column, leaf, num_rows) for column, leaf in pairs)
    return RowGroup(num_rows, size, chunks)


def _column_chunk(column: Struct, leaf: Leaf, num_rows: int) -> ColumnChunk:
    if 8 in column:
        raise ValueError("it has an encrypted column")
    metadata = column.struct(3)
    num_values = metadata.integer(5)
    if num_values < 0 or (num_values != num_rows and not leaf.is_repeated):
        raise ValueError(f"a column claims {num_values:,} values in {num_rows:,} rows")
    start = metadata.integer(9)
    dictionary = metadata.integer(11, 0)
    if 0 < dictionary < start:
        start = dictionary
    end = start + metadata.integer(7)
    return ColumnChunk(leaf, tuple(metadata.integers(2)), num_values, start, end)
