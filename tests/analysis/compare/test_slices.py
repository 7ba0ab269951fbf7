"""Methods by the values of an item column."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pool_cases import sample

import edokit
from edokit import Annotations
from edokit.analysis.scores.slices import FEWEST_ITEMS
from edokit.metrics import ce
from tests.errors import raises_code


def with_columns(annotations: Annotations, **columns: Any) -> Annotations:
    """The same annotations with item columns, a value per item each."""
    table = annotations.to_table().to_pandas()
    at = {str(item): i for i, item in enumerate(annotations.items)}
    for name, values in columns.items():
        table[name] = [values[at[str(item)]] for item in table["item"]]
    return Annotations.from_table(table, classes=annotations.classes)


def three_langs(items: int = 240) -> tuple[Any, Annotations]:
    """Probabilities of items in three languages."""
    predictions, people = sample(items)
    langs = np.array(["en", "it", "nl"])[np.arange(items) % 3]
    return predictions.probabilities[:, 0].astype(float), with_columns(people, lang=langs)


def test_each_slice_has_the_metrics_of_its_items() -> None:
    p, people = three_langs()
    evaluation = edokit.evaluate(p, people, by="lang", samples=100, order="annotations")
    assert [(one.column, one.value, one.items) for one in evaluation.slices] == [
        ("lang", "en", 80),
        ("lang", "it", 80),
        ("lang", "nl", 80),
    ]
    for one in evaluation.slices:
        part = people.item_column("lang") == one.value
        single_evaluation = edokit.evaluate(
            p[part], people.take(part), samples=100, order="annotations"
        )
        assert one.scores[0].ce == pytest.approx(single_evaluation.metrics["ce"])
        assert one.floor == pytest.approx(single_evaluation.ce_floor)
        assert (
            one.scores[0].intervals["ce"][0] < one.scores[0].ce < one.scores[0].intervals["ce"][1]
        )
        # The constant is the same everywhere, not one per slice.
        constant = np.tile(people.soft_labels.mean(axis=0), (80, 1))
        expected = ce(constant, np.asarray(people.soft_labels)[part])
        assert one.score("constant").ce == pytest.approx(expected)
    content = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert [one["value"] for one in content["slices"]] == ["en", "it", "nl"]


def test_missing_values_are_a_slice_and_small_slices_have_no_intervals() -> None:
    p, people = three_langs(60)
    values = ["a"] * 40 + ["b"] * 5 + [""] * 15
    by_source = with_columns(people, source=values)
    evaluation = edokit.evaluate(p, by_source, by="source", samples=100, order="annotations")
    assert [(one.value, one.items) for one in evaluation.slices] == [
        ("a", 40),
        ("b", 5),
        (None, 15),
    ]
    assert evaluation.slices[2].name == "source: (missing)"
    assert FEWEST_ITEMS > 5
    assert evaluation.slices[1].scores[0].intervals == {}


def test_columns_that_make_no_slices_are_refused() -> None:
    p, people = three_langs(60)
    people = with_columns(people, user=[f"user-{i}" for i in range(60)])
    with raises_code("too-many-values", "'user'", "60"):
        edokit.evaluate(p, people, by="user")
    with raises_code("missing-column", "'langs'", "'lang'") as error:
        edokit.evaluate(p, people, by=["langs"])
    assert "by" in str(error.value)
