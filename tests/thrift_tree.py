"""The footer of a Parquet file as a tree that can be changed and written again."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TRUE = 1
FALSE = 2
BYTE = 3
I16 = 4
I32 = 5
I64 = 6
DOUBLE = 7
BINARY = 8
LIST = 9
SET = 10
MAP = 11
STRUCT = 12


@dataclass
class Field:
    """A value of a struct, with its number and its type."""

    number: int
    kind: int
    value: Any


@dataclass
class Values:
    """A list, with the type of its values."""

    kind: int
    values: list[Any]


Struct = list[Field]


def field(struct: Struct, number: int) -> Any:
    """The value of a field."""
    return next(one.value for one in struct if one.number == number)


def set_field(struct: Struct, number: int, kind: int, value: Any) -> None:
    """Add a field, or replace it."""
    struct[:] = [one for one in struct if one.number != number]
    struct.append(Field(number, kind, value))
    struct.sort(key=lambda one: one.number)


def read_footer(content: bytes) -> Struct:
    """The footer of a valid Parquet file."""
    size = int.from_bytes(content[-8:-4], "little")
    return _Reader(content[-8 - size : -8]).struct()


def with_footer(content: bytes, footer: Struct) -> bytes:
    """A valid Parquet file with another footer."""
    size = int.from_bytes(content[-8:-4], "little")
    written = write_struct(footer)
    return content[: -8 - size] + written + len(written).to_bytes(4, "little") + b"PAR1"


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def _take(self, count: int) -> bytes:
        taken = self._content[self._position : self._position + count]
        if len(taken) < count:
            raise ValueError("the struct is cut off")
        self._position += count
        return taken

    def _number(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                break
        return number

    def _signed(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)

    def struct(self) -> Struct:
        fields: Struct = []
        number = 0
        while True:
            byte = self._take(1)[0]
            if byte == 0:
                return fields
            kind = byte & 15
            number = number + (byte >> 4) if byte >> 4 else self._signed()
            value = None if kind in (TRUE, FALSE) else self._value(kind)
            fields.append(Field(number, kind, value))

    def _value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE, BYTE):
            return self._take(1)[0]
        if kind in (I16, I32, I64):
            return self._signed()
        if kind == DOUBLE:
            return self._take(8)
        if kind == BINARY:
            return self._take(self._number())
        if kind in (LIST, SET):
            byte = self._take(1)[0]
            count = byte >> 4 if byte >> 4 < 15 else self._number()
            return Values(byte & 15, [self._value(byte & 15) for _ in range(count)])
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"type {kind} is in no footer")


def write_struct(fields: Struct) -> bytes:
    """A struct in the compact protocol."""
    written = bytearray()
    last = 0
    for one in fields:
        step = one.number - last
        if 0 < step < 16:
            written.append(step << 4 | one.kind)
        else:
            written.append(one.kind)
            written += _signed(one.number)
        last = one.number
        if one.kind not in (TRUE, FALSE):
            written += _written(one.kind, one.value)
    return bytes(written) + b"\0"


def _written(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE, BYTE):
        return bytes([value])
    if kind in (I16, I32, I64):
        return _signed(value)
    if kind == BINARY:
        return _number(len(value)) + bytes(value)
    if kind in (LIST, SET):
        count = len(value.values)
        if count < 15:
            head = bytes([count << 4 | value.kind])
        else:
            head = bytes([0xF0 | value.kind]) + _number(count)
        return head + b"".join(_written(value.kind, one) for one in value.values)
    if kind == STRUCT:
        return write_struct(value)
    return bytes(value)


def _number(number: int) -> bytes:
    written = []
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def _signed(number: int) -> bytes:
    return _number(2 * number if number >= 0 else -2 * number - 1)


_ODD_NUMBERS = (-1, 0, 1, 2, 3, 6, 7, 99, 2**15, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))


def refooted(content: bytes, rng: random.Random) -> bytes:
    """A Parquet file whose footer was changed in a few places, and can still be read as one."""
    footer = read_footer(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _change(rng.choice(list(_parts(footer))), rng)
    return with_footer(content, footer)


def _parts(value: Any) -> Iterator[Struct | Values]:
    """All structs and lists in a struct."""
    if isinstance(value, Values):
        yield value
        for inner in value.values:
            yield from _parts(inner)
    elif isinstance(value, list):
        yield value
        for one in value:
            yield from _parts(one.value)


def _change(part: Struct | Values, rng: random.Random) -> None:
    values = part.values if isinstance(part, Values) else part
    if not values:
        return
    place = rng.randrange(len(values))
    action = rng.randrange(8)
    if action == 0:
        del values[place]
    elif action == 1:
        values.insert(place, copy.deepcopy(rng.choice(values)))
    elif action == 2 and isinstance(part, list):
        part[place].number = rng.randrange(1, 20)
    elif action == 3 and isinstance(part, list):
        histogram = Values(I64, [rng.choice(_ODD_NUMBERS)] * rng.randrange(4))
        sizes = [Field(rng.choice((2, 3)), LIST, histogram)]
        part.append(Field(rng.choice((8, 16)), STRUCT, sizes))
    elif isinstance(part, Values):
        part.values[place] = _other(part.kind, part.values[place], rng)
    else:
        part[place].value = _other(part[place].kind, part[place].value, rng)


def _other(kind: int, value: Any, rng: random.Random) -> Any:
    """Another value of this type."""
    if kind in (I16, I32, I64):
        return rng.choice((*_ODD_NUMBERS, value + 1, value - 1, 2 * value))
    if kind == BINARY:
        return rng.choice((b"", value * 2, value[:-1], b"\xff\xfe", b"x" * 300))
    return value
