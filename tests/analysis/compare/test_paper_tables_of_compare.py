"""Comparisons for a paper: any metric, several seeds, corrected tests, LaTeX."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pool_cases import sample

from edokit import compare
from edokit.analysis.compare.options import CompareOptions
from edokit.analysis.compare.result import Comparison
from edokit.analysis.sequential import holm
from edokit.metrics import compute_metrics, paired_test
from edokit.metrics.paired_metrics import paired_metric_test
from edokit.metrics.resampling import Resampling
from edokit.scales import NOMINAL
from tests.errors import raises_code

METRICS = ("ce", "macro_f1", "ece", "entropy_correlation", "jsd")


@pytest.fixture(scope="module")
def samples() -> tuple[tuple, tuple]:
    return sample(60), sample(50, seed=1, prefix="new")


@pytest.fixture(scope="module")
def found(samples: tuple) -> Comparison:
    dev, test = samples
    return compare(*dev, *test, methods=["greedy", "edo"], metrics=METRICS, seeds=2, samples=200)


def test_every_registered_metric_has_its_value(samples: tuple) -> None:
    dev, test = samples
    once = compare(*dev, *test, methods=["greedy"], metrics=METRICS, samples=0)
    p = once.fitted["greedy"].predict_proba(test[0])
    labels = [np.asarray(test[1].soft_labels), np.asarray(test[1].hard_labels())]
    expected = compute_metrics(np.asarray(p), *labels, metrics=METRICS)
    assert {name: once["greedy"].metrics[name] for name in METRICS} == pytest.approx(expected)
    with raises_code("unknown-choice", "metrics"):
        compare(*dev, *test, metrics=["accuracy"])


def test_icm_soft_is_tested_as_icm_soft(samples: tuple) -> None:
    """It has no formula of sums, like the entropy correlation, whose test it once got."""
    dev, test = samples
    metrics = ("icm_soft", "entropy_correlation")
    found = compare(*dev, *test, methods=["greedy"], metrics=metrics, samples=200)
    uniform = found["uniform"]
    greedy = found["greedy"]
    difference = greedy.metrics["icm_soft"] - uniform.metrics["icm_soft"]
    assert greedy.against["icm_soft"].difference == pytest.approx(difference)
    assert greedy.against["icm_soft"].low < difference < greedy.against["icm_soft"].high


def test_p_values_are_corrected_over_the_tests_of_the_table(found: Comparison) -> None:
    frame = found.to_frame()
    tested = frame[frame["p_value"].notna()]
    assert len(tested) > 10
    np.testing.assert_allclose(tested["p_adjusted"], holm(tested["p_value"].to_numpy()))
    assert (tested["p_adjusted"] >= tested["p_value"]).all()
    by_method = frame.set_index(["method", "metric"])
    uniform = by_method.loc["uniform"]["value"]
    for name in ("greedy", "edo"):
        rows = by_method.loc[name]
        np.testing.assert_allclose(rows["difference"], rows["value"] - uniform, atol=1e-12)


def test_without_a_correction_there_is_no_adjusted_p_value(samples: tuple) -> None:
    dev, test = samples
    found = compare(*dev, *test, methods=["greedy"], correct="none", samples=100)
    assert found["greedy"].against["ce"].p_adjusted is None
    assert "not corrected for 8 tests" in found.to_markdown()
    with raises_code("unknown-choice", "correct", "'holm'", "'none'"):
        compare(*dev, *test, correct="bonferroni")


def test_several_seeds_are_averaged() -> None:
    dev = sample(60)
    seeds = [0, 1]
    alone = [compare(*dev, methods=["edo"], samples=0, random_state=seed) for seed in seeds]
    both = compare(*dev, methods=["edo"], samples=0, seeds=2)
    by_seed = [one["edo"].ce for one in alone]
    assert by_seed[0] != by_seed[1]
    assert both["edo"].ce == pytest.approx(np.mean(by_seed))
    assert both["edo"].seed_deviations["ce"] == pytest.approx(np.std(by_seed, ddof=1))
    assert both.to_dict()["seeds"] == 2


def test_the_table_says_which_metrics_are_not_means_over_seeds(samples: tuple) -> None:
    dev, test = samples
    options = {"methods": ["edo"], "seeds": 2, "samples": 0}
    whole = compare(*dev, *test, metrics=["ce", "macro_f1", "ece"], **options).to_markdown()
    assert "for macro-F1 and ECE, one value of the answers of all seeds together" in whole
    means = compare(*dev, *test, metrics=["ce", "f1"], **options).to_markdown()
    assert "all seeds together" not in means


@pytest.mark.parametrize(
    "option", [{"level": 1.0}, {"level": 0.0}, {"samples": -1}, {"samples": 2.5}]
)
def test_invalid_options_are_refused_before_anything_is_fitted(option: dict) -> None:
    with raises_code("invalid-number", *option):
        CompareOptions(**option)


def test_too_few_groups_to_cross_validate_are_counted_beside_the_items() -> None:
    members, people = sample(60)
    groups = np.array([f"thread {k % 4}" for k in range(60)], dtype=object)
    with raises_code("too-many-folds", "60 items in 4 groups"):
        compare(members, replace(people, item_groups=groups), methods=["edo"], samples=0)


def test_exchanging_answers_is_flipping_signs_where_a_metric_is_a_mean() -> None:
    rng = np.random.default_rng(0)
    q = rng.dirichlet([1, 1], size=40)
    first = rng.dirichlet([1, 1], size=40)
    second = 0.9 * first + 0.1 * q
    y = q.argmax(axis=1)
    resampling = Resampling(samples=500, random_state=3)
    test = paired_metric_test("jsd", first, second, q, y, NOMINAL, resampling)
    from edokit.metrics import item_values

    losses = [item_values()["jsd"](p, q, y) for p in (first, second)]
    expected = paired_test(*losses, samples=1000, random_state=3)
    assert test is not None
    assert (test.difference, test.p_value) == pytest.approx((expected.difference, expected.p_value))


@pytest.mark.parametrize("metric", ["macro_f1", "ece", "entropy_correlation", "icm_soft"])
def test_a_method_that_knows_the_answers_is_told_from_one_that_does_not(metric: str) -> None:
    rng = np.random.default_rng(1)
    q = rng.dirichlet([1, 1], size=120)
    guesses = rng.dirichlet([1, 1], size=120)
    y = q.argmax(axis=1)
    resampling = Resampling(samples=200)
    test = paired_metric_test(metric, 0.9 * q + 0.05, guesses, q, y, NOMINAL, resampling)
    assert test is not None
    assert test.p_value < 0.02
    assert not test.low <= 0 <= test.high
    same = paired_metric_test(metric, guesses, guesses, q, y, NOMINAL, resampling)
    assert same is not None
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(r" \\"))]


def test_latex_is_a_table_with_rules_and_every_method(samples: tuple) -> None:
    dev, test = samples
    extra = {"50%_soft & {mine}": (dev[0], test[0])}
    found = compare(*dev, *test, methods=["edo"], extra=extra, samples=200)
    text = found.to_latex(label="tab:methods")
    lines = text.splitlines()
    for rule in ("toprule", "midrule", "bottomrule"):
        assert lines.count(f"\\{rule}") == 1
    assert "\\label{tab:methods}" in lines
    for kind in ("table", "tabular"):
        assert text.count(f"\\begin{{{kind}}}") == text.count(f"\\end{{{kind}}}") == 1
    escaped = re.sub(r"\\[{}%&_#$]", "", text)
    assert escaped.count("{") == escaped.count("}")
    start = lines.index("\\midrule")
    end = lines.index("\\bottomrule")
    rows = [cells(line) for line in lines[start + 1 : end]]
    assert {len(row) for row in rows} == {len(cells(lines[start - 1]))} == {7}
    assert [row[0] for row in rows][-2:] == [
        r"50\%\_soft \& \{mine\}",
        r"edo:50\%\_soft \& \{mine\}",
    ]
    assert sum("textbf" in row[2] for row in rows) >= 1
    by_name = {row[0]: row for row in rows}
    assert "textsuperscript{*}" in by_name["edo"][2]
    assert "textsuperscript" not in by_name["uniform"][2]
    assert "dag" in by_name["constant"][2]
    with raises_code("invalid-name", "LaTeX"):
        found.to_latex(label="a}b")


def test_the_command_writes_latex(samples: tuple, tmp_path: Path) -> None:
    from commands import edo
    from edokit import write_predictions
    from edokit._io.tables import write_table

    predictions, annotations = samples[0]
    write_predictions(predictions, tmp_path / "fit.npz")
    write_table(annotations.to_table(), tmp_path / "people.csv")
    files = ("--predictions", tmp_path / "fit.npz", "--annotations", tmp_path / "people.csv")
    options = ("--methods", "greedy", "--metrics", "ce,ece", "--bootstrap", "50", "--seeds", "2")
    done = edo("compare", *files, *options, "--latex", tmp_path / "table.tex")
    assert done.returncode == 0, done.stderr
    assert "ECE" in done.stdout
    written = (tmp_path / "table.tex").read_text()
    assert "ECE" in written
    assert "macro-F1" not in written
