"""Names are strings everywhere, and things are matched by name, never by position."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from itertools import repeat
from numbers import Number
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOError, InputError, are, examples, word
from edokit._io.tables import as_column, stored_numbers
from edokit._lazy import is_frame, is_pandas_gap, pa, pc, pd
from edokit._types import Codes, Strings


def as_name(value: object) -> str:
    """The string that stands for a value: 7, 7.0 and "7" are all "7", "007" is another."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"the bytes {value!r} are not UTF-8 text", "decode the names first"
            ) from error
    if value is None or value is np.ma.masked or is_pandas_gap(value):
        raise _no_name(value)
    if isinstance(value, float | np.floating | Decimal):
        if math.isnan(value):
            raise _no_name(value)
        if math.isfinite(value) and value == int(value):
            return str(int(value))
    return str(value)


def as_names(values: Iterable[object]) -> Strings:
    """Names as an array of strings; long lists may stay in Arrow, see `names_in_arrow`."""
    if isinstance(values, ArrowNames):
        return values  # type: ignore[return-value]
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"names are given as a list, not as {values!r}", "give one name per entry")
    whole = False
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iuU" and values.size >= _FEW and _IN_ARROW.get():
            return ArrowNames(_in_arrow(values.ravel()))  # type: ignore[return-value]
        if values.dtype.kind in "biuU":
            whole = values.dtype.kind in "iuU"
            values = values.ravel().tolist()
        elif values.dtype.kind == "O" and set(map(type, values.ravel())) <= {str}:
            return values.ravel().copy()
    listed = values if type(values) is list else list(values)
    # Millions of names are mostly text or whole numbers, whose text is their name.
    plain = whole or set(map(type, listed)) <= {str, int}
    names = list(map(str, listed)) if plain else [as_name(value) for value in listed]
    result = np.empty(len(names), dtype=object)
    result[:] = names
    return result


class ArrowNames:
    """Names as Arrow keeps them: an array of strings that is made when somebody needs it.

    Of the millions of item ids in a file hardly any is ever looked at: they are hashed and
    compared. Whatever else is asked of them, the array of strings answers.
    """

    def __init__(self, values: pa.Array) -> None:
        self.values = _rising_numbers(values)
        """Text or whole numbers, without gaps."""

    @cached_property
    def text(self) -> pa.Array:
        return self.values if _is_text(self.values.type) else self.values.cast(pa.string())

    @cached_property
    def strings(self) -> Strings:
        return np.asarray(self.text.to_numpy(zero_copy_only=False), dtype=object)

    @cached_property
    def hashes(self) -> Hashes:
        """A number per name [n]."""
        return _hashes(*_text_buffers(self.text))

    @cached_property
    def sorted_hashes(self) -> Hashes:
        # By 16 bits, then by the 16 before them: numpy counts these instead of comparing.
        order = np.argsort((self.hashes >> np.uint64(32)).astype(np.uint16), kind="stable")
        high = (self.hashes >> np.uint64(48)).astype(np.uint16)[order]
        # Hardly any two have 32 bits in common; nearly sorted numbers are quickly sorted.
        ordered = self.hashes[order[np.argsort(high, kind="stable")]]
        ordered.sort(kind="stable")
        return ordered

    @cached_property
    def bounds(self) -> tuple[int, int] | None:
        """The first and the last, where they are whole numbers that rise."""
        if _is_text(self.values.type) or not len(self):
            return None
        numbers = self.values.to_numpy()
        rise = bool((numbers[1:] > numbers[:-1]).all())
        return (int(numbers[0]), int(numbers[-1])) if rise else None

    @cached_property
    def distinct(self) -> bool:
        if self.bounds is not None:
            return True
        ordered = self.sorted_hashes
        collide = bool((ordered[1:] == ordered[:-1]).any())
        return not collide or len(set(self.strings.tolist())) == len(self)

    @property
    def trimmed(self) -> bool:
        """Whether it is plain that no name begins or ends with a blank."""
        if not _is_text(self.values.type):
            return True
        data, starts, lengths = _text_buffers(self.text)
        ends = np.append(data[starts], data[starts + np.maximum(lengths, 1) - 1])
        return bool(((ends > ord(" ")) & (ends < 0x7F)).all())

    def positions_in(self, others: ArrowNames) -> npt.NDArray[np.intp] | None:
        """Where each name is among others, if both hold the same names, each once; else None."""
        if len(self) != len(others) or not self.distinct:
            return None
        one, other = self.values, others.values
        # Numbers of two types are compared as text: numpy may take both for fractions.
        if _is_text(one.type) or one.type != other.type:
            one, other = self.text, others.text
        elif bool((one.to_numpy() == other.to_numpy()).all()):
            return np.arange(len(self))
        if one.equals(other):
            return np.arange(len(self))
        where = np.empty(len(self), dtype=np.intp)
        where[np.argsort(self.hashes)] = np.argsort(others.hashes)
        return where if other.take(pa.array(where)).equals(one) else None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, np.ndarray) and at.dtype.kind == "i":
            return ArrowNames(self.values.take(pa.array(at)))
        if isinstance(at, int | np.integer):
            return str(self.values[int(at)].as_py())
        return self.strings[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self.strings)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, str) and not other:
            if not _is_text(self.values.type):
                return np.zeros(len(self), dtype=bool)
            return _text_buffers(self.text)[2] == 0
        return self.strings == other

    def __contains__(self, name: object) -> bool:
        return bool(np.any(self == name))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.strings.astype(dtype or object, copy=bool(copy))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.strings, name)

    __hash__ = None  # type: ignore[assignment]


