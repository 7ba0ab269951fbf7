"""Exports of annotation tools, damaged in any way."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""Parsed JSON."""
Place = tuple[str | int, ...]
"""The keys and positions that lead to a value."""


def anything(keys: Iterable[str], words: Sequence[str]) -> st.SearchStrategy[Json]:
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


def places(value: Json, path: Place = ()) -> list[Place]:
    """Every place in parsed JSON."""
    paths: list[Place] = []
    if path:
        paths.append(path)
    entries: Iterable[tuple[str | int, Json]] = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    for key, inner in entries:
        paths += places(inner, (*path, key))
    return paths


@st.composite
def damaged(draw: st.DrawFn, exports: Sequence[Json], other: st.SearchStrategy[Json]) -> Json:
    """One of the exports, with some of its values replaced or removed."""
    data = copy.deepcopy(draw(st.sampled_from(exports)))
    for _ in range(draw(st.integers(1, 4))):
        *path, final_key = draw(st.sampled_from(places(data)))
        inner = data
        for key in path:
            inner = inner[key]
        if draw(st.booleans()):
            inner[final_key] = draw(other)
        else:
            del inner[final_key]
        if not data:
            break
    return data
