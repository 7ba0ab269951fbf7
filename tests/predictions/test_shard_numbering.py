"""A gap in numbered shards is noticed; names that do not count are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from edokit._errors import InputError
from edokit.predictions.shards import check_numbering


def check(*names: str) -> None:
    check_numbering([Path("folder") / name for name in names])


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["part-0.npz", "part-2.npz"], "from 0 to 2, without 1"),
        (["x-00000-of-00003.npz", "x-00001-of-00003.npz"], "of 3 shards there are 2"),
        (["x-0-of-3.npz"], "of 3 shards there are 1"),
        (["p1.npz", "p2.npz", "p4.npz"], "from 1 to 4, without 3"),
        (["s-008.npz", "s-000.npz", "s-001.npz"], "without 2, 3, 4 and more"),
        (["part-0-a9f.parquet", "part-1-a9f.parquet", "part-3-a9f.parquet"], "without 2"),
        (["x-1-of-3.npz", "x-3-of-3.npz"], "without 2"),
    ],
)
def test_a_missing_number_is_named(names: list[str], missing: str) -> None:
    with pytest.raises(InputError, match=missing):
        check(*names)


@pytest.mark.parametrize(
    "names",
    [
        ["only.npz"],
        ["a.npz", "b.npz", "d.npz"],
        ["part-0.npz", "part-1.npz", "part-2.npz"],
        ["part-1.npz", "part-2.npz", "part-10.npz", *(f"part-{k}.npz" for k in range(3, 10))],
        # Years, where each shard's first item stands, and names with two numbers do not count.
        ["2019.npz", "2021.npz"],
        ["from-0.npz", "from-1000.npz", "from-3000.npz"],
        ["1-1.npz", "2-3.npz"],
        ["x-1-of-2.npz", "x-2-of-2.npz"],
        ["x-0-of-2.npz", "x-1-of-2.npz"],
    ],
)
def test_other_names_are_taken_as_they_are(names: list[str]) -> None:
    check(*names)