def _rising_numbers(values: pa.Array) -> pa.Array:
    """Text of whole numbers that rise, as these numbers; anything else as it is."""
    if not _is_text(values.type) or len(values) < max(_FEW, 1):
        return values
    try:
        numbers = values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values
    found = numbers.to_numpy()
    if found[0] < 0 or not (found[1:] > found[:-1]).all():
        return values
    # Digits alone (Arrow also reads 0x1F) and as many as its number has: no zeros before them.
    data, _, lengths = _text_buffers(values)
    above = sum(len(found) - int(np.searchsorted(found, 10**power)) for power in range(1, 19))
    return numbers if data.max() <= ord("9") and lengths.sum() == len(found) + above else values


def _in_arrow(values: npt.NDArray[Any]) -> pa.Array:
    """Whole numbers or text as an Arrow array."""
    if values.dtype.kind != "U":
        return as_column(values)
    text = pa.array(values)
    # It ends text at its first NUL.
    whole = np.char.str_len(values).sum() == pc.sum(pc.utf8_length(text)).as_py()
    return text if whole else as_column(values.tolist())


def arrow_names(names: Strings) -> ArrowNames:
    """The names in Arrow, if they are not there yet."""
    return names if isinstance(names, ArrowNames) else ArrowNames(text_array(names, "names"))


Hashes = npt.NDArray[np.uint64]
_IN_ARROW = ContextVar("names_in_arrow", default=False)


@contextmanager
def names_in_arrow() -> Iterator[None]:
    """While it is open, long lists of names that are read are `ArrowNames`."""
    before = _IN_ARROW.set(True)
    try:
        yield
    finally:
        _IN_ARROW.reset(before)


def _text_buffers(
    text: pa.Array,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any], npt.NDArray[Any]]:
    """The bytes of all names and eight more; where each name begins, and its length."""
    _, offsets, data = text.buffers()
    kind = np.int64 if pa.types.is_large_string(text.type) else np.int32
    bounds = np.frombuffer(offsets, kind)[text.offset : text.offset + len(text) + 1]
    first, last = bounds[[0, -1]].tolist()
    held = np.zeros(last - first + 8, dtype=np.uint8)
    if last > first:
        held[:-8] = np.frombuffer(data, np.uint8)[first:last]
    return held, bounds[:-1] - first, np.diff(bounds)


def _hashes(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[Any], lengths: npt.NDArray[Any]
) -> Hashes:
    """Numbers that differ where names do, nearly always, and are spread evenly."""
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))  # from every byte on
    found = lengths.astype(np.uint64)
    rows: Any = slice(None)
    while len(starts):
        # What is behind the end of a name is shifted out.
        beyond = 8 - np.minimum(lengths, 8)
        word = found[rows] ^ (words[starts] << (8 * beyond).astype(np.uint64))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            word ^= word >> np.uint64(shift)
            word *= np.uint64(factor)
        found[rows] = word
        longer = np.flatnonzero(lengths > 8)
        rows = longer if isinstance(rows, slice) else rows[longer]
        starts, lengths = starts[longer] + 8, lengths[longer] - 8
    return found


