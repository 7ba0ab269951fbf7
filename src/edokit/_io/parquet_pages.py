"""The uncompressed size of the pages of a Parquet file, according to their headers.

The footer of a Parquet file states the size of each column, and may be wrong. Readers allocate
memory by the header of each page, so an estimate has to add up these headers. They are structs in
the compact protocol of Thrift.
"""

from __future__ import annotations

import mmap
from pathlib import Path

import pyarrow.parquet as pa_parquet

_MOST_PAGES = 1_000_000
_DEEPEST = 8  # levels of structs in a header
_UNCOMPRESSED_SIZE = 2  # fields of a header
_COMPRESSED_SIZE = 3

# Types of the compact protocol.
_TRUE = 1
_FALSE = 2
_BYTE = 3
_INTEGERS = (4, 5, 6)
_DOUBLE = 7
_BINARY = 8
_LISTS = (9, 10)
_MAP = 11
_STRUCT = 12


def unpacked_size(path: Path, metadata: pa_parquet.FileMetaData) -> int:
    """Bytes that all pages take uncompressed.

    Raises ValueError if a header can't be read.
    """
    size = 0
    pages = 0
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for place in range(group.num_columns):
                column = group.column(place)
                if column.num_values == 0:
                    continue
                position = _start(column)
                end = position + column.total_compressed_size
                if not 0 <= position <= end <= len(data):
                    raise ValueError("a column lies outside the file")
                while position < end:
                    header = _Header(data, position)
                    size += header.uncompressed_size
                    position = header.end + header.compressed_size
                    pages += 1
                    if pages > _MOST_PAGES:
                        raise ValueError(f"it has more than {_MOST_PAGES:,} pages")
    return size


def _start(column: pa_parquet.ColumnChunkMetaData) -> int:
    """Where the first page of a column begins."""
    data_start = int(column.data_page_offset)
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < data_start:
        return int(column.dictionary_page_offset)
    return data_start


class _Header:
    """The header of a page.

    Attributes
    ----------
    uncompressed_size : int
        Bytes of the page in memory.
    compressed_size : int
        Bytes of the page in the file, after the header.
    end : int
        Where the header ends.
    """

    def __init__(self, data: mmap.mmap, start: int) -> None:
        self._data = data
        self._position = start
        self._numbers: dict[int, int] = {}
        self._read_struct(depth=0)
        self.end = self._position
        self.uncompressed_size = self._numbers.get(_UNCOMPRESSED_SIZE, -1)
        self.compressed_size = self._numbers.get(_COMPRESSED_SIZE, -1)
        if self.uncompressed_size < 0 or self.compressed_size < 0:
            raise ValueError("the header of a page does not state a size")

    def _byte(self) -> int:
        if self._position >= len(self._data):
            raise ValueError("the header of a page is cut off")
        value = self._data[self._position]
        self._position += 1
        return value

    def _number(self) -> int:
        """An unsigned number in seven bits per byte."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("the header of a page holds an endless number")

    def _signed(self) -> int:
        value = self._number()
        if value % 2:
            return -(value >> 1) - 1
        return value >> 1

    def _skip_bytes(self, count: int) -> None:
        if count > len(self._data) - self._position:
            raise ValueError("the header of a page is cut off")
        self._position += count

    def _read_struct(self, depth: int) -> None:
        """Skip a struct; the numbers of the outermost struct are kept."""
        field = 0
        while True:
            byte = self._byte()
            if byte == 0:
                return
            kind = byte & 15
            step = byte >> 4
            if step:
                field += step
            else:
                field = self._signed()
            if kind in _INTEGERS and depth == 0:
                self._numbers[field] = self._signed()
            elif kind not in (_TRUE, _FALSE):  # their value is part of the field's byte
                self._skip_value(kind, depth)

    def _skip_value(self, kind: int, depth: int) -> None:
        """Skip a value of this type."""
        if depth > _DEEPEST:
            raise ValueError("the header of a page is nested too deeply")
        if kind in (_TRUE, _FALSE, _BYTE):  # in a list, a boolean takes a byte
            self._skip_bytes(1)
        elif kind in _INTEGERS:
            self._number()
        elif kind == _DOUBLE:
            self._skip_bytes(8)
        elif kind == _BINARY:
            self._skip_bytes(self._number())
        elif kind in _LISTS:
            byte = self._byte()
            count = byte >> 4
            if count == 15:
                count = self._number()
            for _ in range(count):
                self._skip_value(byte & 15, depth + 1)
        elif kind == _MAP:
            self._skip_map(depth)
        elif kind == _STRUCT:
            self._read_struct(depth + 1)
        else:
            raise ValueError("the header of a page is damaged")

    def _skip_map(self, depth: int) -> None:
        count = self._number()
        if count == 0:
            return
        kinds = self._byte()
        for _ in range(count):
            self._skip_value(kinds >> 4, depth + 1)
            self._skip_value(kinds & 15, depth + 1)
