"""Which shard is missing, where the shards' names count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from edokit._errors import InputError, examples

_DIGITS = re.compile(r"(\d+)")
_OF = re.compile(r"(\d+)-of-(\d+)")


def check_numbering(files: Sequence[Path]) -> None:
    """Refuse a gap in names that count from 0 or 1, as in ``part-0.npz, part-2.npz``.

    Names that differ in anything but one number are taken as they are. ``part-1-of-4`` also tells
    how many there must be.
    """
    names = [file.stem for file in files]
    of = [_OF.search(name) for name in names]
    if all(of):
        totals = {int(match[2]) for match in of if match}
        prefix = {name[: match.start()] for name, match in zip(names, of, strict=True) if match}
        found = sorted(int(match[1]) for match in of if match)
        if len(totals) == len(prefix) == 1 and found[0] <= 1:
            total = totals.pop()
            first = 0 if found[0] == 0 or found[-1] < total else 1
            # Of 1 … n−1 either the first or the last is missing; counting from 0 says the first.
            wanted = range(first, first + total)
            _refuse(files, sorted(set(wanted) - set(found)), f"{total} shards")
        return
    parts = [_DIGITS.split(name) for name in names]
    if len(parts) < 2 or len({len(part) for part in parts}) > 1:
        return
    columns = list(zip(*parts, strict=True))
    varied = [place for place, column in enumerate(columns) if len(set(column)) > 1]
    if len(varied) != 1 or varied[0] % 2 == 0:
        return
    numbers = sorted(int(text) for text in columns[varied[0]])
    by_one = any(after - before == 1 for before, after in pairwise(numbers))
    dense = numbers[-1] - numbers[0] < 2 * len(numbers) - 1
    # Years start elsewhere, and where each shard's first item stands grows by more than one.
    if numbers[0] > 1 or not (by_one or dense):
        return
    missing = sorted(set(range(numbers[0], numbers[-1] + 1)) - set(numbers))
    _refuse(files, missing, f"shards {numbers[0]} to {numbers[-1]}")


def _refuse(files: Sequence[Path], missing: Sequence[int], what: str) -> None:
    if missing:
        shown = examples(missing).replace("'", "")
        one = len(missing) == 1
        raise InputError(
            f"{files[0].parent} must hold all {what}, but {'number' if one else 'numbers'}"
            f" {shown} {'is' if one else 'are'} missing",
            "restore what is missing, or number the files without a gap",
        )
