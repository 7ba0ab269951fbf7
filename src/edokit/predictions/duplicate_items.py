"""Whether an item stands in two shards, at eight bytes per item, in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import InputError, examples
from edokit._types import Strings

Hashes = npt.NDArray[np.uint64]

# Hashes that are compared in one go.
_BLOCK = 2**22


def hashes(items: Strings) -> Hashes:
    """A number per item id, sorted [N]; the same on every machine."""
    numbers: Hashes = pd.util.hash_array(np.asarray(items, dtype=object), categorize=False)
    numbers.sort()
    return numbers


def check_once(
    shards: Sequence[Hashes | Path], names: Sequence[str], items_of: Callable[[int], Strings]
) -> None:
    """Refuse an item that stands in two shards.

    ``shards`` are the hashes of each shard (arrays, or files that ``write`` wrote), ``names`` what
    the shards are called; ``items_of`` reads the ids of one again, where hashes are alike.
    """
    if len(shards) < 2:
        return
    total = sum(map(_length, shards))
    parts = max(1, -(-total // _BLOCK))
    # Hashes are spread evenly, so equal ranges of them hold about equally many.
    edges = [np.uint64(k * (2**64 // parts)) for k in range(parts)]
    cuts = [
        [*np.searchsorted(_piece(shard, 0, length), edges).tolist(), length]
        for shard, length in zip(shards, map(_length, shards), strict=True)
    ]
    for k in range(parts):
        pieces = [_piece(shard, *cut[k : k + 2]) for shard, cut in zip(shards, cuts, strict=True)]
        merged = np.concatenate(pieces)
        merged.sort()
        twice = merged[1:][merged[1:] == merged[:-1]]
        if len(twice):
            _refuse(twice, pieces, names, items_of)


def write(numbers: Hashes, path: Path) -> None:
    """Keep hashes in a file."""
    numbers.tofile(path)


def _length(shard: Hashes | Path) -> int:
    return shard.stat().st_size // 8 if isinstance(shard, Path) else len(shard)


def _piece(shard: Hashes | Path, start: int, stop: int) -> Hashes:
    if not isinstance(shard, Path):
        return shard[start:stop]
    # Read, not mapped: a thousand shards would be a thousand open files.
    return np.fromfile(shard, dtype=np.uint64, count=stop - start, offset=8 * start)


def _refuse(
    twice: Hashes,
    pieces: Sequence[Hashes],
    names: Sequence[str],
    items_of: Callable[[int], Strings],
) -> None:
    for number in np.unique(twice):
        holders = [at for at, piece in enumerate(pieces) if number in piece]
        first = set(items_of(holders[0]))
        for later in holders[1:]:
            # Two ids may have one hash; only the ids themselves tell.
            again = sorted(first.intersection(items_of(later)))
            if again:
                raise InputError(
                    f"an item must stand in one shard, but {names[later]} repeats {len(again)} of"
                    f" {names[holders[0]]}: {examples(again)}",
                    "keep each item in one shard",
                )