def class_order(names: Iterable[str]) -> tuple[str, ...]:
    """Numeric order if all classes are numbers, else alphabetical."""
    listed = sorted(names)
    try:
        numbers = {name: float(name) for name in listed}
    except ValueError:
        return tuple(listed)
    # Python also takes words such as "nan" and "infinity" for numbers; a class so called is none.
    if not all(map(math.isfinite, numbers.values())):
        return tuple(listed)
    return tuple(sorted(listed, key=numbers.__getitem__))


PAIR = "\t"
"""Between an item and an annotator in the name of their pair."""


def pair_names(items: Strings, annotators: Strings) -> Strings:
    """Names of the pairs of an item and an annotator [M], by which they are matched."""
    return as_names([f"{item}{PAIR}{name}" for item, name in zip(items, annotators, strict=True)])


def owners(names: Strings) -> Strings:
    """The item of each pair, or the items themselves where names are of items."""
    if not len(names) or PAIR not in str(names[0]):
        return names
    return as_names([str(name).rpartition(PAIR)[0] for name in names])


KEEP_PREDICTED = (
    "; `edo data convert ANNOTATIONS OUT --items PREDICTIONS` keeps the items that have predictions"
)


def match(wanted: Strings, given: Strings, what: str, against: str) -> npt.NDArray[np.intp]:
    """Where each wanted id is among the given ones; both must hold the same ids."""
    if isinstance(wanted, ArrowNames) and isinstance(given, ArrowNames):
        found = wanted.positions_in(given)
        if found is not None:
            return found
    wanted, given = np.asarray(wanted), np.asarray(given)
    check_unique(wanted, f"items of {against}", "name each item once")
    if wanted is given or (len(wanted) == len(given) and bool((wanted == given).all())):
        return np.arange(len(wanted))
    check_unique(given, f"items of {what}", "name each item once")
    where = positions(wanted, given)
    missing = wanted[where < 0]
    if len(missing) or len(given) != len(wanted):
        extra = given[positions(given, wanted) < 0]
        pairs = len(wanted) and PAIR in str(wanted[0])
        if pairs:
            missing, extra = _shown_pairs(missing), _shown_pairs(extra)
        parts = []
        if len(missing):
            parts.append(f"{are(len(missing), len(wanted))} missing: {examples(missing)}")
        if len(extra):
            parts.append(f"{are(len(extra))} extra: {examples(extra)}")
        unpredicted = (len(extra) and what == "annotations" and not len(missing)) or (
            len(missing) and against == "annotations" and not len(extra)
        )
        of = "pairs of an item and an annotator" if pairs else "items"
        hint = "check the ids, or choose one split"
        if unpredicted:
            hint += "; score the items for all who labelled them" if pairs else KEEP_PREDICTED
        raise InputError(
            f"{what} and {against} hold different {of}: in {what} {'; '.join(parts)}"
            + look_alike([*missing, *extra]),
            hint,
        )
    return where


def positions(names: Strings, among: Strings) -> npt.NDArray[np.intp]:
    """Where each name is among others, which differ; −1 for those that are not there."""
    known = dict(zip(among.tolist(), range(len(among)), strict=True))
    return np.fromiter(map(known.get, names.tolist(), repeat(-1)), np.intp, len(names))


def spelling_key(name: str) -> str:
    """The same for names that people would take for the same."""
    with suppress(ValueError):
        if math.isfinite(number := float(name)):
            return as_name(number)
    return normalize("NFC", " ".join(name.split())).casefold()


def look_alike(names: Iterable[str]) -> str:
    """A note for a message on ids among these that are the same but for their spelling."""
    first: dict[str, str] = {}
    pairs = [
        f"{known[:40]!a} and {name[:40]!a}"
        for name in map(str, names)
        if (known := first.setdefault(spelling_key(name), name)) != name
    ]
    if not pairs:
        return ""
    more = f", and {len(pairs) - 1} more," if len(pairs) > 1 else ""
    return (
        f" ({pairs[0]}{more} differ only in blanks, case, how a number is written or Unicode"
        " normalisation)"
    )


