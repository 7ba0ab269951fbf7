"""Checks of the paper's numbers find what is wrong with them, and would pass right ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit.metrics import bs_items, entropy, md_items
from reproduction import paper
from reproduction.lewidi2023 import checks as checks_data
from reproduction.lewidi2023 import paper_checks as checks_paper
from reproduction.lewidi2023.benchmark import discoveries
from reproduction.lewidi2023.checks import CHECKS, checks
from reproduction.lewidi2023.paper_checks import binary_entropy, logit
from reproduction.lewidi2023.study import Study

NOTHING = Study(None, None)


@given(st.floats(0.001, 6.0))
def test_the_logit_undoes_a_sigmoid(ce: float) -> None:
    assert logit(1 / (1 + math.exp(-ce))) == pytest.approx(ce, rel=1e-6)


@given(st.floats(0, 1))
def test_the_entropy_of_two_classes_is_that_of_the_metrics(p: float) -> None:
    assert binary_entropy(p) == pytest.approx(entropy(np.array([[1 - p, p]])), abs=1e-12)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_no_predictions_on_two_classes_break_the_distance_bound(
    pairs: list[tuple[float, float]],
) -> None:
    p, q = (np.array([[1 - pair[k], pair[k]] for pair in pairs]) for k in (0, 1))
    assert md_items(p, q).max() <= 2 + 1e-12
    assert bs_items(p, q).mean() >= md_items(p, q).mean() ** 2 / 2 - 1e-12


def test_the_papers_figures_fail_every_check_that_needs_no_data() -> None:
    found = {name: check(NOTHING) for name, check in CHECKS.items()}
    assert {name for name, one in found.items() if one.holds is None} == {
        "majority-class",
        "uniform-worse-than-constant",
        "annotators-per-item",
        "near-duplicates",
    }
    assert not any(value.holds for value in found.values())


def test_un_squashing_gives_the_known_cross_entropies() -> None:
    found = {
        (row["method"], row["dataset"]): checks_paper.unsquashed(row["method"], row["ce"])
        for row in paper.rows("benchmark")
    }
    for method, values in {
        "Soft-CE": (1.411, 3.381, 1.181, 5.254),
        "Top-5 Voting": (0.632, 0.262, 0.470, 0.676),
        "WEL": (0.569, 0.232, 0.359, 0.509),
        "EDO-Random": (0.572, 0.215, 0.344, 0.509),
    }.items():
        own = [found[method, d] for d in ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement")]
        assert own == pytest.approx(values, abs=6e-4)


def test_rows_without_diversity_differ_by_more_than_the_headline_effect() -> None:
    one = checks_paper.zero_diversity(NOTHING)
    assert "0.3606 and 0.7747" in one.finding
    assert "−0.0993" in one.finding


def test_six_of_eight_joint_rows_are_other_variants() -> None:
    one = checks_paper.mixed_variants(NOTHING)
    assert one.table is not None
    assert sum(row[3] != "all" for row in one.table.rows) == 6


def test_impossible_distances_are_soft_ces() -> None:
    one = checks_paper.distance_bounds(NOTHING)
    assert one.table is not None
    assert {row[0] for row in one.table.rows} == {"Soft-CE"}
    assert [row[5] for row in one.table.rows] == ["yes", "no", "no"]


def test_the_qualitative_example_of_the_text_is_recomputed() -> None:
    one = checks_paper.qualitative_figures(NOTHING)
    assert "an MD of 1.116, printed 0.3248" in one.finding


def test_right_figures_would_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [dict(row) for row in paper.rows("diversity_per_dataset")]
    for row in rows:
        if row["diversity"] == "preserve":
            twin = next(
                other
                for other in rows
                if other["diversity"] == "suppress"
                and (other["dataset"], other["objective"]) == (row["dataset"], row["objective"])
            )
            row.update({key: twin[key] for key in row if key.endswith("_without")})
    given = paper.rows

    def changed(name: str) -> Any:
        return tuple(rows) if name == "diversity_per_dataset" else given(name)

    monkeypatch.setattr(paper, "rows", changed)
    assert checks_paper.zero_diversity(NOTHING).holds is True


def test_all_checks_make_one_section_with_a_table_each() -> None:
    section = checks(NOTHING)
    assert len(section.words) == len(CHECKS)
    assert set(section.values["checks"]) == set(CHECKS)
    assert "check-squashed-ce" in section.tables


@pytest.mark.lewidi
def test_on_the_real_data_the_remaining_checks_speak(lewidi: Path) -> None:
    study = Study(lewidi, None)
    constant = checks_data.constant_scores(study, "HS-Brexit")
    assert constant is not None
    assert constant["ce"] == pytest.approx(0.388, abs=5e-4)
    assert constant["f1"] == pytest.approx(0.8929, abs=1e-4)
    assert checks_data.majority_class(study).holds is False
    implied = checks_data.implied_uniform(study)
    assert implied.table is not None
    assert sum(row[5] == "yes" for row in implied.table.rows) == 4
    per_item = checks_data.annotators_per_item(study)
    assert per_item.holds is True
    assert "2–8" in per_item.finding
    assert "difference of scope" in per_item.finding
    near = checks_data.near_duplicates(study)
    assert near.table is not None
    assert {row[0]: row[2] for row in near.table.rows}["MD-Agreement"] == 16
    assert "worse than answering the training mean" in checks_data.squashed_ce(study).finding


def test_the_range_of_the_abstract_fails_for_seven_of_sixteen_pairs_as_printed() -> None:
    one = checks_paper.reduction_range(NOTHING)
    assert one.holds is False
    assert one.table is not None
    assert len(one.table.rows) == 7
    assert "7 of 16 pairs" in one.finding


def test_the_appendix_correlation_is_recomputed_from_both_tables() -> None:
    one = checks_paper.correlated_changes(NOTHING)
    assert one.holds is False
    assert "0.49 over 6 rows and 0.76 over 24 rows" in one.finding


def test_fewer_comparisons_stay_clear_when_all_are_corrected() -> None:
    p_values = {("a", "ce"): 0.001, ("b", "ce"): 0.02, ("c", "ce"): 0.04, ("d", "ce"): 0.9}
    assert discoveries(p_values) == {("a", "ce"), ("b", "ce")}
    assert discoveries({("a", "ce"): 0.06}) == set()
    assert discoveries({}) == set()
