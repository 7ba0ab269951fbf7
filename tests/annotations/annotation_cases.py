"""Generated annotations for tests, and a check that two are the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

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
        """Arbitrary names without spelling variants of one another."""
        words = draw(st.lists(NAMES, min_size=1, max_size=most))
        return [f"<{k}{word}>" for k, word in enumerate(words)]

    items = numbered(5)
    people = numbered(4)
    classes = numbered(12)
    all_pairs = list(product(range(len(items)), range(len(people))))
    pairs = draw(st.lists(st.sampled_from(all_pairs), min_size=1, unique=True))
    labels = draw(st.lists(st.sampled_from(classes), min_size=len(pairs), max_size=len(pairs)))

    def per(size: int, values: st.SearchStrategy[str]) -> list[str]:
        return draw(st.lists(values, min_size=size, max_size=size))

    texts = per(len(items), WORDS)
    homes = per(len(people), WORDS)
    splits = per(len(items), st.sampled_from(["train", "dev"]))
    hard = per(len(items), st.sampled_from(["", *labels]))
    return pa.table(
        {
            "item": [items[i] for i, _ in pairs],
            "annotator": [people[a] for _, a in pairs],
            "label": labels,
            "hard_label": [hard[i] for i, _ in pairs],
            "split": [splits[i] for i, _ in pairs],
            "text": [texts[i] for i, _ in pairs],
            "home": [homes[a] for _, a in pairs],
        }
    )


def said(annotations: Annotations) -> list[tuple[str, str, object]]:
    """Item, annotator and label of each annotation, sorted."""
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
    """Other columns of items and annotators, by column and name."""
    published: dict[str, object] = {}
    if annotations.published is not None:
        for item, code in zip(annotations.items, annotations.published, strict=True):
            published[item] = None
            if code >= 0:
                published[item] = annotations.classes[code]
    columns = {
        "published": published,
        "texts": _by_name(annotations.items, annotations.texts),
        "splits": _by_name(annotations.items, annotations.splits),
    }
    for name, values in annotations.attributes.items():
        columns[name] = _by_name(annotations.annotators, values)
    return columns


def assert_same(annotations: Annotations, expected: Annotations) -> None:
    """The same labels, in the same order of items, with the same classes and numbers."""
    assert annotations.items.tolist() == expected.items.tolist()
    assert set(annotations.annotators) == set(expected.annotators)
    assert annotations.classes == expected.classes
    assert said(annotations) == said(expected)
    assert known(annotations) == known(expected)
    np.testing.assert_array_equal(annotations.counts, expected.counts)
    np.testing.assert_array_equal(annotations.soft_labels, expected.soft_labels)


def _by_name(names: Sequence[str], values: Sequence[str] | None) -> dict[str, object]:
    if values is None:
        return {}
    return dict(zip(names, values, strict=True))