def _shown_pairs(names: Strings) -> Strings:
    return as_names([str(name).replace(PAIR, " · ") for name in names])


def check_unique(names: Strings, what: str, hint: str) -> None:
    """Refuse a repeated name."""
    if not _differ(names):
        repeated = [name for name, count in Counter(names.tolist()).items() if count > 1]
        raise InputError(f"{what} are not unique: {examples(repeated)}", hint)


def _differ(names: Strings) -> bool:
    if isinstance(names, ArrowNames):
        return names.distinct
    return len(set(names.tolist())) == len(names)


def check_positions(positions: npt.ArrayLike, length: int) -> npt.NDArray[np.intp]:
    """Positions in a list of that length, each once; a mask becomes the positions it marks."""
    chosen = np.asarray(positions)
    if chosen.dtype == np.bool_ and chosen.shape == (length,):
        return np.flatnonzero(chosen)
    if not chosen.size:
        return np.empty(0, dtype=np.intp)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise InputError(
            f"positions are {chosen.dtype} of shape {chosen.shape}, not a list of whole numbers or"
            f" a mask of length {length}",
            "give whole numbers, or one True or False per item",
        )
    outside = chosen[(chosen < -length) | (chosen >= length)]
    if len(outside):
        raise InputError(
            f"positions {examples(outside)} are beyond the {length} items", "count from 0"
        )
    chosen = np.where(chosen < 0, chosen + length, chosen).astype(np.intp)
    if np.bincount(chosen).max() > 1:
        raise InputError(
            "a position is given twice, but each item can be taken once", "drop the repeated ones"
        )
    return chosen


def _no_name(value: object) -> InputError:
    return InputError(f"the gap {value!r} is not a name: text or a number", "name every entry")


_BLOCK = 1 << 20
_FEW = 1 << 14


def row_number(row: int) -> str:
    """The place of a row: rows of data are counted from 1, without the header."""
    return f"row {row + 1}"


class Encoded(NamedTuple):
    """A column of names as codes [n] into the distinct names, in order of first appearance."""

    codes: Codes
    names: Strings


def encode(column: pa.ChunkedArray | pa.Array, name: str) -> Encoded:
    """Codes and distinct names of an Arrow column; gaps and empty text get the code -1."""
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    try:
        codes, values, distinct = _dictionary(column, name)
        names = _stored_names(values, name)
    except EDOError:
        raise
    # Damaged files bring values that no clock or text can show; each library says it its own way.
    except (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"column {name!r} holds no text or numbers but a {column.type} that can't be read:"
            f" {error}",
            f"give one plain value per row as {name}",
        ) from error
    if not distinct and not _differ(names):
        merged, names = factorized(names)
        codes = _through(merged, codes)
    # Empty text and NaN can be entries of the dictionary; in a row each of them is a gap.
    gaps = names == ""
    if gaps.any():
        codes = _through(np.where(gaps, -1, np.arange(len(gaps))), codes)
    return _first_seen(codes, names)


def renamed(encoded: Encoded, names: Mapping[str, str]) -> Encoded:
    """The same rows with some names replaced; what is then called the same is the same."""
    if not names:
        return encoded
    merged, distinct = factorized(
        np.array([names.get(name, name) for name in encoded.names], dtype=object)
    )
    return Encoded(_through(merged, encoded.codes), distinct)


def factorized(names: Strings) -> tuple[npt.NDArray[np.intp], Strings]:
    """A number per name in order of first appearance, and the distinct names."""
    distinct = as_names(dict.fromkeys(names.tolist()))
    return positions(names, distinct), distinct


