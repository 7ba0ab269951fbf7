"""Coefficients of agreement: what other packages say, intervals, and tables that say little."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from edokit import Annotations, agreement, diagnose
from edokit.analysis.agreement.coefficients import (
    CoefficientEstimate,
    WeightKind,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    observed_agreement,
)
from edokit.analysis.agreement.result import Agreement
from edokit.metrics import Interval
from tests.errors import raises_code

# Written by tools/agreement_reference.py, with other packages.
TABLES = json.loads((Path(__file__).parent / "reference.json").read_text())


def coefficient(found: Agreement, name: str) -> Interval:
    if name == "gwet_ac":
        name = "gwet_ac1" if found.weights == "nominal" else "gwet_ac2"
    interval: Interval = getattr(found, name)
    return interval


@pytest.mark.parametrize("weights", ["nominal", "linear", "quadratic"])
@pytest.mark.parametrize("number", range(len(TABLES)))
def test_each_coefficient_is_what_two_other_packages_say(number: int, weights: WeightKind) -> None:
    table = TABLES[number]
    annotations = Annotations.from_matrix(np.array(table["labels"], dtype=object), scale="ordinal")
    coefficients = agreement(annotations, weights=weights, min_shared=1)
    for name, sources in table[weights].items():
        assert len(sources) >= 2
        for value in sources.values():
            assert coefficient(coefficients, name).estimate == pytest.approx(value, abs=1e-9)


def test_coefficients_of_gwets_example() -> None:
    # Four raters, with gaps and an item of one label: Gwet (2014), Handbook of Inter-Rater
    # Reliability, table 4.2.
    rows = [
        [1, 1, None, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
        [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [None, 5, 5, 5], [None, None, 1, 1],
        [None, None, 3, None],
    ]  # fmt: skip
    coefficients = agreement(Annotations.from_matrix(np.array(rows, dtype=object)))
    assert coefficients.gwet_ac1 is not None
    assert coefficients.gwet_ac1.estimate == pytest.approx(0.77544, abs=5e-6)
    assert coefficients.fleiss_kappa.estimate == pytest.approx(0.76117, abs=5e-6)
    assert coefficients.krippendorff_alpha.estimate == pytest.approx(0.74342, abs=5e-6)
    assert coefficients.observed.estimate == pytest.approx(0.81818, abs=5e-6)
    assert np.isnan(coefficients.per_item[-1])


def votes(items: int, *, seed: int = 0) -> Annotations:
    rng = np.random.default_rng(seed)
    share = rng.beta(1, 1, (items, 1))
    return Annotations.from_matrix(np.where(rng.random((items, 4)) < share, "yes", "no"))


@pytest.mark.parametrize("formula", [observed_agreement, krippendorff_alpha, fleiss_kappa, gwet_ac])
def test_the_influence_of_an_item_is_what_leaving_it_out_changes(formula: Any) -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(5, [0.5, 0.3, 0.2], size=400).astype(float)
    counts[:50] = np.eye(3)[rng.integers(3, size=50)]
    weights = np.array([[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]])
    whole: CoefficientEstimate = formula(counts, weights)
    assert whole.influence.sum() == pytest.approx(0, abs=1e-9)
    for item in (0, 60, 200):
        without = formula(np.delete(counts, item, axis=0), weights).value
        assert whole.value - without == pytest.approx(whole.influence[item] / 400, rel=0.05)


def test_intervals_are_wider_where_items_come_in_groups() -> None:
    table = votes(60).to_table().to_pandas()
    single_coefficients = agreement(Annotations.from_table(table))
    copies = pd.concat(
        [table.assign(item=table["item"].astype(str) + f"-{k}", thread=table["item"]) for k in "ab"]
    )
    columns = {"group": "thread"}
    grouped = agreement(Annotations.from_table(copies, columns=columns))
    for name in ("krippendorff_alpha", "fleiss_kappa", "cohen_kappa", "gwet_ac1"):
        one = getattr(single_coefficients, name)
        two = getattr(grouped, name)
        assert two.estimate == pytest.approx(one.estimate, abs=0.01)
        # Copies of items tell nothing new.
        assert two.high - two.low == pytest.approx(one.high - one.low, rel=0.05)


def test_sets_are_compared_label_by_label() -> None:
    rng = np.random.default_rng(0)
    chosen = rng.random((30, 3, 2)) < 0.5
    rows = [
        {
            "item": i,
            "annotator": a,
            "label": json.dumps([n for n, c in zip("xy", chosen[i, a], strict=True) if c]),
        }
        for i in range(30)
        for a in range(3)
    ]
    coefficients = agreement(Annotations.from_table(pd.DataFrame(rows), scale="multi-label:x,y"))
    each = [agreement(Annotations.from_matrix(chosen[:, :, k].astype(int))) for k in range(2)]
    for name in ("krippendorff_alpha", "fleiss_kappa", "cohen_kappa", "gwet_ac1"):
        mean = np.mean([getattr(one, name).estimate for one in each])
        assert getattr(coefficients, name).estimate == pytest.approx(mean)


def test_an_annotator_who_answers_at_random_has_the_lowest_kappa() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(2, size=(80, 1)), 4, axis=1)
    labels[:, :3] ^= rng.random((80, 3)) < 0.05
    labels[:, 3] = rng.integers(2, size=80)
    coefficients = agreement(Annotations.from_matrix(labels, annotators=["a", "b", "c", "random"]))
    kappas = {row["annotator"]: row["cohen_kappa"].estimate for row in coefficients.per_annotator}
    assert min(kappas, key=lambda name: kappas[name] or 0) == "random"
    assert [row["others"] for row in coefficients.per_annotator] == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([["a"], ["b"], ["a"]], "two annotators"),
        ([["a", None], [None, "b"]], "two annotators"),
        ([["a", "a"], ["a", "a"]], "the same"),
    ],
)
def test_what_is_undefined_says_why(rows: list[list[str | None]], reason: str) -> None:
    annotations = Annotations.from_matrix(np.array(rows, dtype=object))
    coefficients = agreement(annotations)
    assert coefficients.krippendorff_alpha.estimate is None
    assert coefficients.cohen_kappa.estimate is None
    assert reason in str(coefficients.reason)
    assert diagnose(annotations, permutations=0).agreement["fleiss_kappa"]["estimate"] is None


def test_one_class_of_several_that_could_be_chosen_has_an_ac1_of_one() -> None:
    same = Annotations.from_matrix([["a", "a"]] * 20, classes=["a", "b"])
    coefficients = agreement(same)
    assert coefficients.gwet_ac1 == Interval(1.0, None, None)
    assert coefficients.fleiss_kappa == Interval(None, None, None)


def test_annotators_who_share_few_items_have_no_cohens_kappa() -> None:
    coefficients = agreement(votes(9))
    assert coefficients.cohen_kappa.estimate is None
    assert "share 10 items" in str(coefficients.cohen_reason)
    assert agreement(votes(9), min_shared=5).cohen_kappa.estimate is not None


def test_weights_need_an_order() -> None:
    with raises_code("unordered-scale", "weights='linear'"):
        agreement(votes(20), weights="linear")


def test_a_diagnosis_has_every_coefficient_with_its_interval() -> None:
    diagnosis = diagnose(votes(60), permutations=0)
    shown = diagnosis.to_dict()
    for name in ("krippendorff_alpha", "fleiss_kappa", "cohen_kappa", "gwet_ac1"):
        interval = shown["agreement"][name]
        assert interval["low"] < interval["estimate"] < interval["high"]
    assert shown["people"][0]["cohen_kappa"]["estimate"] is not None
    text = str(diagnosis)
    for name in ("Krippendorff's alpha", "Fleiss' kappa", "Cohen's kappa", "Gwet's AC1"):
        assert name in text


def test_the_table_has_the_coefficients_that_are_defined() -> None:
    labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", "a"]] * 10
    result = agreement(Annotations.from_matrix(labels), level=0.9)
    table = result.to_table()
    assert table.rows[0][0] == "Krippendorff's alpha"
    assert table.rows[0][1] == result.krippendorff_alpha.estimate
    assert "90 %" in table.notes[0]
    assert not agreement(Annotations.from_matrix([["a"], ["b"]])).to_table().rows
