"""Names are strings everywhere, and things are matched by name, never by position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from edokit.errors import InputError, examples

Strings = npt.NDArray[np.object_]
"""Names as Python strings [n]."""
Codes = npt.NDArray[np.int32]
"""Positions in a list of names; -1 stands for a gap."""


class Encoded(NamedTuple):
    """A column of names as codes [n] into the distinct names, in order of first appearance."""

    codes: Codes
    names: Strings


def as_name(value: object) -> str:
    """The string that stands for a value: 7, 7.0 and "7" are all "7", "007" is another."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def as_names(values: Iterable[object]) -> Strings:
    """Names as an array of strings."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    names = [as_name(value) for value in values]
    result = np.empty(len(names), dtype=object)
    result[:] = names
    return result


def encode(column: pa.ChunkedArray | pa.Array, name: str) -> Encoded:
    """Codes and distinct names of an Arrow column; gaps and empty text get the code -1."""
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if not pa.types.is_dictionary(column.type):
        kind = column.type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise InputError(
                f"column {name!r} must hold text or numbers, but holds {kind}",
                f"give one plain value per row as {name}",
            )
        if pa.types.is_null(kind):
            column = column.cast(pa.string())
        column = column.dictionary_encode()
    # One chunk, one dictionary: chunks of a CSV each bring their own.
    chunk = column.combine_chunks()
    values = chunk.dictionary.to_numpy(zero_copy_only=False)
    text = pa.types.is_string(chunk.type.value_type) or pa.types.is_large_string(
        chunk.type.value_type
    )
    stored = values if text else as_names(values)
    codes: Codes = pc.fill_null(chunk.indices, -1).to_numpy(zero_copy_only=False)
    codes = codes.astype(np.int32, copy=False)
    # Empty text and NaN can be entries of the dictionary; in a row each of them is a gap.
    gaps = np.asarray(pd.isna(values)) | (stored == "")
    if gaps.any():
        codes = np.append(np.where(gaps, -1, np.arange(len(gaps))), -1).astype(np.int32)[codes]
    return first_seen(codes, stored)


def first_seen(codes: Codes, names: Strings) -> Encoded:
    """The same rows, with equal names merged and names numbered in order of first appearance."""
    merged, distinct = pd.factorize(names, use_na_sentinel=False)
    if len(distinct) < len(names):
        codes = np.where(codes >= 0, merged.astype(np.int32)[codes], np.int32(-1))
    present = codes[codes >= 0] if (codes < 0).any() else codes
    order = pd.unique(present)
    renumber = np.full(len(distinct) + 1, -1, dtype=np.int32)
    renumber[order] = np.arange(len(order), dtype=np.int32)
    kept = np.empty(len(order), dtype=object)
    kept[:] = np.asarray(distinct, dtype=object)[order]
    return Encoded(renumber[codes], kept)


def recode(encoded: Encoded, names: Sequence[str], name: str, what: str) -> Codes:
    """Codes into a declared list of names; a name outside it is an error."""
    table = pd.Index(np.asarray(names, dtype=object)).get_indexer(
        pd.Index(encoded.names, dtype=object)
    )
    unknown = encoded.names[table < 0]
    if len(unknown):
        row = int(np.flatnonzero(np.isin(encoded.codes, np.flatnonzero(table < 0)))[0])
        raise InputError(
            f"every {name} must be one of the declared {what} {', '.join(map(repr, names))},"
            f" but row {row + 1} has {str(unknown[0])!r}"
            + (f" ({len(unknown)} such values in all)" if len(unknown) > 1 else ""),
            f"declare it among the {what}, or correct the {name}",
        )
    lookup = np.append(table, -1).astype(np.int32)
    codes: Codes = lookup[encoded.codes]
    return codes


def class_order(names: Iterable[str]) -> tuple[str, ...]:
    """Numeric order if all classes are numbers, else alphabetical."""
    listed = sorted(names)
    try:
        return tuple(sorted(listed, key=float))
    except ValueError:
        return tuple(listed)


def match(wanted: Strings, given: Strings, what: str, against: str) -> npt.NDArray[np.intp]:
    """Where each wanted id stands among the given ones; both must hold the same ids."""
    index = pd.Index(given, dtype=object)
    where = index.get_indexer(pd.Index(wanted, dtype=object))
    missing = wanted[where < 0]
    if len(missing) or len(given) != len(wanted):
        extra = given[pd.Index(wanted, dtype=object).get_indexer(index) < 0]
        parts = []
        if len(missing):
            parts.append(f"{len(missing)} of {len(wanted)} are missing: {examples(missing)}")
        if len(extra):
            parts.append(f"{len(extra)} are extra: {examples(extra)}")
        raise InputError(
            f"{what} and {against} must hold the same items, but in {what} " + "; ".join(parts),
            "check the ids, or choose one split with --split",
        )
    result: npt.NDArray[np.intp] = where
    return result


def check_unique(names: Strings, what: str, hint: str) -> None:
    """Refuse a name that stands twice."""
    if len(set(names.tolist())) < len(names):
        index = pd.Index(names, dtype=object)
        repeated = index[index.duplicated()].unique()
        raise InputError(f"{what} must differ, but {examples(repeated)} stand twice", hint)


def column_of(values: Any) -> pa.ChunkedArray:
    """Any one-dimensional sequence as an Arrow column; mixed types are refused."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    try:
        return pa.chunked_array([pa.array(values, from_pandas=True)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"each column must hold one type of value, but this one does not: {error}",
            "write the whole column as text or as numbers",
        ) from error
