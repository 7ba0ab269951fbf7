"""Names are strings everywhere, and things are matched by name, never by position."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from difflib import get_close_matches
from itertools import repeat
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import (
    EDOError,
    InputError,
    Place,
    counted,
    data_row,
    examples,
    is_text,
    open_decision,
    option,
    warn,
    word,
)
from edokit._types import Bools, Codes, Strings

_FEW_UNKNOWN = 5
"""With more labels outside the declared classes, the column is probably the wrong one."""


def as_name(value: object) -> str:
    """The value as a string: 7, 7.0 and "7" all become "7"; "007" remains different."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"the bytes {value!r} are not UTF-8 text",
                "decode the names first",
                code="invalid-unicode",
            ) from error
    if value is np.ma.masked or _is_gap(value):
        raise InputError(
            f"a name is missing: {value!r} is neither text nor a number",
            "name every entry",
            code="missing-value",
        )
    if (
        isinstance(value, float | np.floating | Decimal)
        and math.isfinite(value)
        and value == int(value)
    ):
        return str(int(value))
    return str(value)


def _is_gap(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def as_names(values: Iterable[object]) -> Strings:
    """Names as an array of strings."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(
            f"names are given as a list, not as {values!r}",
            "give one name per entry",
            code="single-value",
        )
    if isinstance(values, np.ndarray):
        values = values.ravel()
        if values.dtype.kind in "iu" and not isinstance(values, np.ma.MaskedArray):
            native = values.astype(values.dtype.newbyteorder("="), copy=False)
            return np.asarray(pa.array(native).cast(pa.string()).to_numpy(zero_copy_only=False))
        if values.dtype.kind == "U":
            return np.asarray(values.astype(object))
        if values.dtype.kind in "biu":
            values = values.tolist()
        elif (
            values.dtype.kind == "O" and pd.api.types.infer_dtype(values, skipna=False) == "string"
        ):
            return values.copy()
    listed = list(values)
    # Millions of names are mostly text or whole numbers, whose text is their name.
    if set(map(type, listed)) <= {str, int}:
        names = map(str, listed)
    else:
        names = map(as_name, listed)
    return np.fromiter(names, dtype=object, count=len(listed))


def class_order(names: Iterable[str]) -> tuple[str, ...]:
    """Numeric order if all classes are numbers, else alphabetical."""
    listed = sorted(names)
    try:
        numbers = {name: float(name) for name in listed}
    except ValueError:
        return tuple(listed)
    # float() also accepts words such as "nan" and "infinity"; a class of that name is text.
    if not all(map(math.isfinite, numbers.values())):
        return tuple(listed)
    return tuple(sorted(listed, key=numbers.__getitem__))


def positions(names: Strings, among: Strings) -> npt.NDArray[np.intp]:
    """The position of each name in a list of distinct names; −1 for a name that is not in it."""
    position_by_name = dict(zip(among.tolist(), range(len(among)), strict=True))
    return np.fromiter(map(position_by_name.get, names.tolist(), repeat(-1)), np.intp, len(names))


def spelling_key(name: str) -> str:
    """A key that is equal for names that people would read as the same name."""
    with suppress(ValueError):
        if math.isfinite(number := float(name)):
            return as_name(number)
    return normalize("NFC", " ".join(name.split())).casefold()


def _variants(names: Iterable[str], key: Callable[[str], str]) -> list[str]:
    """Pairs of a name and the first name with the same key, in words."""
    first_by_key: dict[str, str] = {}
    pairs = []
    for name in map(str, names):
        first_name = first_by_key.setdefault(key(name), name)
        if first_name != name:
            pairs.append(f"{word(first_name)} and {word(name)}")
    return pairs


def look_alike(names: Iterable[str]) -> str:
    """A note for messages about ids that differ in their spelling only."""
    variants = _variants(names, spelling_key)
    if not variants:
        return ""
    pairs = variants[0]
    if len(variants) > 1:
        pairs += f", and {len(variants) - 1} more,"
    return (
        f" ({pairs} differ only in blanks, case, how a number is written or Unicode normalisation)"
    )


def warn_variants(
    names: Strings, kind: str, *, case: bool = True, count_as: str = "different ones"
) -> None:
    """Warn about names that are nearly the same, which may be one name spelled in two ways.

    ``kind`` is the word for the names. Without ``case``, only blanks around names are ignored.
    """
    joined_names = "".join(names)
    if not case and joined_names.split() == [joined_names]:  # fast, and most ids have no blanks
        return
    keys = list(map(str.strip, names.tolist()))
    difference = "blanks"
    if case:
        keys = list(map(str.lower, keys))
        difference = "case or blanks"
    if len(set(keys)) == len(names):
        return
    key_by_name = dict(zip(names, keys, strict=True))
    variants = _variants(names, key_by_name.__getitem__)
    pairs = ", ".join(variants[:3])
    if len(variants) > 3:
        pairs += f" and {counted(len(variants) - 3, 'more pair')}"
    warn(f"{kind} that differ only in {difference} count as {count_as}: {pairs}")


def check_unique(names: Strings, what: str, hint: str) -> None:
    """Refuse a repeated name."""
    if len(set(names.tolist())) < len(names):
        repeated = names[pd.Index(names, dtype=object).duplicated()]
        raise InputError(
            f"{what} are not unique: {examples(dict.fromkeys(repeated))}",
            hint,
            code="duplicate-name",
        )


def check_positions(positions: npt.ArrayLike, length: int) -> npt.NDArray[np.intp]:
    """Distinct positions in a list of this length; a mask becomes its True positions."""
    places = np.asarray(positions)
    try:
        if places.size:
            places = np.arange(length)[places]
        else:
            places = np.empty(0, dtype=np.intp)
        if places.ndim != 1 or np.bincount(places, minlength=1).max() > 1:
            raise IndexError("each item can be taken once, by one number")
    except IndexError as error:
        raise InputError(
            f"positions are whole numbers below {length} or a mask of that length: {error}",
            "count from 0, and name each position once",
            code="invalid-positions",
        ) from error
    return places


class Encoded(NamedTuple):
    """A column of names as codes [n] into the distinct names, in order of first appearance.

    The code of a gap is -1.
    """

    codes: Codes
    names: Strings

    @property
    def row_names(self) -> Strings:
        """The name in each row [n]; empty text for a gap."""
        # The code -1 of a gap selects the last name.
        return np.append(self.names, "").astype(object)[self.codes]

    def rows_with(self, is_marked: Sequence[bool], *, gaps: bool = False) -> Bools:
        """Whether each row [n] has one of the marked names; with ``gaps``, also rows with a gap."""
        # The code -1 of a gap selects the last entry.
        return np.array([*is_marked, gaps], dtype=bool)[self.codes]


def encode(column: pa.ChunkedArray | pa.Array, name: str) -> Encoded:
    """Codes and distinct names of an Arrow column; gaps and empty text get the code -1."""
    kind = plain_type(column.type)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        raise InputError(
            f"column {name!r} holds {kind}, not text or numbers",
            f"give one plain value per row as {name}",
            code="unsupported-type",
        )
    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = column.to_numpy()
        if (numbers[1:] > numbers[:-1]).all():  # as ids mostly are
            return Encoded(np.arange(len(numbers), dtype=np.int32), as_names(numbers))
    try:
        if pa.types.is_string_view(kind):
            column = column.cast(pa.large_string())
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        # Small index types are too small once the dictionaries of all chunks are one.
        column = column.cast(pa.dictionary(pa.int32(), column.type.value_type))
        array = column
        if isinstance(column, pa.ChunkedArray):
            array = column.combine_chunks()
        texts = _texts(array.dictionary, name)
    except EDOError:
        raise
    # Damaged files contain impossible dates and text; each library raises another exception.
    except (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"column {name!r} has the type {column.type}, which can't be read as text or numbers:"
            f" {error}",
            f"give one plain value per row as {name}",
            code="unsupported-type",
        ) from error
    # Different values may have one name, and a dictionary may repeat one; None has the code -1.
    texts[texts == ""] = None
    text_codes, names = pd.factorize(texts)
    codes = _look_up(text_codes, array.indices.fill_null(-1).to_numpy(zero_copy_only=False))
    order = pd.unique(codes[codes >= 0])
    rank = np.full(len(names), -1, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return Encoded(_look_up(rank, codes), names[order])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column; for a dictionary-encoded column, the type of its values."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _texts(values: pa.Array, name: str) -> Strings:
    """The names of values; None for gaps."""
    if pa.types.is_integer(values.type):
        values = values.cast(pa.string())
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        texts: Strings = values.to_numpy(zero_copy_only=False, writable=True)
        return texts
    listed = values.to_pylist()
    if pa.types.is_floating(values.type):
        listed = values.to_numpy(zero_copy_only=False)
        float_type = np.finfo(listed.dtype)
        large = listed[np.isfinite(listed) & (np.abs(listed) > 2.0**float_type.nmant)]
        if len(large):
            raise InputError(
                f"column {name!r} holds {large[0]:.0f} as a number that is exact to"
                f" {float_type.precision} digits only, so different names may look equal",
                "store the column as text or as whole numbers",
                code="inexact-number",
            )
    names = np.empty(len(listed), dtype=object)
    for position, value in enumerate(listed):
        if value is not None and value == value:  # NaN differs from itself
            names[position] = as_name(value)
    return names


def renamed(encoded: Encoded, names: Mapping[str, str]) -> Encoded:
    """The same rows with some names replaced; names that become equal are merged."""
    if not names:
        return encoded
    codes, distinct = pd.factorize(as_names([names.get(name, name) for name in encoded.names]))
    return Encoded(_look_up(codes, encoded.codes), distinct)


def one_spelling(encoded: Encoded, kind: str) -> Encoded:
    """The same rows; of names that differ only in case or blanks, the most frequent is used."""
    warn_variants(encoded.names, kind, count_as="one")
    counts = np.bincount(encoded.codes[encoded.codes >= 0], minlength=len(encoded.names))
    main_names: dict[str, str] = {}
    for code in np.argsort(-counts, kind="stable"):
        name = str(encoded.names[code]).strip()
        main_names.setdefault(name.lower(), name)
    main_by_name = {}
    for name in map(str, encoded.names):
        main_by_name[name] = main_names[name.strip().lower()]
    return renamed(encoded, main_by_name)


def recode(
    encoded: Encoded,
    classes: Sequence[str],
    noun: str,
    place: Place = data_row,
    *,
    can_map: bool = False,
) -> Codes:
    """Labels as codes into the declared classes; a label outside them is refused.

    ``noun`` is the word for a label in messages (``label`` or ``hard label``), ``place`` says where
    an entry is, and ``can_map`` whether the caller takes a ``label_map``.
    """
    class_codes = positions(encoded.names, np.asarray(classes, dtype=object))
    if (class_codes >= 0).all():
        return _look_up(class_codes, encoded.codes)
    unknown = np.flatnonzero(class_codes < 0)
    row = int(np.flatnonzero(np.isin(encoded.codes, unknown))[0])
    label = encoded.names[encoded.codes[row]]
    message = (
        f"{place(row)} has {noun} {word(label)}, which is not among the classes"
        f" {examples(classes, 20)}"
    )
    if len(unknown) > 1:
        message += f" ({len(unknown)} such values in all)"
    hint = f"declare it among the classes, or correct the {noun}"
    class_by_key = {name.casefold(): name for name in classes}
    close_keys = get_close_matches(label.casefold(), class_by_key, 1)
    if close_keys:
        close = class_by_key[close_keys[0]]
        if can_map:
            label_map = {label: close}
            hint = f"did you mean {close!r} ({option('label_map', label_map)})? Else {hint}"
            raise open_decision(message, hint, code="unknown-class", label_map=label_map)
        hint = f"did you mean {close!r}? Else {hint}"
    has_few_unknown = len(unknown) <= _FEW_UNKNOWN
    # An option that names somebody's text would show it.
    if can_map and noun == "label" and has_few_unknown and not is_text(label):
        hint += f", or drop it by {option('drop_label', [label])}"
        raise open_decision(message, hint, code="unknown-class", drop_label=[label])
    raise InputError(message, hint, code="unknown-class")


def column_of(values: object, name: str, place: Place = data_row) -> pa.ChunkedArray:
    """Any one-dimensional sequence as an Arrow column; mixed types are refused."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        column = values
    else:
        try:
            if isinstance(values, str | bytes):
                raise TypeError(f"{values!r} is a single value")
            column = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            mixture = _mixture(values, place)
            if mixture:
                problem = f"mixes types: {mixture}"
            else:
                problem = f"is not a column of values: {error}"
            raise InputError(
                f"column {name!r} {problem}",
                "write the whole column as text or as numbers",
                code="mixed-types",
            ) from error
    if isinstance(column, pa.ChunkedArray):
        return column
    return pa.chunked_array([column])


def _mixture(values: object, place: Place) -> str:
    """The first row of each type, in words; empty if all values have the same type."""
    if not isinstance(values, Sequence | np.ndarray | pd.Series):
        return ""
    row_by_type: dict[str, int] = {}
    for row, value in enumerate(values):
        if not _is_gap(value):
            row_by_type.setdefault(type(value).__name__, row)
    if len(row_by_type) < 2:
        return ""
    return ", ".join(f"{place(row)} holds {kind}" for kind, row in row_by_type.items())


def text_array(names: Iterable[str], what: str) -> pa.Array:
    """Strings as an Arrow array."""
    try:
        return pa.array(list(names), pa.string())
    except UnicodeEncodeError as error:
        raise InputError(
            f"{word(error.object)} among {what} holds half a character, which is not valid Unicode",
            "repair it, for example with text.encode('utf-8', 'replace').decode()",
            code="invalid-unicode",
        ) from error


def _look_up(table: npt.NDArray[np.integer], codes: Codes) -> Codes:
    """The entry of the table for each code; the code −1 of a gap stays −1."""
    return np.append(table, -1).astype(np.int32)[codes]