def recode(
    encoded: Encoded,
    names: Sequence[str],
    name: str,
    what: str,
    where: Callable[[int], str] = row_number,
    *,
    can_map: bool = False,
) -> Codes:
    """Codes into a declared list of names; a name outside it is an error.

    ``where`` describes the place of an entry for messages, ``can_map`` whether the caller takes a
    ``label_map``.
    """
    table = positions(encoded.names, np.asarray(names, dtype=object))
    unknown = encoded.names[table < 0]
    if len(unknown):
        row = int(np.flatnonzero(np.isin(encoded.codes, np.flatnonzero(table < 0)))[0])
        value = encoded.names[encoded.codes[row]]
        folded = {known.casefold(): known for known in names}
        close = get_close_matches(value.casefold(), folded, 1)
        mapped = f" (label_map={{{value!r}: {folded[close[0]]!r}}})" if close and can_map else ""
        guess = f"did you mean {folded[close[0]]!r}{mapped}? Else " if close else ""
        total = f" ({len(unknown)} such values in all)" if len(unknown) > 1 else ""
        raise InputError(
            f"{where(row)} has {name} {word(value)}, which is not among the {what}"
            f" {examples(names, 20)}{total}",
            f"{guess}declare it among the {what}, or correct the {name}",
            parameters=("label_map",),
        )
    return _through(table, encoded.codes)


def column_of(
    values: Any, name: str | None = None, where: Callable[[int], str] = row_number
) -> pa.ChunkedArray:
    """Any one-dimensional sequence as an Arrow column; mixed types are refused."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    if is_frame(values, series=True) and isinstance(values.dtype, pd.SparseDtype):
        values = np.asarray(values)
    try:
        if isinstance(values, str | bytes):
            raise TypeError(f"{values!r} is a single value")
        # Masked arrays, which have gaps, are another type.
        whole = type(values) is np.ndarray and values.dtype.kind in "iu" and values.ndim == 1
        column = as_column(values) if whole else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        which = "a column" if name is None else f"column {name!r}"
        raise InputError(
            f"{which} mixes types: {_mixture(values, where) or error}",
            "write the whole column as text or as numbers",
        ) from error
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def text_array(names: Iterable[str], what: str) -> pa.Array:
    """Strings as an Arrow array."""
    listed = list(names)
    check_text(listed, what)
    return as_column(listed)


def check_text(names: Iterable[str], what: str) -> None:
    """Refuse text that can't be written."""
    try:
        listed = list(names)
        if not "".join(listed).isascii():
            deque(map(str.encode, listed), maxlen=0)
    except UnicodeEncodeError as error:
        raise InputError(
            f"{word(error.object)} among {what} holds half a character, which is not valid Unicode",
            "repair it, for example with text.encode('utf-8', 'replace').decode()",
        ) from error


def _dictionary(column: pa.ChunkedArray, name: str) -> tuple[Codes, pa.Array, bool]:
    """Codes [n] into one array of values, and whether these surely differ as names."""
    codes: Codes
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        return np.full(len(column), -1, dtype=np.int32), pa.array([], pa.string()), True
    if pa.types.is_string_view(kind):
        column, kind = column.cast(pa.large_string()), pa.large_string()
    if not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or _is_text(kind)):
        raise InputError(
            f"column {name!r} holds {kind}, not text or numbers",
            f"give one plain value per row as {name}",
        )
    distinct = _is_text(kind) or pa.types.is_integer(kind)
    if pa.types.is_integer(column.type) and not column.null_count and len(column):
        numbers = stored_numbers(column, column.type.to_pandas_dtype(), 0)
        if bool((numbers[1:] > numbers[:-1]).all()):
            return np.arange(len(numbers), dtype=np.int32), pa.array(numbers), True
        if bool((numbers[1:] >= numbers[:-1]).all()):
            # Whole numbers that rise need no table of those that were there before.
            new = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
            times = np.diff(np.append(new, len(numbers)))
            codes = np.repeat(np.arange(len(new), dtype=np.int32), times)
            return codes, pa.array(numbers[new]), True
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    else:
        if column.type.index_type != pa.int32():
            # Small index types are too small once the dictionaries of all chunks are one.
            column = column.cast(pa.dictionary(pa.int32(), kind))
        # Arrow makes one dictionary of several, and looks into none that stands alone.
        several = column.num_chunks > 1 and not column.chunk(0).dictionary.equals(
            column.chunk(column.num_chunks - 1).dictionary
        )
        distinct = distinct and several
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return np.empty(0, dtype=np.int32), pa.array([], kind), True
    codes = stored_numbers(
        pa.chunked_array([chunk.indices for chunk in column.chunks]), np.int32, -1
    )
    values = column.chunk(0).dictionary
    if len(codes) > _BLOCK:
        # Arrow keeps what it needed to merge large dictionaries, unless told otherwise.
        del column
        pa.default_memory_pool().release_unused()
    return codes, values, distinct


