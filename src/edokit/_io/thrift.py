"""Reading structs in Thrift's compact protocol, in which Parquet files describe their content.

Every length is compared with the bytes that are left before anything is read, and a field must have
the type that the format gives it. Both make sure that no other reader, which may be less strict,
can understand the same bytes in another way.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass

BOOL = 1
BYTE = 3
I16 = 4
I32 = 5
I64 = 6
DOUBLE = 7
BINARY = 8
_FALSE = 2
_LISTS = (9, 10)
_MAP = 11
_STRUCT = 12
_BITS = {I16: 16, I32: 32, I64: 64}
_DEEPEST = 8  # levels of a value that the format does not describe
_LARGEST_FIELD = 2**15 - 1


@dataclass(frozen=True)
class ListOf:
    """The type of a list, by the type of its values."""

    element: Kind


Fields = Mapping[int, "Kind"]
"""The type of a struct: the types of its fields, by their numbers."""
Kind = int | ListOf | Fields
"""The type of a value."""


class Struct:
    """The fields of a struct that was read. A field that is asked for and missing is an error."""

    __slots__ = ("_source", "_values")

    def __init__(self, values: dict[int, Value], source: str) -> None:
        self._values = values
        self._source = source

    def __contains__(self, field: int) -> bool:
        return field in self._values

    def integer(self, field: int, default: int | None = None) -> int:
        """A whole number."""
        value = self._values.get(field, default)
        if not isinstance(value, int):
            raise self._missing(field)
        return value

    def text(self, field: int) -> str:
        """Text; bytes that are not UTF-8 are replaced."""
        value = self._values.get(field)
        if not isinstance(value, bytes):
            raise self._missing(field)
        return value.decode(errors="replace")

    def struct(self, field: int) -> Struct:
        """A struct."""
        value = self._values.get(field)
        if not isinstance(value, Struct):
            raise self._missing(field)
        return value

    def structs(self, field: int) -> list[Struct]:
        """A list of structs."""
        return [value for value in self._list(field) if isinstance(value, Struct)]

    def integers(self, field: int) -> list[int]:
        """A list of whole numbers."""
        return [value for value in self._list(field) if isinstance(value, int)]

    def _list(self, field: int) -> list[Value]:
        value = self._values.get(field)
        if not isinstance(value, list):
            raise self._missing(field)
        return value

    def _missing(self, field: int) -> ValueError:
        return ValueError(f"{self._source} lacks field {field}")


Value = int | bytes | list["Value"] | Struct


class ThriftReader:
    """Reads structs from bytes.

    Parameters
    ----------
    data : bytes or mmap
    position : int
        Where the first struct begins; afterwards, where the next one begins.
    source : str
        What is read, for messages.
    """

    def __init__(self, data: bytes | mmap.mmap, position: int, source: str) -> None:
        self._data = data
        self._size = len(data)
        self._source = source
        self.position = position

    def read_struct(self, fields: Fields) -> Struct:
        """Read a struct; fields that the type does not have are skipped."""
        values: dict[int, Value] = {}
        field = 0
        while True:
            head = self._byte()
            if head == 0:
                return Struct(values, self._source)
            wire = head & 15
            step = head >> 4
            if step:
                field += step
            else:
                field = self._integer(16)
            if not -_LARGEST_FIELD <= field <= _LARGEST_FIELD:
                raise self._damaged()
            kind = fields.get(field)
            if kind is None:
                if wire not in (BOOL, _FALSE):  # their value is part of the field's byte
                    self._skip(wire, depth=0)
            elif field in values:
                raise ValueError(f"{self._source} has field {field} twice")
            else:
                values[field] = self._read_field(wire, kind)

    def _read_field(self, wire: int, kind: Kind) -> Value:
        """A field of this type, with the type code that the file gives it."""
        if kind == BOOL and wire in (BOOL, _FALSE):
            return int(wire == BOOL)
        if wire != _wire_type(kind):
            raise self._damaged()
        return self._read_value(kind)

    def _read_value(self, kind: Kind) -> Value:
        if isinstance(kind, ListOf):
            return self._read_list(kind.element)
        if isinstance(kind, Mapping):
            return self.read_struct(kind)
        bits = _BITS.get(kind)
        if bits is not None:
            return self._integer(bits)
        if kind == BINARY:
            return self._bytes(self._number())
        if kind == DOUBLE:
            return self._bytes(8)
        return self._byte()  # in a list, a boolean takes a byte

    def _read_list(self, element: Kind) -> list[Value]:
        wire, count = self._list_head()
        if count and wire != _wire_type(element):
            raise self._damaged()
        return [self._read_value(element) for _ in range(count)]

    def _list_head(self) -> tuple[int, int]:
        """The type of the values of a list, and their number."""
        head = self._byte()
        count = head >> 4
        if count == 15:
            count = self._number()
        if count > self._size - self.position:  # a value takes a byte or more
            raise self._cut_off()
        return head & 15, count

    def _byte(self) -> int:
        if self.position >= self._size:
            raise self._cut_off()
        value = self._data[self.position]
        self.position += 1
        return value

    def _bytes(self, count: int) -> bytes:
        start = self.position
        if count > self._size - start:
            raise self._cut_off()
        self.position = start + count
        return self._data[start : self.position]

    def _number(self) -> int:
        """An unsigned number in seven bits per byte."""
        byte = self._byte()
        value = byte & 127
        shift = 7
        while byte > 127:
            if shift > 63:
                raise ValueError(f"{self._source} has an endless number")
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
        return value

    def _integer(self, bits: int) -> int:
        """A signed number, whose sign is its last bit."""
        number = self._number()
        if number >> bits:
            raise self._damaged()
        if number % 2:
            return -(number >> 1) - 1
        return number >> 1

    def _skip(self, wire: int, depth: int) -> None:
        """Skip a value of this type code."""
        if depth > _DEEPEST:
            raise ValueError(f"{self._source} is nested too deeply")
        if wire in (BOOL, _FALSE, BYTE):
            self._byte()
        elif wire in _BITS:
            self._number()
        elif wire == DOUBLE:
            self._bytes(8)
        elif wire == BINARY:
            self._bytes(self._number())
        elif wire in _LISTS:
            element, count = self._list_head()
            for _ in range(count):
                self._skip(element, depth + 1)
        elif wire == _MAP:
            self._skip_map(depth)
        elif wire == _STRUCT:
            self._skip_struct(depth)
        else:
            raise self._damaged()

    def _skip_map(self, depth: int) -> None:
        count = self._number()
        if count == 0:
            return
        kinds = self._byte()
        for _ in range(count):
            self._skip(kinds >> 4, depth + 1)
            self._skip(kinds & 15, depth + 1)

    def _skip_struct(self, depth: int) -> None:
        while True:
            head = self._byte()
            if head == 0:
                return
            if head < 16:  # the number of the field follows
                self._number()
            if head & 15 not in (BOOL, _FALSE):
                self._skip(head & 15, depth + 1)

    def _cut_off(self) -> ValueError:
        return ValueError(f"{self._source} is cut off")

    def _damaged(self) -> ValueError:
        return ValueError(f"{self._source} is damaged")


def _wire_type(kind: Kind) -> int:
    """The type code of a value in a file; of a boolean, that in a list."""
    if isinstance(kind, ListOf):
        return _LISTS[0]
    if isinstance(kind, Mapping):
        return _STRUCT
    return kind
