"""Annotations made up for tests, and what it means that two are the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from edokit import Annotations

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@st.composite
def long_tables(draw: st.DrawFn) -> pa.Table:
    """A long table with text, split, hard label and an attribute; each pair at most once."""

    def numbered(most: int) -> list[str]:
        """Any names, but no two that are spelling variants of one."""
        words = draw(st.lists(NAMES, min_size=1, max_size=most))
        return [f"<{k}{word}>" for k, word in enumerate(words)]

    items = numbered(5)
    people = numbered(4)
    classes = numbered(12)
    pairs = [(i, a) for i in range(len(items)) for a in range(len(people))]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    labels = draw(st.lists(st.sampled_from(classes), min_size=len(chosen), max_size=len(chosen)))

    def per(size: int, values: st.SearchStrategy[str]) -> list[str]:
        return draw(st.lists(values, min_size=size, max_size=size))

    texts = per(len(items), WORDS)
    homes = per(len(people), WORDS)
    splits = per(len(items), st.sampled_from(["train", "dev"]))
    hard = per(len(items), st.sampled_from(["", *labels]))
    return pa.table(
        {
            "item": [items[i] for i, _ in chosen],
            "annotator": [people[a] for _, a in chosen],
            "label": labels,
            "hard_label": [hard[i] for i, _ in chosen],
            "split": [splits[i] for i, _ in chosen],
            "text": [texts[i] for i, _ in chosen],
            "home": [homes[a] for _, a in chosen],
        }
    )


def said(annotations: Annotations) -> list[tuple[str, str, object]]:
    """Who said what about which item, sorted."""
    rows = []
    for row in range(len(annotations)):
        answer: object
        if annotations.label_codes is not None:
            answer = annotations.classes[annotations.label_codes[row]]
        else:
            assert annotations.label_probabilities is not None
            answer = tuple(annotations.label_probabilities[row].tolist())
        rows.append(
            (
                annotations.items[annotations.item_codes[row]],
                annotations.annotators[annotations.annotator_codes[row]],
                answer,
            )
        )
    return sorted(rows)


def known(annotations: Annotations) -> dict[str, dict[str, object]]:
    """What is known of each item and annotator besides, by name."""
    published = annotations.published
    return {
        "published": {}
        if published is None
        else {
            item: annotations.classes[code] if code >= 0 else None
            for item, code in zip(annotations.items, published, strict=True)
        },
        "texts": _by_name(annotations.items, annotations.texts),
        "splits": _by_name(annotations.items, annotations.splits),
        **{
            name: _by_name(annotations.annotators, values)
            for name, values in annotations.attributes.items()
        },
    }


def assert_same(one: Annotations, other: Annotations) -> None:
    """The same statements, in the same order of items, with the same classes and numbers."""
    assert one.items.tolist() == other.items.tolist()
    assert set(one.annotators) == set(other.annotators)
    assert one.classes == other.classes
    assert said(one) == said(other)
    assert known(one) == known(other)
    np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_array_equal(one.soft_labels, other.soft_labels)


def _by_name(names: Sequence[str], values: Sequence[str] | None) -> dict[str, object]:
    return {} if values is None else dict(zip(names, values, strict=True))