def _stored_names(values: pa.Array, name: str) -> Strings:
    """The distinct values as strings; gaps are empty text."""
    plain = _is_text(values.type) or pa.types.is_integer(values.type)
    if plain and len(values) >= _FEW and _IN_ARROW.get() and not values.null_count:
        return ArrowNames(values)  # type: ignore[return-value]
    if pa.types.is_integer(values.type):
        values = values.cast(pa.string())
    if _is_text(values.type):
        if len(values) < _FEW:  # the quicker way imports pandas
            listed = values.to_pylist()
            return as_names(
                ["" if v is None else v for v in listed] if values.null_count else listed
            )
        stored: Strings = values.fill_null("").to_numpy(zero_copy_only=False)
        return stored
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        exact = np.finfo(numbers.dtype)
        large = numbers[np.isfinite(numbers) & (np.abs(numbers) > 2.0**exact.nmant)]
        if len(large):
            raise InputError(
                f"column {name!r} holds {large[0]:.0f} as a number that is exact to"
                f" {exact.precision} digits only, so different names may look equal",
                "store the column as text or as whole numbers",
            )
        listed = ["" if np.isnan(number) else as_name(number) for number in numbers]
    else:
        listed = ["" if value is None else as_name(value) for value in values.to_pylist()]
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result


def _first_seen(codes: Codes, names: Strings) -> Encoded:
    """The same rows, with names numbered in order of first appearance."""
    n, rows = len(names), len(codes)
    # Mostly they are in that order: each comes once before any comes again, or the codes rise.
    if (
        n
        and rows >= n
        and (
            (codes[:n] == np.arange(n)).all()
            or (codes[0] == 0 and codes[-1] == n - 1 and _rises_by_one(codes))
        )
    ):
        return Encoded(codes, names)
    first = np.full(n + 1, rows, dtype=np.int64)
    # Written back to front, so that the first row of each name stays; gaps go to the last entry.
    for start in reversed(range(0, rows, _BLOCK)):
        block = codes[start : start + _BLOCK]
        first[block[::-1]] = np.arange(start + len(block) - 1, start - 1, -1)
    order = np.argsort(first[:n], kind="stable")
    order = order[: int((first[:n] < rows).sum())]
    if len(order) == n and bool((order == np.arange(n)).all()):
        return Encoded(codes, names)
    renumber = np.full(n, -1, dtype=np.int32)
    renumber[order] = np.arange(len(order), dtype=np.int32)
    return Encoded(_through(renumber, codes), names[order])


def _rises_by_one(codes: Codes) -> bool:
    # Those that fall are the largest, without a sign.
    return int(np.diff(codes).view(np.uint32).max(initial=0)) <= 1


def _through(table: npt.NDArray[Any], codes: Codes) -> Codes:
    """The table's entry for each code; gaps stay gaps."""
    lookup = np.append(table, -1).astype(np.int32)
    result = np.empty(len(codes), dtype=np.int32)
    # In blocks, since numpy widens the codes that it looks up.
    for start in range(0, len(codes), _BLOCK):
        result[start : start + _BLOCK] = lookup[codes[start : start + _BLOCK]]
    return result


def _mixture(values: Any, where: Callable[[int], str]) -> str:
    """The first two values of different kinds, in words; empty where all are alike."""
    kinds = ((bool | np.bool_, "true or false"), (Number, "a number"), (str, "text"))
    first: tuple[str, int] | None = None
    known = isinstance(values, Sequence | np.ndarray) or is_frame(values, series=True)
    listed = values if known else ()
    for row, value in enumerate(listed):
        if value is None or is_pandas_gap(value):
            continue
        words = (text for types, text in kinds if isinstance(value, types))
        kind = next(words, type(value).__name__)
        if first is None:
            first = kind, row
        elif kind != first[0] and value == value:
            return f"{where(first[1])} holds {first[0]}, {where(row)} holds {kind}"
    return ""


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
