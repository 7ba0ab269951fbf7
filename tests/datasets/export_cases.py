"""Exports of annotation tools, damaged in any way."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st


def anything(keys: Iterable[str], words: Sequence[str]) -> st.SearchStrategy[Any]:
    """Parsed JSON of any kind, with these keys and some of these words in it."""
    scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3)
    return st.recursive(
        scalars | st.sampled_from(words),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(sorted(keys)), inner, max_size=4)
        ),
        max_leaves=12,
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in parsed JSON."""
    found = [path] if path else []
    inside = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else inside:
        found += places(inner, (*path, key))
    return found


@st.composite
def damaged(draw: st.DrawFn, exports: Sequence[Any], other: st.SearchStrategy[Any]) -> Any:
    """One of the exports, some of its places replaced by others, or missing."""
    data = copy.deepcopy(draw(st.sampled_from(exports)))
    for _ in range(draw(st.integers(1, 4))):
        *path, last = draw(st.sampled_from(places(data)))
        inner = data
        for key in path:
            inner = inner[key]
        if draw(st.booleans()):
            inner[last] = draw(other)
        else:
            del inner[last]
        if not data:
            break
    return data
