"""Reading structs in Thrift's compact protocol, in which Parquet files describe their content.

Every length is compared with the bytes that are left before anything is read, and a field must have
the type that the format gives it. Both make sure that no other reader, which may be less strict,
can understand the same bytes in another way.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass

_TRUE = 1  # type codes
_FALSE = 2
_BYTE = 3
_INTEGERS = (4, 5, 6)
_DOUBLE = 7
_BINARY = 8
_LIST = 9
_LISTS = (9, 10)
_MAP = 11
_STRUCT = 12
_DEEPEST = 8  # levels of a value that the format does not describe
_LARGEST_FIELD = 2**15 - 1


@dataclass(frozen=True)
class Kind:
    """The type of a value.

    Attributes
    ----------
    code : int
        Its type code in a file; of a boolean, that in a list.
    bits : int
        The bits of a whole number.
    element : Kind or None
        The type of the values of a list.
    fields : mapping of int to Kind or None
        The types of the fields of a struct, by their numbers.
    """

    code: int
    bits: int = 0
    element: Kind | None = None
    fields: Mapping[int, Kind] | None = None


BOOL = Kind(_TRUE)
BYTE = Kind(_BYTE)
I16 = Kind(4, bits=16)
I32 = Kind(5, bits=32)
I64 = Kind(6, bits=64)
DOUBLE = Kind(_DOUBLE)
BINARY = Kind(_BINARY)


def list_of(element: Kind) -> Kind:
    """The type of a list of such values."""
    return Kind(_LIST, element=element)


def struct_of(fields: Mapping[int, Kind]) -> Kind:
    """The type of a struct with these fields."""
    return Kind(_STRUCT, fields=fields)


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

    def read(self, kind: Kind) -> Struct:
        """Read a struct of this type."""
        return self._read_struct(kind.fields or {})

    def _read_struct(self, kinds: Mapping[int, Kind]) -> Struct:
        """Read a struct; fields that the type does not have are skipped."""
        values: dict[int, Value] = {}
        field = 0
        while True:
            head = self._byte()
            if head == 0:
                return Struct(values, self._source)
            code = head & 15
            step = head >> 4
            if step:
                field += step
            else:
                field = self._integer(16)
            if not -_LARGEST_FIELD <= field <= _LARGEST_FIELD:
                raise self._damaged()
            kind = kinds.get(field)
            if kind is None:
                if code not in (_TRUE, _FALSE):  # their value is part of the field's byte
                    self._skip(code, depth=0)
            elif field in values:
                raise ValueError(f"{self._source} has field {field} twice")
            elif kind is BOOL and code in (_TRUE, _FALSE):
                values[field] = int(code == _TRUE)
            elif kind.code == code:
                values[field] = self._read_value(kind)
            else:
                raise self._damaged()

    def _read_value(self, kind: Kind) -> Value:
        if kind.bits:
            return self._integer(kind.bits)
        if kind.code == _BINARY:
            return self._bytes(self._number())
        if kind.fields is not None:
            return self._read_struct(kind.fields)
        if kind.element is not None:
            return self._read_list(kind.element)
        if kind.code == _DOUBLE:
            return self._bytes(8)
        return self._byte()  # in a list, a boolean takes a byte

    def _read_list(self, element: Kind) -> list[Value]:
        code, count = self._list_head()
        if count and code != element.code:
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

    def _skip(self, code: int, depth: int) -> None:
        """Skip a value of this type code."""
        if depth > _DEEPEST:
            raise ValueError(f"{self._source} is nested too deeply")
        if code in (_TRUE, _FALSE, _BYTE):
            self._byte()
        elif code in _INTEGERS:
            self._number()
        elif code == _DOUBLE:
            self._bytes(8)
        elif code == _BINARY:
            self._bytes(self._number())
        elif code in _LISTS:
            element, count = self._list_head()
            for _ in range(count):
                self._skip(element, depth + 1)
        elif code == _MAP:
            self._skip_map(depth)
        elif code == _STRUCT:
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
            if head & 15 not in (_TRUE, _FALSE):
                self._skip(head & 15, depth + 1)

    def _cut_off(self) -> ValueError:
        return ValueError(f"{self._source} is cut off")

    def _damaged(self) -> ValueError:
        return ValueError(f"{self._source} is damaged")
