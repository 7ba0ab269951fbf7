"""An item in two shards is found through eight bytes per item, and never by mistake."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edokit.predictions.shards import check_not_repeated
from edokit.rows import Keys, Rows
from tests.errors import raises_code

NAMES = st.lists(st.text(min_size=1, max_size=3), max_size=8, unique=True)


def check(parts: list[Rows], names: list[str]) -> None:
    check_not_repeated([part.keys for part in parts], names, parts.__getitem__)


@given(st.lists(NAMES, min_size=2, max_size=5))
def test_an_item_in_two_shards_is_refused_and_none_else(shards: list[list[str]]) -> None:
    parts = [Rows.from_names(shard) for shard in shards]
    names = [f"shard-{number}" for number in range(len(parts))]
    if len({name for shard in shards for name in shard}) < sum(map(len, shards)):
        with raises_code("duplicate-name", "shard-"):
            check(parts, names)
    else:
        check(parts, names)


def test_the_shards_and_the_items_are_named() -> None:
    parts = [Rows.from_names(list("ab")), Rows.from_names(list("cd")), Rows.from_names(list("exb"))]
    with raises_code("duplicate-name", "1 item", "'b'"):
        check(parts, ["one", "two", "three"])


def test_two_items_with_one_key_are_two_items() -> None:
    parts = [Rows.from_names(list("ab")), Rows.from_names(list("cd"))]
    keys: Keys = np.array([1, 5], dtype=np.uint64)
    check_not_repeated([keys, keys], ["one", "two"], parts.__getitem__)
