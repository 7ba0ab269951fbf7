"""Pairs of codes, such as (item, annotator): their cells in a table, and which come again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._types import Codes

_BLOCK = 1 << 20


def cells(rows: Codes, columns: Codes, width: int) -> npt.NDArray[np.int64]:
    """The cell of each pair [M] in a table with so many columns, counted row by row."""
    result: npt.NDArray[np.int64] = rows.astype(np.int64)
    result *= width
    result += columns
    return result


def repeated(rows: Codes, columns: Codes, width: int) -> npt.NDArray[np.bool_]:
    """Whether the same pair stands earlier in the list [M]."""
    again = np.zeros(len(rows), dtype=bool)
    # Sorting in place says whether any pair comes again; only then it is asked which.
    pairs = cells(rows, columns, width)
    pairs.sort()
    twice = np.unique(pairs[1:][pairs[1:] == pairs[:-1]])
    if not len(twice):
        return again
    del pairs
    found = []
    for start in range(0, len(rows), _BLOCK):
        stop = start + _BLOCK
        block = cells(rows[start:stop], columns[start:stop], width)
        place = np.searchsorted(twice, block)
        place[place == len(twice)] = 0
        found.append(start + np.flatnonzero(twice[place] == block))
    suspects = np.concatenate(found)
    pairs = cells(rows[suspects], columns[suspects], width)
    order = np.argsort(pairs, kind="stable")
    again[suspects[order[1:]]] = pairs[order[1:]] == pairs[order[:-1]]
    return again
